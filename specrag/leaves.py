"""The pages of a document as they are turned: their text, and where in it a passage and its evidence stand.

A passage is found by its chunk, which knows its place. A citation may be older than the chunks of today
(another chunker, another reader), and chunks may be older than places, so a text is looked for where no chunk
says where it stands. Pure: no store, no files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from specrag.ingest.chunks.rebuilding import rebuilt
from specrag.types import Chunk, Page, Passage

Mark: TypeAlias = Literal["none", "passage", "evidence"]

WINDOW: Final = 20_000
"""Characters of a long page that are shown at once; a text file of any length is one page."""
_SLACK: Final = 400
"""How far a window may move to begin between two words."""
_LONGEST_LOOSE: Final = 20_000
"""A longer text is only looked for as it is: spaces that differ cost too much there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of text with what it is."""

    text: str
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a passage stands: from `start` to `end` in the text of a leaf, in code points."""

    part: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """The pages of a document in order, up to the last one with text."""

    pages: tuple[Page, ...]
    places: Mapping[str, Place]
    """Of its chunks, by id."""

    @property
    def characters(self) -> int:
        """Size of all texts."""
        return sum(len(page.text) for page in self.pages)


def leaves_of(chunks: Sequence[Chunk]) -> Leaves:
    """The pages that the chunks of one document were cut from."""
    pages = rebuilt(chunks)
    stated = ((chunk, chunk.part, chunk.start) for chunk in chunks)
    places = {
        chunk.id: Place(part=part, start=start, end=start + len(chunk.text))
        for chunk, part, start in stated
        if part < len(pages) and pages[part].text.startswith(chunk.text, start)
    }
    return Leaves(pages=pages, places=places)


def place_of(leaves: Leaves, passage: Passage | Chunk) -> Place | None:
    """Where a passage stands, by its chunk or by its text; None if the document no longer says it."""
    known = leaves.places.get(passage.id)
    if known and leaves.pages[known.part].text[known.start : known.end] == passage.text:
        return known
    parts = range(len(leaves.pages))
    for part in sorted(parts, key=lambda part: leaves.pages[part].number != passage.page):
        if span := found_in(leaves.pages[part].text, passage.text):
            return Place(part=part, start=span[0], end=span[1])
    return None


def found_in(text: str, wanted: str, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
    """Where a text stands within another, spaces and line breaks aside; None if nowhere."""
    stop, wanted = len(text) if end is None else end, wanted.strip()
    if not wanted:
        return None
    at = text.find(wanted, start, stop)
    if at >= 0:
        return at, at + len(wanted)
    if len(wanted) > _LONGEST_LOOSE:
        return None
    loose = re.compile(r"\s+".join(re.escape(word) for word in wanted.split()))
    match = loose.search(text, start, stop)
    return match.span() if match else None


def pieces_of(
    text: str, window: tuple[int, int], place: Place | None, evidence: Sequence[str]
) -> tuple[Piece, ...]:
    """The text within the window, cut where marks begin and end; the pieces join to it."""
    first, last = window
    cuts: list[tuple[int, int, Mark]] = []
    if place is None:
        cuts.append((first, last, "none"))
    else:
        cuts += [(first, place.start, "none"), *_within(text, place, evidence), (place.end, last, "none")]
    inside = ((max(first, start), min(last, end), mark) for start, end, mark in cuts)
    return tuple(Piece(text=text[start:end], mark=mark) for start, end, mark in inside if start < end)


def _within(text: str, place: Place, evidence: Sequence[str]) -> Iterator[tuple[int, int, Mark]]:
    """The passage, cut at its evidence, which comes in the order of the text."""
    at = place.start
    for sentence in evidence:
        if span := found_in(text, sentence, at, place.end):
            yield at, span[0], "passage"
            yield *span, "evidence"
            at = span[1]
    yield at, place.end, "passage"


def window_of(text: str, at: int | None, place: Place | None) -> tuple[int, int]:
    """The part of a long text that begins about `at`, or else stands around the place."""
    if len(text) <= WINDOW:
        return 0, len(text)
    around = (place.start + place.end - WINDOW) // 2 if place else 0
    wanted = max(0, min(around if at is None else at, len(text) - 1))
    start = _between_words(text, wanted)
    return start, _between_words(text, min(len(text), start + WINDOW))


def _between_words(text: str, at: int) -> int:
    """The nearest place before `at` where a line or a word ends."""
    if at in (0, len(text)):
        return at
    for mark in ("\n", " "):
        found = text.rfind(mark, max(0, at - _SLACK), at)
        if found >= 0:
            return found + 1
    return at
