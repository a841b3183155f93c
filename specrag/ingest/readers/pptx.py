"""Slides through python-pptx: one page for each, with its title, texts, tables and the speaker's notes.

Texts come in the order in which the slide names its shapes, groups opened; numbers, dates and footers that a
template repeats on every slide are left out. Hidden slides are read: hidden from the audience is not secret.
"""

import io
from collections.abc import Iterator
from typing import Any

from specrag.errors import DocumentError
from specrag.ingest.readers.container import DAMAGED, members, packed
from specrag.ingest.readers.content import Content, Gathering, Source
from specrag.ingest.readers.office import statements
from specrag.ingest.readers.tables import beside, lines, tidy
from specrag.ingest.text import prose

_DEPTH = 20
_REPEATED = frozenset(("sldNum", "dt", "ftr"))
_BROKEN = (*DAMAGED, AttributeError, TypeError, RecursionError, AssertionError)


def read_pptx(source: Source) -> Content:
    """The text of a presentation, a page for each slide.

    Raises:
        DocumentError: `corrupt`, `encrypted`, `no_pages` or `too_large`.
    """
    from lxml import etree
    from pptx import Presentation
    from pptx.exc import PythonPptxError

    whole = packed(members(source))
    try:
        slides = Presentation(io.BytesIO(whole)).slides
        return _content(slides, source, statements(whole))
    except (*_BROKEN, PythonPptxError, etree.LxmlError) as error:
        raise DocumentError(
            "corrupt", f"{source.name} is damaged: it is no complete PowerPoint presentation."
        ) from error


def _content(slides: Any, source: Source, stated: tuple[str | None, str | None]) -> Content:
    total = len(slides)
    if total == 0:
        raise DocumentError("no_pages", f"{source.name} is a presentation without a single slide.")
    gathering = Gathering(source, unit="slides")
    gathering.expect(total)
    for number, slide in enumerate(slides, start=1):
        source.on_page(number - 1, total)
        title = _title(slide)
        gathering.add(prose("\n\n".join(_blocks(slide, title))), number=number, section=title)
    source.on_page(total, total)
    first = gathering.pages[0].section
    return Content(pages=gathering.pages, title=stated[0] or first, published_at=stated[1])


def _title(slide: Any) -> str | None:
    shape = slide.shapes.title
    return tidy(shape.text_frame.text) or None if shape is not None else None


def _blocks(slide: Any, title: str | None) -> Iterator[str]:
    if title:
        yield title
    shape = slide.shapes.title
    heading = None if shape is None else shape.shape_id
    for text in _texts(slide.shapes, heading, 0):
        if text.strip():
            yield text
    if slide.has_notes_slide:
        frame = slide.notes_slide.notes_text_frame
        if frame is not None and frame.text.strip():
            yield f"Notes: {frame.text}"


def _texts(shapes: Any, heading: int | None, depth: int) -> Iterator[str]:
    for shape in shapes:
        if shape.shape_id == heading or _repeated(shape):
            continue
        if hasattr(shape, "shapes"):
            if depth < _DEPTH:
                yield from _texts(shape.shapes, heading, depth + 1)
        elif getattr(shape, "has_table", False):
            yield "\n".join(_rows(shape.table))
        elif getattr(shape, "has_chart", False):
            yield "\n".join(_chart(shape.chart))
        elif shape.has_text_frame:
            yield shape.text_frame.text


def _repeated(shape: Any) -> bool:
    """Whether a template puts this on every slide."""
    found = shape.element.xpath(".//p:nvPr/p:ph/@type")
    return bool(found) and found[0] in _REPEATED


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        # A spanned cell stands empty, so that what follows keeps its column.
        cells = ["" if cell.is_spanned else tidy(cell.text_frame.text) for cell in row.cells]
        if any(cells):
            yield beside(cells)


def _chart(chart: Any) -> Iterator[str]:
    if chart.has_title and chart.chart_title.has_text_frame:
        yield chart.chart_title.text_frame.text
    for plot in chart.plots:
        names = [str(category) for category in plot.categories]
        rows = [["", *names]] if names else []
        rows += [[tidy(series.name), *map(_figure, series.values)] for series in plot.series]
        yield from lines(rows)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"
