"""Text of a PDF by pdfium, which also reads files that stricter readers refuse.

pdfium tells lines apart but not paragraphs, so `unwrap` joins what was only broken to fit the page. Filled
form fields are drawn into the page first, because they are not part of its text. Images are never decoded.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from specrag.errors import DocumentError
from specrag.ingest.readers.content import Content
from specrag.ingest.readers.unwrap import rejoin_hyphens, unwrap
from specrag.ingest.text import prose
from specrag.types import Page

# pdfium keeps its state per process and is not thread-safe, so the lock must be one per process as well.
_PDFIUM = threading.Lock()
_ERR_PASSWORD, _ERR_SECURITY = 4, 5
_JUNK_TITLE = re.compile(
    r"untitled|microsoft (word|powerpoint)|\.(docx?|tex|dvi|indd|pptx?|qxd|rtf)\b", re.IGNORECASE
)
_PAGE_TREE, _PAGE = re.compile(rb"/Type\s*/Pages\b"), re.compile(rb"/Type\s*/Page\b")


def read_pdf(
    data: bytes,
    name: str,
    *,
    max_pages: int,
    max_characters: int,
    password: str | None,
    on_page: Callable[[int, int], None],
) -> Content:
    """The pages of a PDF; pages without a text layer stay, with an empty text.

    Raises:
        DocumentError: `encrypted`, `corrupt`, `no_pages`, `no_text` or `too_large`.
    """
    with _PDFIUM, _opened(data, name, password) as pdf:
        total = len(pdf)
        if total == 0:
            raise _no_pages(name)
        if total > max_pages:
            raise DocumentError(
                "too_large",
                f"{name} has {total} pages, more than the {max_pages} of SPECRAG_MAX_PAGES; split it.",
            )
        raw: list[str] = []
        for index in range(total):
            on_page(index, total)
            raw.append(_page_text(pdf, index))
            if sum(map(len, raw)) > max_characters:
                raise DocumentError(
                    "too_large",
                    f"{name} has more than {max_characters} characters (SPECRAG_MAX_CHARACTERS); split it.",
                )
        title = pdf.get_metadata_value("Title").strip()
    on_page(total, total)
    if not any(text.strip() for text in raw):
        raise DocumentError(
            "no_text",
            f"{name} is a scan without a text layer; run OCR on it (ocrmypdf, for example) and retry.",
        )
    texts = rejoin_hyphens(raw)
    pages = tuple(Page(text=prose(unwrap(text)), number=number) for number, text in enumerate(texts, start=1))
    return Content(pages=pages, title=None if _JUNK_TITLE.search(title) else prose(title) or None)


@contextmanager
def _opened(data: bytes, name: str, password: str | None) -> Iterator[Any]:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(data, password=password)
    except pypdfium2.PdfiumError as error:
        raise _translated(error, data, name, password) from error
    with closing(pdf):
        if pdf.get_formtype():
            pdf.init_forms()
        yield pdf


def _translated(error: Exception, data: bytes, name: str, password: str | None) -> DocumentError:
    """The code of pdfium may be a leftover of an earlier file, so the bytes are asked as well."""
    code = getattr(error, "err_code", None)
    encrypted = b"/Encrypt" in data
    if encrypted and code == _ERR_PASSWORD:
        wrong = "the password does not open it" if password else "it is protected by a password"
        return DocumentError("encrypted", f"{name} cannot be read: {wrong}; upload a copy without one.")
    if encrypted and code == _ERR_SECURITY:
        return DocumentError(
            "encrypted", f"{name} has an encryption of an unknown kind; upload a copy without it."
        )
    if b"%%EOF" in data and _PAGE_TREE.search(data) and not _PAGE.search(data):
        return _no_pages(name)
    return DocumentError("corrupt", f"{name} is damaged or cut off; get a fresh copy of it.")


def _no_pages(name: str) -> DocumentError:
    return DocumentError("no_pages", f"{name} is a PDF without a single page; export it again.")


def _page_text(pdf: Any, index: int) -> str:
    import pypdfium2

    try:
        if pdf.get_formtype():
            with closing(pdf[index]) as page:
                page.flatten()
        with closing(pdf[index]) as page, closing(page.get_textpage()) as text:
            return str(text.get_text_range())
    except pypdfium2.PdfiumError:
        return ""  # One damaged page must not cost the others; it is reported as a page without text.
