"""Text of a PDF by pdfium, which also reads files that stricter readers refuse.

pdfium tells lines apart but not paragraphs, so `unwrap` joins what was only broken to fit the page. Pictures
are not decoded to read text; only a page that has nothing else is drawn, for OCR, where that is installed.
"""

import re
from collections.abc import Callable
from typing import Any

from specrag.errors import DocumentError
from specrag.ingest.ocr import OCR_PIXELS, available, encoding, recognised
from specrag.ingest.readers.content import Content
from specrag.ingest.readers.dates import stated_date
from specrag.ingest.readers.outline import outline, set_apart, under
from specrag.ingest.readers.pdfium import PDFIUM, blank, drawn, opened, page_of, text_of, too_many_pixels
from specrag.ingest.readers.unwrap import rejoin_hyphens, unwrap
from specrag.ingest.text import prose
from specrag.types import Page

_JUNK_TITLE = re.compile(
    r"untitled|microsoft (word|powerpoint)|\.(docx?|tex|dvi|indd|pptx?|qxd|rtf)\b", re.IGNORECASE
)


def read_pdf(
    data: bytes,
    name: str,
    *,
    max_pages: int,
    max_characters: int,
    password: str | None,
    on_page: Callable[[int, int], None],
    ocr: bool = True,
) -> Content:
    """The pages of a PDF; pages without any text stay, with an empty one.

    Raises:
        DocumentError: `encrypted`, `corrupt`, `no_pages`, `no_text`, `no_text_needs_ocr` or `too_large`.
    """
    with PDFIUM, opened(data, name, password) as pdf:
        total = len(pdf)
        if total > max_pages:
            raise DocumentError(
                "too_large",
                f"{name} has {total} pages, more than the {max_pages} of SPECRAG_MAX_PAGES; split it.",
            )
        raw: list[str] = []
        scanned: list[int] = []
        left = max_characters
        for index in range(total):
            on_page(index, total)
            text, by_ocr = _page_text(pdf, index, ocr=ocr)
            raw.append(text)
            scanned += [index + 1] if by_ocr else []
            left -= len(text)
            if left < 0:
                raise DocumentError(
                    "too_large",
                    f"{name} has more than {max_characters} characters (SPECRAG_MAX_CHARACTERS); split it.",
                )
        title = prose(pdf.get_metadata_value("Title"))
        made = pdf.get_metadata_value("CreationDate")
        titles = outline(pdf)
    on_page(total, total)
    if not any(text.strip() for text in raw):
        raise _no_text(name, ocr=ocr)
    texts = rejoin_hyphens([set_apart(titles.get(index, ()), text) for index, text in enumerate(raw)])
    pages = [Page(text=prose(unwrap(text)), number=number) for number, text in enumerate(texts, start=1)]
    return Content(
        pages=under(titles, pages),
        title=None if _JUNK_TITLE.search(title) else title or None,
        published_at=stated_date(made),
        encoding=encoding(scanned),
    )


def _page_text(pdf: Any, index: int, *, ocr: bool) -> tuple[str, bool]:
    """The text of one page, and whether it was read by OCR."""
    import pypdfium2

    try:
        with page_of(pdf, index) as page:
            text = text_of(page)
            if text.strip() or not ocr or not available() or blank(page) or too_many_pixels(page):
                return text, False
            picture = drawn(page, width=OCR_PIXELS, longest=OCR_PIXELS).to_numpy()
    except pypdfium2.PdfiumError:
        return "", False  # One damaged page must not cost the others; it is reported as a page without text.
    text = recognised(picture)
    return text, bool(text)


def _no_text(name: str, *, ocr: bool) -> DocumentError:
    if ocr and available():
        return DocumentError("no_text", f"{name} is a scan in which OCR finds no text; check the scan.")
    here = "install it (pip install -r requirements-ocr.txt)" if ocr else "set SPECRAG_OCR to true"
    return DocumentError(
        "no_text_needs_ocr",
        f"{name} is a scan without a text layer, which takes OCR: {here}, or run OCR elsewhere (ocrmypdf, for"
        " example), and retry.",
    )
