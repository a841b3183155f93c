"""Lines that were found on a picture, in the order of reading. Pure; the only evidence is where they stand.

Two columns of prose are told from the rows of a table by their width: what fills nearly half of the page on
both sides of a gap that hardly any line crosses is read down one side, then down the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

_TRIES = 21
"""Places in the middle third of the page at which a gap is looked for."""
_CROSSING = 0.2
_COLUMN = 0.3
"""Share of the width of all text that a line of a column fills."""
_FEW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of text and its place in a picture, in pixels from the upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        """Of its height."""
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        """Of the line."""
        return self.bottom - self.top


def in_order(lines: Sequence[Line]) -> list[list[list[Line]]]:
    """Blocks of rows of lines, all in the order of reading."""
    written = [line for line in lines if line.text]
    return [list(_rows(block)) for block in _blocks(written) if block]


def text_of_lines(lines: Sequence[Line]) -> str:
    """The text of all lines: a row is a line, and a larger gap an empty one."""
    return "\n".join(_written(rows) for rows in in_order(lines))


def _blocks(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Parts of the page, each to be read from its top to its bottom."""
    gap = _gap(lines)
    if gap is None:
        yield list(lines)
        return
    left: list[Line] = []
    right: list[Line] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if line.left < gap < line.right:  # a title above both columns
            yield from (left, right, [line])
            left, right = [], []
        else:
            (left if line.right <= gap else right).append(line)
    yield from (left, right)


def _gap(lines: Sequence[Line]) -> float | None:
    """Where two columns of prose part, if there are two."""
    if len(lines) < 2 * _FEW:
        return None
    first, last = min(line.left for line in lines), max(line.right for line in lines)
    width = last - first
    places = [first + width * (1 / 3 + step / (3 * (_TRIES - 1))) for step in range(_TRIES)]
    gap = min(places, key=lambda place: sum(line.left < place < line.right for line in lines))
    left = [line.right - line.left for line in lines if line.right <= gap]
    right = [line.right - line.left for line in lines if line.left >= gap]
    crossing = len(lines) - len(left) - len(right)
    columns = min(len(left), len(right)) >= _FEW and crossing <= _CROSSING * len(lines)
    return gap if columns and min(median(left), median(right)) >= _COLUMN * width else None


def _written(rows: Sequence[Sequence[Line]]) -> str:
    written = ""
    above: Sequence[Line] = ()
    for row in rows:
        if above:
            space = min(line.top for line in row) - max(line.bottom for line in above)
            written += "\n\n" if space > median(line.height for line in row) else "\n"
        written += " ".join(line.text for line in row)
        above = row
    return written


def _rows(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Lines side by side."""
    row: list[Line] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if row and line.middle - row[0].middle > min(line.height, row[0].height) / 2:
            yield sorted(row, key=lambda line: line.left)
            row = []
        row.append(line)
    if row:
        yield sorted(row, key=lambda line: line.left)
