"""The rows of the waterfall: every span in one of its own, under the span around it."""

from dataclasses import dataclass
from typing import Final

from specrag.tracing.trace import Trace
from specrag.types import Span
from specrag.ui.lanes import SpanTree, end_of

_PARTS: Final = {"decode": "writing", "note": "noting", "query": "asking"}
"""What the parts of a draft or hop are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRow:
    """One span of a run."""

    span: Span
    end_ms: float
    """When it ended, or the time of the last event while it is open."""
    depth: int
    """Spans around it."""
    label: str
    number: int | None
    """Number of the draft or hop that it belongs to, from 1."""
    faint: bool
    """Whether its parts have rows of their own, or nobody works in it."""


def span_rows(trace: Trace) -> tuple[SpanRow, ...]:
    """All spans in the order of their starts; none is lost to a parent that is missing or goes in circles."""
    tree = SpanTree(trace)
    spans = sorted(trace.spans, key=lambda span: (span.start_ms, tree.number(span) or 0))
    tops = [span for span in spans if tree.parent(span) is None]
    waiting = [(span, 0) for span in reversed([*tops, *spans])]
    place = {id(span): number for number, span in enumerate(spans)}
    rows: list[SpanRow] = []
    seen: set[int] = set()
    while waiting:
        span, depth = waiting.pop()
        if id(span) in seen:
            continue
        seen.add(id(span))
        rows.append(_row(tree, span, depth))
        inside = sorted(tree.children(span), key=lambda child: -place[id(child)])
        waiting += [(child, depth + 1) for child in inside]
    return tuple(rows)


def _row(tree: SpanTree, span: Span, depth: int) -> SpanRow:
    lane = tree.label(span)
    whole = tree.owner(span) is span or span.name == lane
    return SpanRow(
        span=span,
        end_ms=end_of(tree.trace, span),
        depth=depth,
        label=lane if whole else f"{lane}, {_PARTS.get(span.name, span.name)}",
        number=tree.number(span),
        faint=tree.is_faint(span),
    )
