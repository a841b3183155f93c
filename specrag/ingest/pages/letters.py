"""Where on a page the words of a passage stand, although the passage is not written as the page is.

Lines were joined, hyphens dropped, letters made plain. So both texts are reduced to what nothing of this
touches, letters and digits without accents, and compared as such. Each letter of the page keeps its place,
and the places of what was found become one box for each line.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from specrag.ingest.base import Box

_ANCHOR = 40
"""Letters at the beginning and the end of a passage by which it is found if something between differs."""
_SLACK = 1.3
_SAME_LINE = 0.4
_FAR = 3.0
"""A gap of so many line heights parts two boxes: cells, or columns."""
_PADDING = 0.12
"""Of a line's height, so that a mark does not touch the letters."""


class Place(NamedTuple):
    """A rectangle in shares of the page, from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


class Letters:
    """The text of a page, reduced, with the place of each letter."""

    def __init__(self, placed: Iterable[tuple[str, Place]]) -> None:
        """Take characters, or a few at one place, in the order of reading."""
        self._text = ""
        self._places: list[Place] = []
        reduced = [(_reduced(text), place) for text, place in placed]
        self._text = "".join(letters for letters, _ in reduced)
        self._places = [place for letters, place in reduced for _ in letters]

    def find(self, text: str, within: slice | None = None) -> slice | None:
        """Where a text is among the letters."""
        wanted = _reduced(text)
        start, stop = (within.start, within.stop) if within else (0, len(self._text))
        at = self._text.find(wanted, start, stop) if wanted else -1
        if at >= 0:
            return slice(at, at + len(wanted))
        return self._between_anchors(wanted, start, stop) if len(wanted) > 2 * _ANCHOR else None

    def boxes(self, found: slice | None) -> Iterator[Box]:
        """A box for each line of what was found."""
        if found is None:
            return
        line: Place | None = None
        for place in self._places[found]:
            if line is not None and _continues(line, place):
                line = _united(line, place)
            else:
                yield from [_box(line)] if line else []
                line = place
        yield from [_box(line)] if line else []

    def _between_anchors(self, wanted: str, start: int, stop: int) -> slice | None:
        at = self._text.find(wanted[:_ANCHOR], start, stop)
        end = self._text.find(wanted[-_ANCHOR:], at, stop) + _ANCHOR
        return slice(at, end) if at >= 0 and at < end <= at + len(wanted) * _SLACK else None


def _reduced(text: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(character for character in plain if character.isalnum())


def _continues(line: Place, place: Place) -> bool:
    height = min(line.bottom - line.top, place.bottom - place.top)
    overlap = min(line.bottom, place.bottom) - max(line.top, place.top)
    gap = max(place.left - line.right, line.left - place.right)
    return overlap > _SAME_LINE * height and gap < _FAR * (line.bottom - line.top)


def _united(line: Place, place: Place) -> Place:
    return Place(
        min(line.left, place.left),
        min(line.top, place.top),
        max(line.right, place.right),
        max(line.bottom, place.bottom),
    )


def _box(line: Place) -> Box:
    """With a margin, and never beyond the page."""
    margin = (line.bottom - line.top) * _PADDING
    left, top, right, bottom = (
        min(max(side, 0.0), 1.0)
        for side in (line.left - margin, line.top - margin, line.right + margin, line.bottom + margin)
    )
    return Box(left=left, top=top, width=right - left, height=bottom - top)
