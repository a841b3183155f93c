"""The lanes of a run: one row a step, a draft or a hop, with its bars in time.

A draft's lane shows reading and writing apart, and so does an answer that a model writes itself; a hop's
shows searching and noting. The live timeline (`cards.timeline`) and the waterfall (`figures.waterfall`) name
and colour alike what belongs together. Times are milliseconds since the run began; an open bar ends at the
last event.
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
    tree = SpanTree(trace)
    rows: dict[str, list[Bar]] = {}
    numbers: dict[str, int | None] = {}
    for span in sorted(_steps(tree), key=lambda span: (span.start_ms, tree.number(span) or 0)):
        label = tree.label(span)
        rows.setdefault(label, []).extend(_bars(tree, span))
        numbers[label] = tree.number(span)
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


class SpanTree:
    """The spans of one trace by what they belong to; looked up once, for an imported trace may have many."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._by_id = {span.id: span for span in trace.spans}
        self._children: dict[str, list[Span]] = {}
        for span in trace.spans:
            self._children.setdefault(span.parent_id or "", []).append(span)
        self._hops = {span.id: number for number, span in enumerate(_hops(trace), 1)}
        self._drafts = draft_numbers(trace)
        self._around: dict[str, Span | None] = {}

    def children(self, span: Span) -> list[Span]:
        """The spans right inside this one."""
        return self._children.get(span.id, []) if span.id else []

    def parent(self, span: Span) -> Span | None:
        """The span right around this one."""
        return self._by_id.get(span.parent_id or "")

    def owner(self, span: Span) -> Span:
        """The draft or hop to which a span belongs, or the span itself."""
        path: list[str] = []
        seen, parent, found = {span.id}, self.parent(span), None
        while parent is not None and parent.id not in seen:  # an imported trace may go in circles
            if _owns(parent):
                found = parent
                break
            if parent.id in self._around:
                found = self._around[parent.id]
                break
            seen.add(parent.id)
            path.append(parent.id)
            parent = self.parent(parent)
        self._around.update(dict.fromkeys(path, found))
        return found or span

    def number(self, span: Span) -> int | None:
        """Number of the draft or hop that a span belongs to."""
        owner = self.owner(span)
        if owner.name == "hop":
            return self._hops[owner.id]
        subset_id = owner.attributes.get("subset_id")
        return None if subset_id is None else self._drafts.get(str(subset_id))

    def label(self, span: Span) -> str:
        """The name of a span's lane."""
        number = self.number(span)
        if number is not None:
            return f"{'hop' if self.owner(span).name == 'hop' else 'draft'} {number}"
        group = span.name == "draft" and "subset_id" not in span.attributes
        return "all drafts" if group else span.name

    def is_faint(self, span: Span) -> bool:
        """Whether the waterfall draws a span faintly: its parts are drawn too, or nobody works."""
        split = span.name == "draft" and any(child.name == "decode" for child in self.children(span))
        return span.name in ("queue", "hop") or split


def _hops(trace: Trace) -> list[Span]:
    return [span for span in trace.spans if span.name == "hop"]


def _owns(span: Span) -> bool:
    return span.name == "hop" or "subset_id" in span.attributes


def _steps(tree: SpanTree) -> list[Span]:
    """Spans with a lane of their own: not the whole run, the group of all drafts, or parts of a step."""
    spans = tree.trace.spans
    groups = {span.parent_id for span in spans if span.name == "draft"}
    groups |= {span.id for span in spans if span.name == "run"}
    groups |= {span.id for span in spans if span.name in _DETAILS}
    return [span for span in spans if tree.owner(span) is span and span.id not in groups]


def _bars(tree: SpanTree, span: Span) -> tuple[Bar, ...]:
    first, last = _kinds(span)
    end, still = end_of(tree.trace, span), span.end_ms is None
    turn = _turn(tree, span)
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


def _turn(tree: SpanTree, span: Span) -> float | None:
    """When a step went from reading or searching to writing."""
    if span.name == "draft":
        return _decoding(tree, span)
    if span.name == "hop":
        return min((child.start_ms for child in tree.children(span) if _writes(child)), default=None)
    if span.name in _WRITTEN:
        times = (token.at_ms for token in tree.trace.answer_tokens if token.at_ms is not None)
        return next((at for at in times if span.start_ms <= at <= end_of(tree.trace, span)), None)
    return None


def _writes(span: Span) -> bool:
    return span.name not in _DETAILS and span.name != "retrieve"


def _decoding(tree: SpanTree, span: Span) -> float | None:
    """When a draft stopped reading: its child span says so, or else its first token."""
    child = next((child for child in tree.children(span) if child.name == "decode"), None)
    if child is not None:
        return child.start_ms
    drafts = [draft for draft in tree.trace.drafts if draft.subset_id == span.attributes.get("subset_id")]
    return min((at for draft in drafts if (at := _first_at(draft)) is not None), default=None)


def _first_at(draft: Draft) -> float | None:
    return next((token.at_ms for token in draft.tokens if token.at_ms is not None), None)
