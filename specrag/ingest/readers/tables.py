"""Rows as lines that still say what they mean when a chunk holds only some of them.

A row below a header becomes a record, `Column: value; Column: value`, so that a small model need not count
columns and no chunk depends on the one before it. Where a header is not certain, or where repeating it would
be too much text, cells stand side by side: `a | b | c`. A row that is wrongly taken for a header makes all
others lie, so short texts in the first row are not enough (see `headers`). An empty row ends a table.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice

from specrag.ingest.readers.headers import Row, header

_SAMPLE = 50
"""Rows of a table that are looked at."""


def lines(rows: Iterable[Row], *, records: bool = True) -> Iterator[str]:
    """One line for each row that has any text.

    Args:
        rows: cells without line breaks, as `tidy` makes them.
        records: whether rows below a header may repeat its names.
    """
    if records:
        yield from _tables(rows)
    else:
        yield from (beside(row) for row in rows if any(row))


def _tables(rows: Iterable[Row]) -> Iterator[str]:
    """The tables between empty rows; one without a header of its own has the last one, if it fits."""
    names: Row | None = None
    alone: list[Row] | None = []  # None behind the first table
    for filled, group in groupby(rows, any):
        if not filled:
            continue
        block = iter(group)
        first = list(islice(block, _SAMPLE))
        if alone == [] and len(first) == 1 and sum(map(bool, first[0])) > 1:
            alone = first  # The very first row may name what stands below an empty one.
            continue
        if alone and header(first) is None and header(alone + first) is not None:
            first, alone = alone + first, None
        yield from map(beside, alone or ())
        at = header(first)
        table = chain(first, block)
        if at is not None:
            names = first[at]
            yield from _headed(first, at, table)
        elif names is not None and _width(first) == _width([names]):
            yield from (record(row, names) for row in table)
        else:
            yield from map(beside, table)
        # Titles may stand above the first table.
        alone = alone if alone == [] and _width(first) == 1 else None
    yield from map(beside, alone or ())


def _headed(first: list[Row], at: int, table: Iterator[Row]) -> Iterator[str]:
    """A table below its header, which is the row `at` of its first rows."""
    names = first[at]
    # A column without a value is named in no record.
    used = {place for row in first[at + 1 :] for place, cell in enumerate(row) if cell}
    unused = any(name and place not in used for place, name in enumerate(names))
    yield from map(beside, first[: at + unused])
    for row in islice(table, at + 1, None):
        # A header that is repeated for print is no record.
        yield beside(row) if row == names else record(row, names)


def _width(rows: Iterable[Row]) -> int:
    """Columns up to the last one in use."""
    return max(place + 1 for row in rows for place, cell in enumerate(row) if cell)


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
    widest = 0
    for filled, block in groupby(rows, any):
        first = list(block)[:_SAMPLE]
        at = header(first) if filled else None
        widest = max(widest, 0 if at is None else sum(len(name) + 2 for name in first[at]))
    return widest
