"""What every reader is given and what it hands over; one protocol, so that readers stand in a table.

A reader takes a `Source` and returns a `Content`. The limits are part of the source because a reader has to
stop while it reads: a file that is refused only when all its text has been built has cost the memory already.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.types import Heading, Page

OnPage: TypeAlias = Callable[[int, int], None]
MEGABYTE = 1_000_000


def unheard(_done: int, _total: int) -> None:
    """Progress that nobody follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one file may cost."""

    pages: int
    """Pages, slides, sheets or chapters."""
    characters: int
    """Of text, after reading."""
    unpacked: int
    """Bytes that a container may unpack to."""

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """The limits that are set."""
        return cls(
            pages=settings.max_pages,
            characters=settings.max_characters,
            unpacked=settings.max_unpacked_mb * MEGABYTE,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The bytes of a file, and how they may be read."""

    data: bytes
    name: str
    """As it is shown."""
    limits: Limits
    password: str | None = None
    ocr: bool = True
    """Whether scans may be read by OCR."""
    on_page: OnPage = unheard


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Text and statements of one file."""

    pages: tuple[Page, ...]
    title: str | None = None
    published_at: str | None = None
    """ISO date that the file states."""
    encoding: str | None = None


Reader: TypeAlias = Callable[[Source], Content]
"""Raises `DocumentError` with a stable reason, and nothing else."""


class Gathering:
    """Pages as they are read, refused as soon as they are too many or too long."""

    def __init__(self, source: Source, *, unit: str = "pages") -> None:
        self._source = source
        self._unit = unit
        self._pages: list[Page] = []
        self._characters = 0

    def expect(self, total: int) -> None:
        """Refuse `total` pages before the first is read.

        Raises:
            DocumentError: `too_large`.
        """
        limit = self._source.limits.pages
        if total > limit:
            raise DocumentError(
                "too_large",
                f"{self._source.name} has {total} {self._unit}, more than the {limit} that SPECRAG_MAX_PAGES"
                " allows; split it.",
            )

    def add(
        self,
        text: str,
        *,
        number: int | None = None,
        section: str | None = None,
        headings: tuple[Heading, ...] = (),
    ) -> None:
        """Take one page.

        Raises:
            DocumentError: `too_large`.
        """
        self.expect(len(self._pages) + 1)
        self._characters += len(text)
        check_characters(self._characters, self._source)
        self._pages.append(Page(text=text, number=number, section=section, headings=headings))

    @property
    def left(self) -> int:
        """Characters that may still come."""
        return self._source.limits.characters - self._characters

    @property
    def pages(self) -> tuple[Page, ...]:
        """All pages so far."""
        return tuple(self._pages)


def check_characters(count: int, source: Source) -> None:
    """Refuse text above the limit.

    Raises:
        DocumentError: `too_large`.
    """
    if count > source.limits.characters:
        raise DocumentError(
            "too_large",
            f"{source.name} has more than the {source.limits.characters} characters of text that"
            " SPECRAG_MAX_CHARACTERS allows; split it.",
        )


def counted(lines: Iterable[str], source: Source) -> Iterator[str]:
    """The same lines, until they are too many characters.

    Raises:
        DocumentError: `too_large`.
    """
    total = 0
    for line in lines:
        total += len(line) + 1
        check_characters(total - 1, source)
        yield line
