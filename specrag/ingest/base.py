"""What reading a file means to those who ask for it, wherever the reading is done.

A file may be read in this process (`HereReader`) or in one that may be killed (`ReadingProcess`); whoever
takes a `FileReader` cannot tell the difference, except that the second survives every file.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from specrag.types import Document

OnPage: TypeAlias = Callable[[int, int], None]
"""Called as (done, total) while pages are read."""
Cancelled: TypeAlias = Callable[[], bool]
"""Asked again and again whether to stop."""


class ReadingCancelled(Exception):
    """The caller's own `cancelled` turned true. No error: what was asked for has happened."""


def never() -> bool:
    """Nobody cancels."""
    return False


class FileReader(Protocol):
    """Makes a document of a file."""

    def read(
        self,
        path: Path,
        name: str,
        *,
        password: str | None = None,
        on_page: OnPage | None = None,
        cancelled: Cancelled = never,
    ) -> Document:
        """Read one file.

        Args:
            path: where the bytes are now.
            name: what the visitor calls the file.
            password: opens an encrypted file.
            on_page: called as `(done, total)` while pages are read.
            cancelled: asked again and again; True ends the reading.

        Raises:
            DocumentError: with a stable reason and a sentence that names the file and the remedy.
            ReadingCancelled: `cancelled` turned true.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle on a page; all four are shares of the page's width or height, in [0, 1]."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageImage:
    """A page as it looks, with the places of a passage on it."""

    data: bytes
    media_type: str
    """Of `data`: "image/webp" or "image/png"."""
    width: int
    """In pixels, as is `height`."""
    height: int
    passage: tuple[Box, ...] = ()
    """One box for each line of the passage; empty if its text is not found on the page."""
    evidence: tuple[Box, ...] = ()
