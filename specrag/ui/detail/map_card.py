"""The perspective map: where the passages lie among each other, in which clusters, and who read them.

Every passage is a button at its place, so that it can be reached by keyboard, tells what it is, and opens its
document. A shape stands for its cluster, a ring in a draft's hue for each draft that read it: neither is told
by colour alone, and a list beneath says the same in words.
"""

import math
from dataclasses import dataclass
from typing import Final

from specrag.tracing.trace import Trace
from specrag.types import Spot
from specrag.ui.cards import empty_state
from specrag.ui.detail.apart import Place, apart
from specrag.ui.markup import render
from specrag.ui.readout import Ref, refs_of

SHAPES: Final = ("circle", "square", "triangle", "diamond", "pentagon", "hexagon", "star", "cross")
"""Shape of each cluster; they repeat after the eighth, and the number of the cluster tells which it is."""
MOST_RINGS: Final = 4
"""Rings that are drawn; more drafts are told in words."""
_EDGE: Final = 7.0
"""Room at the border of the map, in percent, for the markers."""
_WORDS: Final = 90
"""Letters of a passage that its label shows."""
_VARIANCE: Final = "map_variance"
"""Attribute of the span of the partition."""
_LEAST: Final = 3
"""Passages; two of them always lie on a line."""
_MIDDLE: Final = 50
_SHADOW: Final = (
    "the map is a shadow of a space with hundreds of dimensions. Neighbours on it are mostly alike; exact "
    "distances and the axes mean nothing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A passage on the map."""

    ref: Ref
    left: float
    """From the left and from the top, in percent."""
    top: float
    cluster: int | None
    """Number of the cluster, from 1."""
    shape: str
    rings: tuple[int, ...]
    more: int
    """Drafts that read it and have no ring."""
    words: str
    near: bool
    """Whether its label opens to the left, because it lies in the right half."""
    low: bool
    """Whether it opens upwards."""
    moved: bool = False
    """Whether it would lie on another one at its own place."""


def perspective_map(trace: Trace, *, scope: str = "detail") -> str:
    """The passages in two dimensions, or a sentence on why there is no map."""
    marks = marks_of(trace, scope)
    if not marks:
        return empty_state("No map", why_none(trace))
    clusters = sorted({mark.cluster for mark in marks if mark.cluster is not None})
    return render(
        "detail_map",
        marks=marks,
        clusters=[(number, shape_of(number)) for number in clusters],
        subsets=trace.subsets,
        note=variance_note(trace),
        moved=any(mark.moved for mark in marks),
    )


def marks_of(trace: Trace, scope: str) -> tuple[Mark, ...]:
    """The spots that belong to a passage of the run, and have a place."""
    refs = refs_of(trace, scope)
    spots = [
        spot
        for spot in trace.spots
        if spot.passage_id in refs and math.isfinite(spot.x) and math.isfinite(spot.y)
    ]
    places = apart([_place(spot) for spot in spots], edge=_EDGE)
    return tuple(_mark(refs[spot.passage_id], spot, place) for spot, place in zip(spots, places, strict=True))


def shape_of(cluster: int | None) -> str:
    """The shape of a cluster, counted from 1; a passage of none is a circle."""
    return SHAPES[0] if cluster is None else SHAPES[(cluster - 1) % len(SHAPES)]


def variance_note(trace: Trace) -> str:
    """How much of the distances two dimensions can show."""
    told = [span.attributes[_VARIANCE] for span in trace.spans if _VARIANCE in span.attributes]
    held = told[-1] if told else None
    if isinstance(held, bool) or not isinstance(held, float | int) or not 0 <= held <= 1:
        return f"{_SHADOW[:1].upper()}{_SHADOW[1:]}"
    return f"These two directions hold {100 * held:.0f} % of the differences between the passages; {_SHADOW}"


def why_none(trace: Trace) -> str:
    """Why there is no map."""
    if not trace.passages:
        return "This run found no passages, so there is nothing to draw."
    if trace.spots:
        return "The places in this trace belong to passages that it does not hold."
    if trace.pipeline != "speculative":
        return "Only Speculative RAG divides its passages into perspectives; here one model read them all."
    if not trace.subsets:
        return "The passages of this run were not divided: there were too few of them, or it ended before."
    if len(trace.passages) < _LEAST:
        return "A map needs at least three passages."
    return "This run kept no places of its passages: an older version made it, or they were left out."


def _place(spot: Spot) -> Place:
    return _percent(spot.x), 100 - _percent(spot.y)


def _mark(ref: Ref, spot: Spot, place: Place) -> Mark:
    cluster = None if spot.cluster is None else spot.cluster + 1
    left, top = place
    text = " ".join(ref.passage.text.split())
    return Mark(
        ref=ref,
        left=left,
        top=top,
        cluster=cluster,
        shape=shape_of(cluster),
        rings=ref.drafts[:MOST_RINGS],
        more=max(0, len(ref.drafts) - MOST_RINGS),
        words=text if len(text) <= _WORDS else f"{text[:_WORDS]}…",
        near=left > _MIDDLE,
        low=top > _MIDDLE,
        moved=place != _place(spot),
    )


def _percent(value: float) -> float:
    """From [-1, 1] to percent of the map, within its border."""
    share = (min(1.0, max(-1.0, value)) + 1) / 2
    return _EDGE + share * (100 - 2 * _EDGE)
