"""On which track of a trace viewer each span lies.

Viewers draw slices of one track inside each other, so spans that only overlap need tracks of their own: each
draft has one, each hop, and each family of steps. Where a trace has children that outlast their parents, they
are cut to them; where two spans of a track still cross, the later one goes to a track beside it. Times are
whole nanoseconds from here on, since rounding must not undo the nesting.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from specrag.tracing.trace import Trace
from specrag.types import Span

_NS: Final = 1_000_000
"""Nanoseconds in a millisecond."""
_FAMILIES: Final = {
    "run": "run",
    "queue": "run",
    "decide": "decide",
    "verify": "verify",
    "partition": "partition",
    "rewrite": "rewrite",
    "answer": "answer",
    "fallback": "answer",
    "synthesise": "answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A span with its times in nanoseconds since the run began, within those of its parent."""

    span: Span
    start_ns: int
    end_ns: int


@dataclass(slots=True, kw_only=True)
class Track:
    """A row of slices, of which any two nest or do not touch."""

    label: str
    slices: list[Slice] = field(default_factory=list)

    def takes(self, slice_: Slice) -> bool:
        """Whether the slice crosses none that is here."""
        return all(
            other.end_ns <= slice_.start_ns
            or slice_.end_ns <= other.start_ns
            or (other.start_ns <= slice_.start_ns and slice_.end_ns <= other.end_ns)
            or (slice_.start_ns <= other.start_ns and other.end_ns <= slice_.end_ns)
            for other in self.slices
        )


def tracks_of(trace: Trace) -> list[Track]:
    """The tracks in the order in which they begin, drafts in the order of their subsets."""
    tracks: list[Track] = []
    for slice_ in slices_of(trace):
        label = label_of(trace, slice_.span)
        alike = [track for track in tracks if track.label.partition(" (")[0] == label]
        track = next((track for track in alike if track.takes(slice_)), None)
        if track is None:
            track = Track(label=f"{label} ({len(alike) + 1})" if alike else label)
            tracks.append(track)
        track.slices.append(slice_)
    for track in tracks:
        track.slices.sort(key=lambda one: (one.start_ns, -one.end_ns))  # readers want parents first
    return tracks


def label_of(trace: Trace, span: Span) -> str:
    """The name of a span's track."""
    names = {subset.id: number for number, subset in enumerate(trace.subsets, 1)}
    hops = [other.id for other in trace.spans if other.name == "hop"]
    family = ""
    for one in _lineage(trace, span):
        subset = one.attributes.get("subset_id")
        if one.name == "draft" and subset is not None:
            return f"draft {names.get(str(subset), 0) or str(subset)[:40]}"
        if one.name == "hop":
            return f"hop {hops.index(one.id) + 1}"
        if one.name == "draft":
            return "drafts"
        if one.name == "retrieve":
            family = "retrieve"  # unless it is a hop's
        elif not family and one.name != "run":
            family = _FAMILIES.get(one.name, "")
    return family or _FAMILIES.get(span.name, span.name)


def _lineage(trace: Trace, span: Span) -> Iterator[Span]:
    """The span, its parent, and so on; a trace from outside may go in circles."""
    spans = {other.id: other for other in trace.spans}
    seen: set[str] = set()
    one: Span | None = span
    while one is not None and one.id not in seen:
        seen.add(one.id)
        yield one
        one = spans.get(one.parent_id or "")


def slices_of(trace: Trace) -> list[Slice]:
    """All spans in the order in which they begin."""
    spans = {span.id: span for span in trace.spans}
    made: dict[str, Slice] = {}
    for span in trace.spans:
        for one in reversed(list(_lineage(trace, span))):
            if one.id not in made:
                made[one.id] = _slice(trace, one, made.get(one.parent_id or "") if one.parent_id else None)
    order = {span_id: place for place, span_id in enumerate(spans)}
    return sorted(made.values(), key=lambda one: (one.start_ns, order[one.span.id]))


def _slice(trace: Trace, span: Span, above: Slice | None) -> Slice:
    start = round(span.start_ms * _NS)
    end = round((trace.elapsed_ms if span.end_ms is None else span.end_ms) * _NS)
    if above is not None:
        start = min(max(start, above.start_ns), above.end_ns)
        end = min(end, above.end_ns)
    return Slice(span=span, start_ns=start, end_ns=max(start, end))
