"""A page of a PDF as it looks, and where on it the words of a passage stand.

The text of a passage is not that of the page: lines were joined, hyphens dropped, letters made plain. So both
are reduced to what nothing of this touches, letters and digits without accents, and compared as such. Each
letter of the page keeps its place; the places become one box for each line.
"""

import ctypes
import io
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.ingest.base import Box, PageImage
from specrag.ingest.loaders import load
from specrag.ingest.readers.pdfium import PDFIUM, drawn, lam_alef, opened, page_of, too_many_pixels

_NARROWEST, _WIDEST, _LONGEST = 100, 2500, 4000
_QUALITY = 85
_ANCHOR = 40
"""Letters at the beginning and the end of a passage by which it is found if something between differs."""
_SLACK = 1.3
_SCALE = 1_000_000
"""Steps in which pdfium is asked for places on a page."""
_SAME_LINE = 0.4
_FAR = 3.0
"""A gap of so many line heights parts two boxes: cells, or columns."""
_PADDING = 0.12
"""Of a line's height, so that a mark does not touch the letters."""


class _Place(NamedTuple):
    """A rectangle in shares of the page."""

    left: float
    top: float
    right: float
    bottom: float


def page_image(
    path: Path,
    settings: Settings,
    *,
    number: int,
    password: str | None = None,
    passage: str = "",
    evidence: Sequence[str] = (),
    width: int = 1000,
) -> PageImage:
    """Draw one page and find a passage and its evidence on it.

    Args:
        path: the PDF.
        settings: the limits.
        number: of the page, from 1.
        password: opens an encrypted PDF.
        passage: text whose place is wanted.
        evidence: sentences whose places are wanted.
        width: of the picture, in pixels.

    Raises:
        DocumentError: the page cannot be drawn.
    """
    import pypdfium2

    name = "The file"
    data = load(path, name, settings)
    with PDFIUM, opened(data, name, password) as pdf:
        if not 1 <= number <= len(pdf):
            raise DocumentError("no_pages", f"{name} has no page {number}; it has {len(pdf)}.")
        try:
            with page_of(pdf, number - 1) as page:
                if too_many_pixels(page):
                    raise DocumentError(
                        "too_large",
                        f"Page {number} holds pictures that are too large to show; open the file.",
                    )
                picture = drawn(page, width=min(max(width, _NARROWEST), _WIDEST), longest=_LONGEST).to_pil()
                letters = _Letters(page)
        except pypdfium2.PdfiumError as error:
            raise DocumentError("corrupt", f"Page {number} is damaged and cannot be shown.") from error
    found = letters.find(passage)
    places = [letters.find(sentence, within=found) or letters.find(sentence) for sentence in evidence]
    return PageImage(
        data=_encoded(picture),
        media_type="image/webp",
        width=picture.width,
        height=picture.height,
        passage=tuple(letters.boxes(found)),
        evidence=tuple(box for place in places for box in letters.boxes(place)),
    )


class _Letters:
    """Letters and digits of a page, reduced, each with its place."""

    def __init__(self, page: Any) -> None:
        from pypdfium2 import raw

        with closing(page.get_textpage()) as textpage:
            count = textpage.count_chars()
            text = "".join(_character(raw.FPDFText_GetUnicode(textpage, index)) for index in range(count))
            reduced = [_reduced(character) for character in lam_alef(text, textpage)]
            self._text = "".join(reduced)
            self._places = [
                place
                for index, letters in enumerate(reduced)
                if letters
                for place in [_place(page, textpage.get_charbox(index))] * len(letters)
            ]

    def find(self, text: str, within: slice | None = None) -> slice | None:
        """Where a text is among the letters."""
        wanted = _reduced(text)
        start, stop = (within.start, within.stop) if within else (0, len(self._text))
        at = self._text.find(wanted, start, stop) if wanted else -1
        if at >= 0:
            return slice(at, at + len(wanted))
        return self._between_anchors(wanted, start, stop) if len(wanted) > 2 * _ANCHOR else None

    def boxes(self, found: slice | None) -> Iterator[Box]:
        """A box for each line of what was found."""
        if found is None:
            return
        line: _Place | None = None
        for place in self._places[found]:
            if line is not None and _continues(line, place):
                line = _united(line, place)
            else:
                yield from [_box(line)] if line else []
                line = place
        yield from [_box(line)] if line else []

    def _between_anchors(self, wanted: str, start: int, stop: int) -> slice | None:
        at = self._text.find(wanted[:_ANCHOR], start, stop)
        end = self._text.find(wanted[-_ANCHOR:], at, stop) + _ANCHOR
        return slice(at, end) if at >= 0 and at < end <= at + len(wanted) * _SLACK else None


def _character(code: int) -> str:
    """Exactly one, whatever pdfium says; beyond the first plane it gives halves."""
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"  # noqa: PLR2004


def _reduced(text: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(character for character in plain if character.isalnum())


def _place(page: Any, box: tuple[float, float, float, float]) -> _Place:
    """A rectangle of the page's own coordinates, as it is shown: turned and cropped."""
    left, bottom, right, top = box
    corners = [_shown(page, left, top), _shown(page, right, bottom)]
    across, down = sorted(x for x, _ in corners), sorted(y for _, y in corners)
    return _Place(across[0], down[0], across[1], down[1])


def _shown(page: Any, x: float, y: float) -> tuple[float, float]:
    from pypdfium2 import raw

    across, down = ctypes.c_int(), ctypes.c_int()
    raw.FPDF_PageToDevice(page, 0, 0, _SCALE, _SCALE, 0, x, y, across, down)
    return across.value / _SCALE, down.value / _SCALE


def _continues(line: _Place, place: _Place) -> bool:
    height = min(line.bottom - line.top, place.bottom - place.top)
    overlap = min(line.bottom, place.bottom) - max(line.top, place.top)
    gap = max(place.left - line.right, line.left - place.right)
    return overlap > _SAME_LINE * height and gap < _FAR * (line.bottom - line.top)


def _united(line: _Place, place: _Place) -> _Place:
    return _Place(
        min(line.left, place.left),
        min(line.top, place.top),
        max(line.right, place.right),
        max(line.bottom, place.bottom),
    )


def _box(line: _Place) -> Box:
    """With a margin, and never beyond the page."""
    margin = (line.bottom - line.top) * _PADDING
    left, top, right, bottom = (
        min(max(side, 0.0), 1.0)
        for side in (line.left - margin, line.top - margin, line.right + margin, line.bottom + margin)
    )
    return Box(left=left, top=top, width=right - left, height=bottom - top)


def _encoded(picture: Any) -> bytes:
    data = io.BytesIO()
    picture.save(data, "WEBP", quality=_QUALITY)
    return data.getvalue()
