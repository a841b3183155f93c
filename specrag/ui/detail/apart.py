"""Marks of a map that lie on each other are moved apart, always alike: each can be read and pressed.

Pairs that are too near push each other along their line, round by round, until none is; marks stay within the
map. It is drawing, not data: who calls it has to say that places were moved.
"""

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

Place: TypeAlias = tuple[float, float]
"""From the left and from the top, in percent of the map."""

LEAST: Final = 8.5
"""Percent of the map between two marks: on a phone the numbers stand free, on a desktop the shapes too."""
MOST: Final = 100
"""Marks; more have no room to be moved to."""
_ROUNDS: Final = 80
_NEXT: Final = 2.4
"""Angle between the directions in which marks of the very same place leave it, in radians."""
_SLACK: Final = 0.01


def apart(places: Sequence[Place], *, edge: float) -> tuple[Place, ...]:
    """The places, none nearer to another than `LEAST` as far as there is room; `edge` percent stay free."""
    moved = list(places)
    if len(moved) > MOST:
        return tuple(moved)
    for _ in range(_ROUNDS):
        if not _pushed(moved, edge):
            break
    return tuple(moved)


def _pushed(places: list[Place], edge: float) -> bool:
    """One round; False if nothing was too near."""
    pushed = False
    for second in range(len(places)):
        for first in range(second):
            across, down = _between(places[first], places[second], second)
            gap = math.dist(places[first], places[second])
            if gap < LEAST - _SLACK:
                step = (LEAST - gap) / 2
                places[first] = _within(places[first], -step * across, -step * down, edge)
                places[second] = _within(places[second], step * across, step * down, edge)
                pushed = True
    return pushed


def _between(first: Place, second: Place, number: int) -> Place:
    """The direction from one to the other, of length 1; of two in one place each number has its own."""
    gap = math.dist(first, second)
    if gap < _SLACK:
        return math.cos(_NEXT * number), math.sin(_NEXT * number)
    return (second[0] - first[0]) / gap, (second[1] - first[1]) / gap


def _within(place: Place, across: float, down: float, edge: float) -> Place:
    left, top = (min(100 - edge, max(edge, value)) for value in (place[0] + across, place[1] + down))
    return left, top
