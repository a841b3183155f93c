"""Whether a table has a row that names its columns, and which.

Short texts alone prove nothing: a list of people has them in every row, and so has a cover sheet with a key
and its value in each. What tells a header is the difference between it and what stands below: a word above
numbers, dates or yes and no; names in small letters above texts that are not; an empty corner; or the same
row once more, as it is repeated for print.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_NAME_LENGTH = 60
_COVERED = 0.5
"""Share of the columns in use that a header has to name."""
_MOSTLY, _NEARLY_ALL = 0.8, 0.95
"""Shares of the cells of a column that have to be of one kind. The second is for tables of two columns, which
may be keys and their values."""
_TWO = 2
_NUMBER = re.compile(r"[-+(]?[\d\s.,'%€$£¥/:()-]*\d[\d\s.,'%€$£¥/:()-]*(?:[eE][-+]?\d+)?")
_UNIT = re.compile(r"[^\W\d_]{1,3}(?=[\s\d-])|(?<=[\s\d])[^\W\d_°]?[^\W\d_]{1,2}$")
_DATE = re.compile(
    r"\d{1,4}([-./])\d{1,2}\1\d{1,4}(?:[T ][\d:.]+Z?)?"
    r"|(?:\d{1,2}\.?[ -])?[^\W\d_]{3,9}\.?[ -](?:\d{1,2},? )?\d{2,4}"
)
_YES_NO = frozenset(("true", "false", "yes", "no", "y", "n", "x", "ja", "nein", "oui", "non", "sí", "si"))
_MISSING = frozenset(
    ("-", "--", "\u2013", "\u2014", "?", "n/a", "na", "n.a.", "null", "none", "nan", "..", "…")
)

Row = Sequence[str]


def header(rows: Sequence[Row]) -> int | None:
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
    covered = bool(used) and len(used & named) >= max(1, _COVERED * len(used))
    return at if covered and _differs(rows[at], below) else None


def _differs(names: Row, below: Sequence[Row]) -> bool:
    """Whether the row is another kind of row than those below it."""
    width = max(len(row) for row in (names, *below))
    columns = [[row[place] for row in below if place < len(row) and row[place]] for place in range(width)]
    named = [columns[place] for place, name in enumerate(names) if name and columns[place]]
    in_use = sum(map(bool, columns))
    corner = not names[0] and in_use > _TWO and len(columns[0]) == len(below)
    small = all(map(_is_small, filter(None, names))) and not any(map(_is_small, columns[0]))
    share = _MOSTLY if in_use > _TWO else _NEARLY_ALL
    return names in below or corner or small or any(_of_one_kind(column, share) for column in named)


def _of_one_kind(cells: Iterable[str], share: float) -> bool:
    """Whether a column holds numbers, or dates, or yes and no."""
    kinds = Counter(map(_kind, cells))
    del kinds["missing"]
    text = kinds.pop("text", 0)
    return bool(kinds) and max(kinds.values()) >= share * (kinds.total() + text)


def _kind(cell: str) -> str:
    lowered = cell.lower()
    if lowered in _MISSING:
        return "missing"
    if lowered in _YES_NO:
        return "yes or no"
    if _DATE.fullmatch(cell):
        return "date"
    return "number" if _NUMBER.fullmatch(_UNIT.sub("", cell).strip()) else "text"


def _is_small(cell: str) -> bool:
    return cell.islower()


def _is_name(cell: str) -> bool:
    return len(cell) <= _NAME_LENGTH and not _NUMBER.fullmatch(cell) and not cell.endswith((".", "。", ":"))
