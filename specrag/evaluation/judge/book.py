"""What was judged already, on the disk beside the runs: it was paid for, so nothing is asked twice."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

from specrag.evaluation.folder import OPINIONS
from specrag.evaluation.journal import append, read
from specrag.evaluation.judge.case import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion(Finding):
    """One judgement of one run: what was found, and of which run, by whom and how."""

    run: str
    model: str
    by: str
    """What was asked, with its version."""
    asked: str
    """Digest of the question to the judge; empty if there was nothing to ask."""
    again: bool = False
    """Whether another run had given the same answer, so that this one cost nothing."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What was judged, by whom, and how."""
        return (self.run, self.model, self.by)


class Book:
    """The opinions in an evaluation's folder."""

    def __init__(self, folder: Path, model: str) -> None:
        """Take up what is there.

        Raises:
            EvaluationError: a line cannot be read.
        """
        self._path = folder / OPINIONS
        self._model = model
        every = list(read(self._path, Opinion, "judgement"))
        self._by_run = {one.key: one for one in every}
        self._by_question = {(one.model, one.by, one.asked): one for one in every}

    def of(self, run: str, by: str) -> Opinion | None:
        """What this model said of a run."""
        return self._by_run.get((run, self._model, by))

    def same(self, by: str, asked: str) -> Opinion | None:
        """What it said when it was asked the same."""
        return self._by_question.get((self._model, by, asked)) if asked else None

    def opinion(self, run: str, by: str, asked: str, finding: Finding) -> Opinion:
        """A finding as a judgement, which is not kept."""
        return Opinion(run=run, model=self._model, by=by, asked=asked, **asdict(finding))

    def keep(self, run: str, by: str, asked: str, finding: Finding) -> Opinion:
        """Put a judgement on the disk."""
        return self._add(self.opinion(run, by, asked, finding))

    def repeat(self, run: str, opinion: Opinion) -> Opinion:
        """The same of another run, at no cost."""
        free = {"run": run, "again": True, "prompt_tokens": 0, "completion_tokens": 0}
        return self._add(Opinion(**{**asdict(opinion), **free}))

    def _add(self, opinion: Opinion) -> Opinion:
        append(self._path, asdict(opinion))
        self._by_run[opinion.key] = opinion
        self._by_question.setdefault((opinion.model, opinion.by, opinion.asked), opinion)
        return opinion


def digest(text: str) -> str:
    """A short name of what was asked."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
