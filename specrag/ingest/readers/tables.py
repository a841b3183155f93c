"""Rows as lines that still say what they mean when a chunk holds only some of them.

A row below a recognisable header becomes a record, `Column: value; Column: value`, so that a small model need
not count columns and no chunk depends on the one before it. Without such a header, or where repeating it
would be too much text, cells stand side by side: `a | b | c`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

_SAMPLE = 50
_NAME_LENGTH = 60
_NUMBER = re.compile(r"[-+(]?[\d\s.,'%€$£¥/:()-]*\d[\d\s.,'%€$£¥/:()-]*(?:[eE][-+]?\d+)?")
_COVERED = 0.5
"""Share of the columns in use that a header has to name."""

Row = Sequence[str]


def lines(rows: Iterable[Row], *, records: bool = True) -> Iterator[str]:
    """One line for each row that has any text.

    Args:
        rows: cells without line breaks, as `tidy` makes them.
        records: whether rows below a header may repeat its names.
    """
    filled = (row for row in rows if any(row))
    first = list(islice(filled, _SAMPLE))
    at = _header(first) if records else None
    if at is None:
        yield from map(beside, chain(first, filled))
        return
    names = first[at]
    # A column without a value is named in no record.
    used = {place for row in first[at + 1 :] for place, cell in enumerate(row) if cell}
    unused = any(name and place not in used for place, name in enumerate(names))
    yield from map(beside, first[: at + unused])
    for row in chain(first[at + 1 :], filled):
        # A header that is repeated for print is no record.
        yield beside(row) if row == names else record(row, names)


def beside(row: Row) -> str:
    """Cells side by side, without the empty ones at the end."""
    last = max((place for place, cell in enumerate(row) if cell), default=-1)
    return " | ".join(row[: last + 1])


def record(row: Row, names: Row) -> str:
    """A row as `Column: value; Column: value`; empty cells are left out, as are names that are missing."""
    return "; ".join(
        f"{names[place]}: {cell}" if place < len(names) and names[place] else cell
        for place, cell in enumerate(row)
        if cell
    )


def tidy(cell: str) -> str:
    """The text of a cell on one line."""
    return " ".join(cell.split())


def width_of_header(rows: Sequence[Row]) -> int:
    """Characters that each record would repeat, 0 where there is no header."""
    at = _header(rows[:_SAMPLE])
    return 0 if at is None else sum(len(name) + 2 for name in rows[at])


def _header(rows: Sequence[Row]) -> int | None:
    """The place of the row that names the columns: the first of several cells, behind titles of one cell."""
    at = next((place for place, row in enumerate(rows) if sum(map(bool, row)) > 1), None)
    if at is None or at + 1 >= len(rows):
        return None
    below = rows[at + 1 :]
    names = [cell for cell in rows[at] if cell]
    used = {place for row in below for place, cell in enumerate(row) if cell}
    named = {place for place, cell in enumerate(rows[at]) if cell}
    if len(set(names)) < len(names) or not all(map(_is_name, names)):
        return None
    return at if used and len(used & named) >= max(1, _COVERED * len(used)) else None


def _is_name(cell: str) -> bool:
    return len(cell) <= _NAME_LENGTH and not _NUMBER.fullmatch(cell) and not cell.endswith((".", "。"))
