"""A conversation is what a run was asked after, and then that run itself; nothing else is remembered."""

from typing import Final

from specrag.tracing.trace import Trace
from specrag.types import Exchange
from specrag.ui.written import answer_text

MOST: Final = 3
"""Exchanges that a follow-up is asked with; older ones hardly help and cost tokens."""


def exchanges_of(trace: Trace) -> tuple[Exchange, ...]:
    """What a follow-up to this run comes after, oldest first; a run without an answer adds nothing."""
    answer = answer_text(trace) if trace.status == "done" else ""
    last = (Exchange(question=trace.asked, answer=answer),) if answer else ()
    return (*trace.earlier, *last)[-MOST:]
