"""What stands before a place in a page: the heading that it is under, and the header row of its table. Pure.

Both are found in one pass over the page, because a sheet of a hundred thousand rows has as many places.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from specrag.types import Page

CELLS = " | "
"""Between the cells of a row."""
_RULE = re.compile(r"(?=.*-)[\s|:+=-]+")
"""The line of dashes that Markdown wants below a header row."""
_SECTION = 200
_LEAD = 160
"""Characters that are kept of a heading and of a header row."""


@dataclass(frozen=True, slots=True)
class _Table:
    start: int
    end: int
    header: str


class Context:
    """Answers for one page."""

    def __init__(self, page: Page) -> None:
        self._section = _line(page.section, _SECTION)
        headings = sorted((heading.start, heading.text) for heading in page.headings if heading.text.strip())
        self._heading_at = [start for start, _ in headings]
        self._headings = [text for _, text in headings]
        self._tables = list(_tables(page.text))
        self._table_at = [table.start for table in self._tables]

    def section(self, place: int) -> str | None:
        """The nearest heading at or before a place, else the section of the page."""
        before = bisect_right(self._heading_at, place)
        return _line(self._headings[before - 1], _SECTION) if before else self._section

    def lead(self, place: int) -> str | None:
        """The header row of the table that a place lies in, unless the place is in that row."""
        before = bisect_right(self._table_at, place)
        if not before:
            return None
        table = self._tables[before - 1]
        inside = table.start + len(table.header) < place < table.end
        return _line(table.header, _LEAD) if inside else None


def _tables(text: str) -> Iterator[_Table]:
    """Stretches of neighbouring rows; the first is the header."""
    start, end, header = 0, -1, ""
    at = 0
    for line in text.split("\n"):
        after = at + len(line) + 1
        if CELLS in line or (end == at and _RULE.fullmatch(line)):
            if end != at:
                if end > start:
                    yield _Table(start, end, header)
                start, header = at, line
            end = after
        at = after
    if end > start:
        yield _Table(start, end, header)


def _line(text: str | None, limit: int) -> str | None:
    return " ".join((text or "")[: 4 * limit].split())[:limit].strip() or None
