"""A page of a PDF as it looks, with the places of a passage and of its evidence.

The letters of a page bring their places along; those of a scan are found by OCR once more, because the store
keeps text and no places.
"""

import ctypes
import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.ingest.base import PageImage
from specrag.ingest.loaders import load
from specrag.ingest.ocr import OCR_PIXELS, available, lines_of
from specrag.ingest.pages.letters import Letters, Place
from specrag.ingest.readers.pdfium import PDFIUM, blank, drawn, lam_alef, opened, page_of, too_many_pixels

_NAME = "The file"
_NARROWEST, _WIDEST, _LONGEST = 100, 2500, 4000
_QUALITY = 85
_SCALE = 1_000_000
"""Steps in which pdfium is asked for places on a page."""


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
    data = load(path, _NAME, settings)
    with PDFIUM, opened(data, _NAME, password) as pdf:
        ocr = settings.ocr and bool(passage or evidence)
        picture, placed = _seen(pdf, number, width=min(max(width, _NARROWEST), _WIDEST), ocr=ocr)
    letters = Letters(placed)
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


def _seen(pdf: Any, number: int, *, width: int, ocr: bool) -> tuple[Any, list[tuple[str, Place]]]:
    """The picture of a page, and its characters with their places."""
    import pypdfium2

    if not 1 <= number <= len(pdf):
        raise DocumentError("no_pages", f"{_NAME} has no page {number}; it has {len(pdf)}.")
    try:
        with page_of(pdf, number - 1) as page:
            if too_many_pixels(page):
                raise DocumentError(
                    "too_large", f"Page {number} holds pictures that are too large to show; open the file."
                )
            picture = drawn(page, width=width, longest=_LONGEST).to_pil()
            placed = list(_written(page))
            return picture, placed or (list(_scanned(page)) if ocr else [])
    except pypdfium2.PdfiumError as error:
        raise DocumentError("corrupt", f"Page {number} is damaged and cannot be shown.") from error


def _written(page: Any) -> Iterator[tuple[str, Place]]:
    """The characters of the text layer."""
    from pypdfium2 import raw

    with closing(page.get_textpage()) as textpage:
        count = textpage.count_chars()
        text = "".join(_character(raw.FPDFText_GetUnicode(textpage, index)) for index in range(count))
        for index, character in enumerate(lam_alef(text, textpage)):
            if not character.isspace():
                yield character, _place(page, textpage.get_charbox(index))


def _scanned(page: Any) -> Iterator[tuple[str, Place]]:
    """The characters that OCR finds, evenly spread over their lines."""
    if not available() or blank(page):
        return
    picture = drawn(page, width=OCR_PIXELS, longest=OCR_PIXELS).to_numpy()
    down, across = picture.shape[:2]
    for line in lines_of(picture):
        step = (line.right - line.left) / max(1, len(line.text))
        for number, character in enumerate(line.text):
            left = line.left + step * number
            yield (
                character,
                Place(left / across, line.top / down, (left + step) / across, line.bottom / down),
            )


def _character(code: int) -> str:
    """Exactly one, whatever pdfium says; beyond the first plane it gives halves."""
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"  # noqa: PLR2004


def _place(page: Any, box: tuple[float, float, float, float]) -> Place:
    """A rectangle of the page's own coordinates, as it is shown: turned and cropped."""
    left, bottom, right, top = box
    corners = [_shown(page, left, top), _shown(page, right, bottom)]
    across, down = sorted(x for x, _ in corners), sorted(y for _, y in corners)
    return Place(across[0], down[0], across[1], down[1])


def _shown(page: Any, x: float, y: float) -> tuple[float, float]:
    from pypdfium2 import raw

    across, down = ctypes.c_int(), ctypes.c_int()
    raw.FPDF_PageToDevice(page, 0, 0, _SCALE, _SCALE, 0, x, y, across, down)
    return across.value / _SCALE, down.value / _SCALE


def _encoded(picture: Any) -> bytes:
    data = io.BytesIO()
    picture.save(data, "WEBP", quality=_QUALITY)
    return data.getvalue()
