"""Text of a PDF by pdfium, which also reads files that stricter readers refuse.

pdfium tells lines apart but not paragraphs, so `unwrap` joins what was only broken to fit the page. Pictures
are not decoded to read text; only a page that has nothing else is drawn, for OCR, where that is installed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
        _check_pages(len(pdf), name, max_pages)
        read: list[_Text] = []
        left = max_characters
        for text in _texts(pdf, on_page, ocr=ocr):
            read.append(text)
            left -= len(text.text)
            if left < 0:
                raise DocumentError(
                    "too_large",
                    f"{name} has more than {max_characters} characters (SPECRAG_MAX_CHARACTERS); split it.",
                )
        title = prose(pdf.get_metadata_value("Title"))
        made = pdf.get_metadata_value("CreationDate")
        titles = outline(pdf)
    if not any(text.text.strip() for text in read):
        raise _no_text(name, tried=any(text.by_ocr for text in read), ocr=ocr)
    return Content(
        pages=under(titles, _pages(read, titles)),
        title=None if _JUNK_TITLE.search(title) else title or None,
        published_at=stated_date(made),
        encoding=encoding([number for number, text in enumerate(read, start=1) if text.by_ocr and text.text]),
    )


class _Text(NamedTuple):
    """What was found on one page."""

    text: str
    by_ocr: bool


def _check_pages(total: int, name: str, most: int) -> None:
    if total > most:
        raise DocumentError(
            "too_large", f"{name} has {total} pages, more than the {most} of SPECRAG_MAX_PAGES; split it."
        )


def _texts(pdf: Any, on_page: Callable[[int, int], None], *, ocr: bool) -> Iterator[_Text]:
    total = len(pdf)
    for index in range(total):
        on_page(index, total)
        yield _page_text(pdf, index, ocr=ocr)
    on_page(total, total)


def _pages(read: Sequence[_Text], titles: Mapping[int, Sequence[str]]) -> list[Page]:
    """Lines of the pages joined to paragraphs, except for their headings."""
    lines = rejoin_hyphens([set_apart(titles.get(index, ()), text.text) for index, text in enumerate(read)])
    return [Page(text=prose(unwrap(text)), number=number) for number, text in enumerate(lines, start=1)]


def _page_text(pdf: Any, index: int, *, ocr: bool) -> _Text:
    import pypdfium2

    try:
        with page_of(pdf, index) as page:
            text = text_of(page)
            if text.strip() or not ocr or not available() or blank(page) or too_many_pixels(page):
                return _Text(text, by_ocr=False)
            picture = drawn(page, width=OCR_PIXELS, longest=OCR_PIXELS).to_numpy()
    except pypdfium2.PdfiumError:
        # One damaged page must not cost the others; it is reported as a page without text.
        return _Text("", by_ocr=False)
    return _Text(recognised(picture), by_ocr=True)


def _no_text(name: str, *, tried: bool, ocr: bool) -> DocumentError:
    if tried:
        return DocumentError("no_text", f"{name} is a scan in which OCR finds no text; check the scan.")
    if ocr and available():
        return DocumentError(
            "no_text_needs_ocr",
            f"{name} has no text, and nothing that OCR could read; check that it is the right file.",
        )
    here = "install it (pip install -r requirements-ocr.txt)" if ocr else "set SPECRAG_OCR to true"
    return DocumentError(
        "no_text_needs_ocr",
        f"{name} is a scan without a text layer, which takes OCR: {here}, or run OCR elsewhere (ocrmypdf, for"
        " example), and retry.",
    )
