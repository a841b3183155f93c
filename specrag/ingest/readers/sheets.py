"""Workbooks of all kinds (XLSX, XLS, XLSB, ODS) through calamine: a page for each sheet.

calamine keeps a sheet as a full grid, so one stray cell in the last corner would take all memory: the corners
are looked up before it is asked. Hidden sheets are read too.
"""

import datetime as dt
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from xml.parsers import expat

from specrag.errors import DocumentError
from specrag.ingest.inside import OLE
from specrag.ingest.readers.container import members, packed
from specrag.ingest.readers.content import Content, Gathering, Source, counted
from specrag.ingest.readers.office import statements
from specrag.ingest.readers.tables import lines, tidy
from specrag.ingest.text import prose

_CELL = re.compile(
    rb"<(?:\w+:)?c\s[^>]*?\br\s*=\s*[\"']([A-Z]{1,3})(\d{1,12})[\"'][^>]*(?<!/)>\s*<(?:\w+:)?(?:v|is|f)\b"
)
_FILLED = re.compile(rb"<table:table-cell[^>]*office:value-type[^>]*>")
_REPEATED = re.compile(rb"table:number-(?:columns|rows)-repeated=[\"'](\d{1,12})[\"']")
_MOST_CELLS = 20_000_000
"""Cells of the grid of one sheet; 640 MB."""


def read_sheets(source: Source) -> Content:
    """The rows of a workbook, a page for each sheet that has any.

    Raises:
        DocumentError: `corrupt`, `encrypted`, `no_pages` or `too_large`.
    """
    data = source.data
    title = published_at = None
    if not data.startswith(OLE):
        parts = members(source)
        _check(parts, source)
        data = packed(parts)
        title, published_at = statements(data)
    with _opened(data, source.name) as book:
        gathering = Gathering(source, unit="sheets")
        names = book.sheet_names
        gathering.expect(len(names))
        for place, name in enumerate(names):
            source.on_page(place, len(names))
            text = _text(book, place, source)
            if text:
                gathering.add(text, section=tidy(name) or None)
    if not names:
        raise DocumentError("no_pages", f"{source.name} is a workbook without a single sheet.")
    source.on_page(len(names), len(names))
    return Content(pages=gathering.pages, title=title, published_at=published_at)


def _text(book: Any, place: int, source: Source) -> str:
    from python_calamine import SheetTypeEnum, WorksheetNotFound

    if book.sheets_metadata[place].typ in (SheetTypeEnum.ChartSheet, SheetTypeEnum.Vba):
        return ""
    try:
        sheet = book.get_sheet_by_index(place)
    except WorksheetNotFound:
        return ""
    _check_grid(sheet.total_height * sheet.total_width, source.name)
    return prose("\n".join(counted(lines(_rows(sheet)), source)))


def _rows(sheet: Any) -> Iterator[list[str]]:
    """Cells as texts. One that is merged over several rows is in each, so that each says what it means."""
    below = _merged_down(sheet)
    reaching: dict[int, tuple[str, int]] = {}
    for number, cells in enumerate(sheet.iter_rows()):
        row = [_shown(cell) for cell in cells]
        if any(row):
            for column, (text, last) in reaching.items():
                if number <= last:
                    row[column] = row[column] or text
        for column, last in below.get(number, ()):
            if 0 <= column < len(row):
                reaching[column] = (row[column], last)
        yield row


def _merged_down(sheet: Any) -> dict[int, list[tuple[int, int]]]:
    """For each row the cells merged with those below: column, counted from the first in use, and last row."""
    below: dict[int, list[tuple[int, int]]] = {}
    first = sheet.start[1] if sheet.start else 0
    for (top, left), (bottom, _) in sheet.merged_cell_ranges or ():
        if bottom > top:
            below.setdefault(top, []).append((left - first, bottom))
    return below


def _shown(value: Any) -> str:
    """The value of a cell without its format: 0.5 for 50%; numbers with the fifteen digits that are kept."""
    match value:
        case str():
            return tidy(value)
        case float():
            return f"{value:.15g}"
        case dt.datetime():
            return value.isoformat(" ", "seconds").removesuffix(" 00:00:00")
        case dt.timedelta():
            return _duration(round(value.total_seconds()))
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return tidy(str(value).upper() if isinstance(value, bool) else str(value))


def _duration(seconds: int) -> str:
    """Hours, minutes and seconds; a run of 30 hours is no day and six hours."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), 60)
    return f"{sign}{minutes // 60}:{minutes % 60:02}:{rest:02}"


@contextmanager
def _opened(data: bytes, name: str) -> Iterator[Any]:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
            yield book
    except PasswordError as error:
        raise DocumentError(
            "encrypted", f"{name} is protected by a password; save it without one and upload it again."
        ) from error
    except (CalamineError, OSError, ValueError, OverflowError) as error:
        raise DocumentError("corrupt", f"{name} is damaged: it is no complete workbook.") from error
    except BaseException as error:
        # A panic of the Rust library is no Exception; anything else that is none must pass.
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise DocumentError("corrupt", f"{name} is damaged: it is no complete workbook.") from error


def _check(parts: Mapping[str, bytes], source: Source) -> None:
    for content in parts.values():
        _refuse_cut(content, source.name)
        _check_grid(_grid(content), source.name)


def _check_grid(cells: int, name: str) -> None:
    if cells > _MOST_CELLS:
        raise DocumentError(
            "too_large", f"{name} has a sheet whose filled cells lie too far apart; delete the stray ones."
        )


def _refuse_cut(content: bytes, name: str) -> None:
    """Refuse XML that is not whole: calamine waits for ever for the end of a sheet that was cut off."""
    if content[:4].lstrip(b"\xef\xbb\xbf\xff\xfe \r\n\t\0")[:1] != b"<":
        return
    try:
        expat.ParserCreate().Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DocumentError(
            "corrupt", f"{name} is damaged: a part of it is cut off; get a fresh copy."
        ) from error


def _grid(content: bytes) -> int:
    """Cells from the first to the last of a sheet that is filled, over the whole rectangle between."""
    if b"office:spreadsheet" in content:
        return sum(map(_repeated_row, content.split(b"<table:table-row")))
    right = bottom = 0
    for found in _CELL.finditer(content):
        right, bottom = max(right, _column(found[1])), max(bottom, int(found[2]))
    return right * bottom


def _repeated_row(row: bytes) -> int:
    """Filled cells of a row of an OpenDocument sheet, in all places where it is to be repeated."""
    cells = sum(_times(cell[0]) for cell in _FILLED.finditer(row))
    return cells and cells * _times(row.partition(b">")[0])


def _times(tag: bytes) -> int:
    found = _REPEATED.search(tag)
    return int(found[1]) if found else 1


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number
