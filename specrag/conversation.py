"""The conversation that a question goes on, from whatever its earlier answers are kept in."""

from collections.abc import Sequence
from typing import TypeAlias

from specrag.errors import UsageError
from specrag.tracing.trace import Trace
from specrag.types import Exchange

Earlier: TypeAlias = Sequence[Exchange | Trace | tuple[str, str]]
"""A conversation, oldest exchange first; a pair is a question and its answer."""


def conversation(earlier: Earlier) -> tuple[Exchange, ...]:
    """Exchanges, traces and pairs as exchanges; a run without an answer has told nothing.

    Of a trace the question counts that stands alone.

    Raises:
        UsageError: something else is among them.
    """
    told: list[Exchange] = []
    for one in earlier:
        match one:
            case Exchange():
                told.append(one)
            case Trace():
                if one.answer is not None:
                    told.append(Exchange(question=one.asked, answer=one.answer.text))
            case (str(question), str(answer)):
                told.append(Exchange(question=question, answer=answer))
            case _:
                raise UsageError("`earlier` takes traces, or pairs of a question and its answer.")
    return tuple(told)
