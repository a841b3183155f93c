"""Who may start an evaluation on the page, of which questions: one rule for the tab and for programs."""

from collections.abc import Sequence
from pathlib import Path

from specrag.build import Parts
from specrag.config import Settings
from specrag.errors import UsageError
from specrag.evaluation.datasets import read_questions
from specrag.evaluation.reading import Report
from specrag.evaluation.sample_questions import sample_questions
from specrag.evaluation.trials import MOST_BYTES, Trial, Wanted
from specrag.library.visitors import Visitor
from specrag.ui.evaluate_cards import NOT_HERE


def allowed(settings: Settings) -> bool:
    """Whether those who open the page may start evaluations: not on one that is open to strangers."""
    return settings.access != "visitor"


def owner_of(who: Visitor) -> str:
    """Whose evaluations somebody's are; empty where they are everybody's."""
    return who.owner or ""


def report_of(parts: Parts, who: Visitor, name: str) -> Report:
    """A kept report as somebody may see it: a command names files of the machine, which are no stranger's.

    Raises:
        EvaluationError: there is no such report of theirs.
    """
    found = parts.shelf.load(name, owner_of(who))
    return found if parts.settings.access == "shared" else {**found, "command": ""}


def start(parts: Parts, who: Visitor, path: Path | None, pipelines: Sequence[object], limit: object) -> Trial:
    """Evaluate the questions of a file, or without one those of the sample collection.

    Raises:
        UsageError: it may not be started here, or as `Trials.start`.
        EvaluationError: the file is no file of questions, or too large.
    """
    if not allowed(parts.settings):
        raise UsageError(NOT_HERE)
    if path is None:
        wanted = Wanted(
            dataset=sample_questions(parts.store), pipelines=pipelines, limit=limit, corpus="open"
        )
    else:
        dataset = read_questions(path, most=MOST_BYTES, instead="use `specrag eval` for large sets")
        wanted = Wanted(dataset=dataset, pipelines=pipelines, limit=limit)
    return parts.trials.start(wanted, owner=owner_of(who))


def stop(parts: Parts, who: Visitor, number: int | None = None) -> bool:
    """Stop the evaluation that is under way, if it is theirs and has this number; whether there was one."""
    return allowed(parts.settings) and parts.trials.stop(owner_of(who), number=number)
