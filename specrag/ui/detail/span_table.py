"""The spans of a run in words and numbers: what the waterfall shows to those who do not see it."""

from dataclasses import dataclass
from typing import Final

from specrag.tracing.trace import Trace
from specrag.ui.cards import empty_state
from specrag.ui.figures import first_token_ms, models_share, verdict_ms
from specrag.ui.markup import render, time_text
from specrag.ui.span_rows import SpanRow, span_rows

MOST_ROWS: Final = 500
_DEEPEST: Final = 6
"""Levels that are drawn apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A row of the table."""

    label: str
    depth: int
    number: int | None
    start_ms: float
    took_ms: float
    open: bool
    share: float | None
    """Of the run."""
    attributes: tuple[tuple[str, str], ...]


def span_table(trace: Trace) -> str:
    """Every span with its exact times and attributes, and what the run took in a line."""
    if not trace.spans:
        return empty_state("No steps", "This run ended before its first step.")
    rows = span_rows(trace)
    return render(
        "detail_spans",
        steps=[_step(trace, row) for row in rows[:MOST_ROWS]],
        left_out=max(0, len(rows) - MOST_ROWS),
        facts=facts_of(trace),
    )


def facts_of(trace: Trace) -> tuple[tuple[str, str], ...]:
    """The times that people ask for first."""
    share = models_share(trace)
    found = (
        ("total", time_text(trace.elapsed_ms)),
        ("first token", time_text(first_token_ms(trace))),
        ("verdict", time_text(verdict_ms(trace))),
        ("models' share of the run", "" if share is None else f"{100 * share:.0f} %"),
    )
    return tuple((name, text) for name, text in found if text and text != time_text(None))


def _step(trace: Trace, row: SpanRow) -> Step:
    span = row.span
    took = row.end_ms - span.start_ms
    return Step(
        label=row.label,
        depth=min(row.depth, _DEEPEST),
        number=row.number,
        start_ms=span.start_ms,
        took_ms=took,
        open=span.end_ms is None,
        share=took / trace.elapsed_ms if trace.elapsed_ms > 0 else None,
        attributes=tuple((name, str(value)) for name, value in span.attributes.items()),
    )
