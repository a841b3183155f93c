"""What is judged, what an examiner finds, and the seam between them."""

from dataclasses import dataclass
from typing import Protocol

from specrag.evaluation.judging import said
from specrag.evaluation.questions import Question
from specrag.tracing.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A finished run as an examiner sees it: no name of the system that ran."""

    question: Question
    answer: str
    """Empty if the run gave none."""
    passages: tuple[str, ...] = ()
    """Texts of what it read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What an examiner found."""

    value: float | None
    """In [0, 1]; None if the reply could not be read."""
    word: str = ""
    """The verdict, where it is a word."""
    reply: str = ""
    """The beginning of a reply that could not be read."""
    answered_as: str = ""
    """What the server called the model."""
    prompt_tokens: int | None = None
    """None where the server does not count."""
    completion_tokens: int | None = None
    temperature: float | None = None
    """What was asked for; None if the model refuses to be told one."""


class Examiner(Protocol):
    """Asks the judge one kind of question about a run."""

    @property
    def mark(self) -> str:
        """Name of its figure in the report."""
        ...

    @property
    def by(self) -> str:
        """The mark with the version of what is asked: another one is another judgement."""
        ...

    @property
    def of_failed(self) -> float | None:
        """What a run that failed is worth; None if that says nothing."""
        ...

    def unasked(self, case: Case) -> float | None:
        """What a run is worth about which nobody needs to be asked; None if that is nothing."""
        ...

    def asks(self, case: Case) -> str | None:
        """What would be asked, in full; None if there is nothing to ask. Equal questions are asked once."""
        ...

    async def examine(self, case: Case) -> Finding:
        """Ask.

        Raises:
            Fault: the judge does not answer.
        """
        ...


def case_of(question: Question, trace: Trace) -> Case:
    """The case of a finished run."""
    passages = tuple(passage.text for passage in trace.passages)
    return Case(question=question, answer=said(trace).strip(), passages=passages)
