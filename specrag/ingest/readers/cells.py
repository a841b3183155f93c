"""Tables of a page put in order before they are read: cells under their columns, and plain text in them.

A merged cell has its text once, and an empty cell wherever else it reaches, so that what follows keeps its
column. Lists and links in a small cell become plain text with commas: whoever looks for the main text of a
page takes a cell full of links for navigation, and drops what a fact sheet says.
"""

import re
from typing import Any

_WIDEST, _TALLEST = 50, 200
"""Columns and rows that a merged cell is followed over; a page may claim millions."""
_MOST = 20_000
"""Empty cells that one page may need."""
_SMALL = 2000
"""Characters of a cell; what is longer is no fact but a part of the layout."""
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LAYOUT = frozenset(("table", "h1", "h2", "h3", "h4", "h5", "h6", "article", "main", "nav", "form", "pre"))
_NAVIGATION = (
    "//*[@role='navigation' or contains(@class, 'navbox') or contains(@class, 'sidebar')][not(self::body)]"
)


def arrange(root: Any) -> None:
    """Simplify small cells, and follow merged ones over their columns and rows."""
    from lxml import etree

    etree.strip_elements(root, "style", with_tail=False)  # which would count as the text of a cell
    skipped = {cell for part in root.xpath(_NAVIGATION) for cell in part.iter("td", "th")}
    for cell in [cell for cell in root.iter("td", "th") if cell not in skipped]:
        inner = list(cell.iter())[1:]
        if inner and not any(child.tag in _LAYOUT for child in inner) and len(cell.text_content()) <= _SMALL:
            _simplify(cell)
    _spread(root)


def _simplify(cell: Any) -> None:
    from lxml import etree

    for child in list(cell.iter())[1:]:
        if not isinstance(child.tag, str):
            continue
        hidden = child.get("hidden") is not None or _HIDDEN.search(child.get("style") or "")
        if hidden or child.tag == "script":
            child.drop_tree()
        elif child.tag == "li" and child.getnext() is not None and child.getnext().tag == "li":
            child.tail = ", "
        elif child.tag in ("p", "div", "br", "ul", "ol", "dd", "dt"):
            child.tail = f" {child.tail or ''}"
    etree.strip_tags(cell, "a", "ul", "ol", "li", "div", "span", "p")


def _spread(root: Any) -> None:
    """Put an empty cell into `root` for each place that a merged cell covers beside its own."""
    left = _MOST
    for table in root.iter("table"):
        hanging: dict[int, int] = {}
        for row in table.iter("tr"):
            if next(row.iterancestors("table")) is not table:
                continue
            left -= _fill(row, hanging)
            if left < 0:
                return


def _fill(row: Any, hanging: dict[int, int]) -> int:
    """Fill one row; `hanging` says for how many rows a cell from above still covers each column."""
    column = filled = 0
    for cell in [child for child in row if child.tag in ("td", "th")]:
        while hanging.get(column, 0):
            cell.addprevious(_empty(cell))
            hanging[column] -= 1
            column, filled = column + 1, filled + 1
        across, down = _span(cell, "colspan", _WIDEST), _span(cell, "rowspan", _TALLEST)
        # Whoever follows merged cells, too, would shift what comes behind them once more.
        cell.attrib.pop("colspan", None)
        cell.attrib.pop("rowspan", None)
        for place in range(across):
            hanging[column + place] = down - 1
        for _ in range(across - 1):
            extra = _empty(cell)
            extra.tail, cell.tail = cell.tail, None
            cell.addnext(extra)
        column, filled = column + across, filled + across - 1
    for place, rows in hanging.items():
        if place >= column and rows:
            hanging[place] = rows - 1
    return filled


def _empty(cell: Any) -> Any:
    return cell.makeelement("td", {})


def _span(cell: Any, name: str, most: int) -> int:
    stated = cell.get(name, "1").strip()
    return max(1, min(most, int(stated))) if stated.isascii() and stated.isdigit() else 1
