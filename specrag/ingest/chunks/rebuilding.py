"""The pages of a document from its chunks alone: every character in its place, overlaps once.

So a document can be shown, exported and cut anew without the file that it came from. White space at the end
of a page belongs to no chunk and is not kept; readers leave none.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from specrag.types import Chunk, Heading, Page

_LONGEST_OVERLAP = 8192
_SHORTEST_OVERLAP = 8
"""Characters; fewer that are equal are no overlap but chance."""


def rebuilt(chunks: Sequence[Chunk]) -> tuple[Page, ...]:
    """The pages that these chunks of one document were cut from.

    A page without text is there if a later one has a chunk. Headings are placed where they are found in the
    text before the first chunk that stands under them.
    """
    ordered = sorted(chunks, key=lambda chunk: chunk.position)
    if _is_of_old(ordered):
        return tuple(_page_of_old(list(of_page)) for _, of_page in groupby(ordered, lambda chunk: chunk.page))
    by_part = {part: list(of_part) for part, of_part in groupby(ordered, lambda chunk: chunk.part)}
    offset = _numbering(by_part)
    return tuple(
        _page(by_part[part])
        if part in by_part
        else Page(text="", number=None if offset is None else part + offset)
        for part in range(max(by_part, default=-1) + 1)
    )


def _page(chunks: Sequence[Chunk]) -> Page:
    text = "".join(_pieces(chunks))
    first = chunks[0]
    return Page(text=text, number=first.page, section=first.section, headings=_headings(chunks, text))


def _pieces(chunks: Sequence[Chunk]) -> Iterator[str]:
    """What each chunk adds to the ones before it."""
    reached = 0
    for chunk in chunks:
        end = chunk.start + len(chunk.text)
        if chunk.start >= reached:
            yield chunk.gap
            yield chunk.text
        else:
            yield chunk.text[reached - chunk.start :]
        reached = max(reached, end)


def _headings(chunks: Sequence[Chunk], text: str) -> tuple[Heading, ...]:
    changes = [(before, after) for before, after in pairwise(chunks) if before.section != after.section]
    found = []
    for before, after in changes:
        if after.section:
            at = text.rfind(after.section, before.start, after.start + len(after.section))
            line = text.rfind("\n", before.start, at) + 1 if at >= 0 else 0
            found.append(Heading(start=line or max(at, 0) or after.start, text=after.section))
    return tuple(found)


def _numbering(by_part: dict[int, list[Chunk]]) -> int | None:
    """What is added to a part to get the number of its page, if that is the same for all."""
    offsets = {None if chunks[0].page is None else chunks[0].page - part for part, chunks in by_part.items()}
    return offsets.pop() if len(offsets) == 1 else None


def _is_of_old(chunks: Sequence[Chunk]) -> bool:
    """Whether an older version of this program cut them, which did not note the places."""
    return len(chunks) > 1 and not any(chunk.part or chunk.start or chunk.gap for chunk in chunks)


def _page_of_old(chunks: Sequence[Chunk]) -> Page:
    """As near to the page as can be: where two chunks begin and end alike, they overlap."""
    text = chunks[0].text
    for chunk in chunks[1:]:
        shared = _shared(text, chunk.text)
        text += chunk.text[shared:] if shared else f"\n{chunk.text}"
    return Page(text=text, number=chunks[0].page)


def _shared(before: str, after: str) -> int:
    longest = min(len(before), len(after), _LONGEST_OVERLAP)
    lengths = range(longest, _SHORTEST_OVERLAP - 1, -1)
    return next((length for length in lengths if before.endswith(after[:length])), 0)
