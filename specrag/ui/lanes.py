"""The lanes of a run: one row a step, a draft or a hop, with its bars in time.

A draft's lane shows reading and writing apart, and so does an answer that a model writes itself; a hop's
shows searching and noting. The live timeline (`cards.timeline`) and the waterfall (`figures.waterfall`) name
and colour lanes alike. Times are milliseconds since the run began; an open bar ends at the last event.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from specrag.tracing.trace import Trace
from specrag.types import Draft, Span

BarKind: TypeAlias = Literal["step", "wait", "search", "read", "note", "decode"]

WORDS: Final[dict[BarKind, str]] = {
    "step": "",
    "wait": "waiting",
    "search": "searching",
    "read": "reading",
    "note": "noting",
    "decode": "writing",
}
"""What a bar's part of the step is called; a plain step needs no word."""
FAINT: Final = frozenset({"wait", "search", "read"})
"""Bars during which no text is written."""
KEYS: Final[tuple[tuple[BarKind, ...], ...]] = (("wait",), ("search", "read"), ("note", "decode"))
"""Kinds of bars that look alike, for the key of the timeline."""

_DETAILS: Final = frozenset({"embed", "search", "fuse", "rerank", "evidence"})
"""Parts of a step; the waterfall shows them, the timeline shows the step."""
_WRITTEN: Final = frozenset({"answer", "fallback", "synthesise"})
"""Steps in which one model writes the answer itself."""
_TICKS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of a lane."""

    kind: BarKind
    start_ms: float
    end_ms: float
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row of a timeline."""

    label: str
    number: int | None
    """Number of the draft or hop from 1, which gives the hue; None for the other steps."""
    bars: tuple[Bar, ...]


def draft_numbers(trace: Trace) -> dict[str, int]:
    """Number of each draft by its subset; drafts without a subset of their own come last."""
    known = [*(subset.id for subset in trace.subsets), *(draft.subset_id for draft in trace.drafts)]
    return {subset_id: number for number, subset_id in enumerate(dict.fromkeys(known), 1)}


def lanes(trace: Trace) -> tuple[Lane, ...]:
    """The rows in the order in which their steps began; drafts stand in the order of their subsets."""
    rows: dict[str, list[Bar]] = {}
    numbers: dict[str, int | None] = {}
    for span in sorted(_steps(trace), key=lambda span: (span.start_ms, number_of(trace, span) or 0)):
        label = label_of(trace, span)
        rows.setdefault(label, []).extend(_bars(trace, span))
        numbers[label] = number_of(trace, span)
    return tuple(Lane(label=label, number=numbers[label], bars=tuple(bars)) for label, bars in rows.items())


def ticks(end_ms: float) -> tuple[float, ...]:
    """Round times from 0 to the first one at or after `end_ms`, at most seven of them."""
    least = max(end_ms, 1.0) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    return tuple(step * index for index in range(math.ceil(max(end_ms, 1.0) / step) + 1))


def end_of(trace: Trace, span: Span) -> float:
    """When a span ended; one that is open goes on until now."""
    return max(span.start_ms, trace.elapsed_ms if span.end_ms is None else span.end_ms)


def number_of(trace: Trace, span: Span) -> int | None:
    """Number of the draft or hop that a span belongs to."""
    owner = _owner(trace, span)
    if owner.name == "hop":
        hops = [other.id for other in trace.spans if other.name == "hop"]
        return hops.index(owner.id) + 1
    subset_id = owner.attributes.get("subset_id")
    return None if subset_id is None else draft_numbers(trace).get(str(subset_id))


def label_of(trace: Trace, span: Span) -> str:
    """The name of a span's lane."""
    number = number_of(trace, span)
    if number is not None:
        return f"{'hop' if _owner(trace, span).name == 'hop' else 'draft'} {number}"
    group = span.name == "draft" and "subset_id" not in span.attributes
    return "all drafts" if group else span.name


def is_faint(trace: Trace, span: Span) -> bool:
    """Whether the waterfall draws a span faintly: its parts are drawn over it, or nobody works."""
    split = span.name == "draft" and any(
        other.parent_id == span.id and other.name == "decode" for other in trace.spans
    )
    return span.name in ("queue", "hop") or split


def _steps(trace: Trace) -> list[Span]:
    """Spans with a lane of their own: not the whole run, the group of all drafts, or parts of a step."""
    groups = {span.parent_id for span in trace.spans if span.name == "draft"}
    groups |= {span.id for span in trace.spans if span.name == "run"}
    groups |= {span.id for span in trace.spans if span.name in _DETAILS}
    return [span for span in trace.spans if _owner(trace, span) is span and span.id not in groups]


def _owner(trace: Trace, span: Span) -> Span:
    """The draft or hop to which a span belongs, or the span itself."""
    spans = {other.id: other for other in trace.spans}
    seen, parent = {span.id}, spans.get(span.parent_id or "")
    while parent is not None and parent.id not in seen:  # an imported trace may go in circles
        if parent.name == "hop" or "subset_id" in parent.attributes:
            return parent
        seen.add(parent.id)
        parent = spans.get(parent.parent_id or "")
    return span


def _bars(trace: Trace, span: Span) -> tuple[Bar, ...]:
    first, last = _kinds(span)
    end, still = end_of(trace, span), span.end_ms is None
    turn = _turn(trace, span)
    if turn is None:
        kind = first if still or span.name == "queue" else last
        return (Bar(kind=kind, start_ms=span.start_ms, end_ms=end, open=still),)
    return (
        Bar(kind=first, start_ms=span.start_ms, end_ms=turn),
        Bar(kind=last, start_ms=turn, end_ms=max(end, turn), open=still),
    )


def _kinds(span: Span) -> tuple[BarKind, BarKind]:
    """What a step does before and after its turn."""
    if span.name == "queue":
        return "wait", "wait"
    if span.name == "hop":
        return "search", "note"
    return ("read", "decode") if span.name == "draft" or span.name in _WRITTEN else ("step", "step")


def _turn(trace: Trace, span: Span) -> float | None:
    """When a step went from reading or searching to writing."""
    if span.name == "draft":
        return _decoding(trace, span)
    if span.name == "hop":
        notes = (other.start_ms for other in trace.spans if other.parent_id == span.id and _writes(other))
        return min(notes, default=None)
    if span.name in _WRITTEN:
        times = (token.at_ms for token in trace.answer_tokens if token.at_ms is not None)
        return next((at for at in times if span.start_ms <= at <= end_of(trace, span)), None)
    return None


def _writes(span: Span) -> bool:
    return span.name not in _DETAILS and span.name != "retrieve"


def _decoding(trace: Trace, span: Span) -> float | None:
    """When a draft stopped reading: its child span says so, or else its first token."""
    child = next(
        (other for other in trace.spans if other.parent_id == span.id and other.name == "decode"), None
    )
    if child is not None:
        return child.start_ms
    drafts = [draft for draft in trace.drafts if draft.subset_id == span.attributes.get("subset_id")]
    return min((at for draft in drafts if (at := _first_at(draft)) is not None), default=None)


def _first_at(draft: Draft) -> float | None:
    return next((token.at_ms for token in draft.tokens if token.at_ms is not None), None)
