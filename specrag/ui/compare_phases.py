"""What a run was doing at each moment, as one row without gaps: the race and the stacked bars are made of it.

Steps of a run overlap (drafts are written side by side), so their times do not add up to the time of the run.
Here each moment counts once, for the most telling thing that was done in it: writing before reading, reading
before everything else. So the phases of a run sum to its total, to the microsecond. The wait for a turn is no
part of a run's own time. Times are milliseconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from specrag.tracing.trace import Trace
from specrag.types import Span
from specrag.ui.lanes import Bar, Lane, end_of, lanes

PhaseKind: TypeAlias = Literal["find", "weigh", "divide", "read", "write", "note", "verify", "other"]

WORDS: Final[dict[PhaseKind, str]] = {
    "find": "finding passages",
    "weigh": "weighing sentences",
    "divide": "dividing",
    "read": "reading",
    "note": "noting",
    "write": "writing",
    "verify": "verifying",
    "other": "the rest",
}
"""In the order in which they mostly come."""
_FIRST: Final[tuple[PhaseKind, ...]] = (
    "write",
    "note",
    "read",
    "verify",
    "divide",
    "weigh",
    "find",
    "other",
)
"""What a moment counts for, if several things are done in it."""
_BARS: Final[dict[str, PhaseKind]] = {"search": "find", "read": "read", "note": "note", "decode": "write"}
_STEPS: Final[dict[str, PhaseKind]] = {"retrieve": "find", "partition": "divide", "verify": "verify"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stretch of a run in which one kind of thing was done."""

    kind: PhaseKind
    start_ms: float
    end_ms: float

    @property
    def takes_ms(self) -> float:
        """How long it is."""
        return self.end_ms - self.start_ms


def begun_ms(trace: Trace) -> float:
    """When the run got its turn; until now, if it still waits."""
    waits = (
        trace.elapsed_ms if span.end_ms is None else span.end_ms
        for span in trace.spans
        if span.name == "queue"
    )
    return max(waits, default=0.0)


def own_ms(trace: Trace) -> float:
    """What the run took since it got its turn."""
    return max(0.0, trace.elapsed_ms - begun_ms(trace))


def phases(trace: Trace) -> tuple[Phase, ...]:
    """The run from its turn to its end (or until now), counted from its turn; they follow one another."""
    zero, end = begun_ms(trace), trace.elapsed_ms
    if end <= zero:
        return ()
    bars = [(kind, bar) for lane in lanes(trace) for bar in lane.bars if (kind := _kind(lane, bar))]
    done = [
        Phase(kind=kind, start_ms=max(start, zero) - zero, end_ms=min(stop, end) - zero)
        for kind, start, stop in (
            *((kind, bar.start_ms, bar.end_ms) for kind, bar in bars),
            *(("weigh", span.start_ms, end_of(trace, span)) for span in trace.spans if _weighs(span)),
        )
    ]
    return tuple(_swept([phase for phase in done if phase.takes_ms > 0], end - zero))


def sums(found: Iterable[Phase]) -> dict[PhaseKind, float]:
    """Milliseconds of each kind that occurs, in the order of `WORDS`."""
    taken: dict[PhaseKind, float] = {}
    for phase in found:
        taken[phase.kind] = taken.get(phase.kind, 0.0) + phase.takes_ms
    return {kind: taken[kind] for kind in WORDS if kind in taken}


def _kind(lane: Lane, bar: Bar) -> PhaseKind | None:
    if bar.kind == "wait":
        return None
    return _STEPS.get(lane.label, "other") if bar.kind == "step" else _BARS[bar.kind]


def _weighs(span: Span) -> bool:
    """Whether sentences are compared with the question; with given passages nothing else is left to find."""
    return span.name == "evidence" or (span.name == "retrieve" and bool(span.attributes.get("given")))


def _swept(done: list[Phase], end_ms: float) -> Iterable[Phase]:
    edges = sorted({0.0, end_ms, *(edge for phase in done for edge in (phase.start_ms, phase.end_ms))})
    current: Phase | None = None
    for start, stop in pairwise(edges):
        going = {phase.kind for phase in done if phase.start_ms <= start and phase.end_ms >= stop}
        kind: PhaseKind = next((kind for kind in _FIRST if kind in going), "other")
        if current is not None and current.kind == kind:
            current = Phase(kind=kind, start_ms=current.start_ms, end_ms=stop)
            continue
        if current is not None:
            yield current
        current = Phase(kind=kind, start_ms=start, end_ms=stop)
    if current is not None:
        yield current
