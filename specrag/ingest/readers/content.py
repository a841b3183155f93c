"""What a reader hands over: the text of a file, page by page, and what the file says of itself."""

from dataclasses import dataclass

from specrag.types import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Text and statements of one file."""

    pages: tuple[Page, ...]
    title: str | None = None
    published_at: str | None = None
    """ISO date that the file states."""
    encoding: str | None = None
