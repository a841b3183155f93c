"""Endpoints of the evaluations: the kept reports, and a small evaluation from its start to its end."""

from dataclasses import asdict
from typing import Any, Final

from specrag.build import Parts
from specrag.evaluation.systems import Method
from specrag.evaluation.trials import Trial
from specrag.library.visitors import Visitor
from specrag.ui import evaluating
from specrag.ui.endpoints.documents import uploaded


def reports(parts: Parts, who: Visitor) -> list[dict[str, Any]]:
    """The kept reports of evaluations and benchmarks, newest first.

    Example: `Client(url).predict(api_name="/reports")[0]["name"]`.
    """
    return [asdict(one) for one in parts.shelf.kept(evaluating.owner_of(who))]


def report(parts: Parts, who: Visitor, name: str) -> dict[str, Any]:
    """A kept report, `specrag.eval/1` or `specrag.bench/1`, as far as the page shows it.

    Example: `Client(url).predict(name, api_name="/report")["pipelines"]`.
    """
    return evaluating.report_of(parts, who, name)


def evaluate(
    parts: Parts,
    who: Visitor,
    pipelines: list[Method] | None = None,
    limit: int = 7,
    file: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Start a small evaluation: of a file of questions, or else of the sample's; at most 20 questions.

    Example: `Client(url).predict(["standard", "speculative"], api_name="/evaluate")["total"]`.
    """
    path = None if file is None else uploaded(file)
    try:
        return _told(evaluating.start(parts, who, path, pipelines or ("standard", "speculative"), limit))
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def evaluation(parts: Parts, who: Visitor) -> dict[str, Any]:
    """How far your newest evaluation is; when it has ended, `report` is the name of its report.

    Example: `Client(url).predict(api_name="/evaluation")["stage"]`.

    Returns an empty object where you have none since the program was started.
    """
    trial = parts.trials.newest_of(evaluating.owner_of(who))
    return {} if trial is None else _told(trial)


def stop_evaluation(parts: Parts, who: Visitor, number: int | None = None) -> bool:
    """Stop your evaluation; whether one was under way. Its report is of the runs that were finished.

    Example: `Client(url).predict(api_name="/stop_evaluation")`.

    With the `number` of `/evaluate` only that one is stopped, and none that has begun since.
    """
    return evaluating.stop(parts, who, number)


def _told(trial: Trial) -> dict[str, Any]:
    told = asdict(trial)
    del told["owner"]
    return told


ENDPOINTS: Final = (reports, report, evaluate, evaluation, stop_evaluation)
