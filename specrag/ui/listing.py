"""Which part of a long list is shown: searched, sorted, and fifty at a time; a thousand stay quick."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from specrag.types import DocumentInfo

SHOWN: Final = 50
"""Rows of one page of a list."""
SortName: TypeAlias = Literal["added", "title", "size"]
SORTS: Final[tuple[tuple[str, SortName], ...]] = (
    ("Newest first", "added"),
    ("By title", "title"),
    ("Largest first", "size"),
)
"""Orders of the list of documents, as the page calls them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Generic[T]):
    """One page of a list."""

    rows: tuple[T, ...]
    found: int
    """Rows on all pages."""
    page: int
    """From 1, and never beyond the last one."""
    pages: int

    @property
    def first(self) -> int:
        """Number of the first row that is shown, from 1; 0 if there is none."""
        return (self.page - 1) * SHOWN + 1 if self.rows else 0

    @property
    def last(self) -> int:
        """Number of the last row that is shown."""
        return max(self.first + len(self.rows) - 1, 0)


def leaf(rows: Sequence[T], page: int) -> Leaf[T]:
    """A page of `rows`; a page that does not exist, because rows were deleted, is the nearest one."""
    pages = max(1, -(-len(rows) // SHOWN))
    shown = min(max(page, 1), pages)
    start = (shown - 1) * SHOWN
    return Leaf(rows=tuple(rows[start : start + SHOWN]), found=len(rows), page=shown, pages=pages)


def listed(documents: Sequence[DocumentInfo], *, search: str = "", sort: str = "added") -> list[DocumentInfo]:
    """The documents whose title or file name has every word of `search`, in the order that is asked for.

    `documents` come newest first; whatever is no known order leaves them so.
    """
    words = _plain(search).split()
    found = [item for item in documents if _has(item, words)]
    if sort == "title":
        found.sort(key=lambda item: (_plain(item.title), item.source))
    elif sort == "size":
        found.sort(key=lambda item: (item.bytes, item.chunks), reverse=True)
    return found


def _has(document: DocumentInfo, words: Sequence[str]) -> bool:
    if not words:
        return True
    text = _plain(f"{document.title}\n{document.source}")
    return all(word in text for word in words)


def _plain(text: str) -> str:
    """Without case and accents, so that a search finds what a person would call the same word."""
    spread = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in spread if not unicodedata.combining(sign))
