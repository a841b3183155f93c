"""pdfium, opened with care: one lock for all of it, errors in words, forms filled in, pictures left alone.

pdfium keeps its state per process and is not thread-safe. What it finds on a page is asked for here in two
ways that agree with each other: as text, to be read, and character by character, to be marked on a picture.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from specrag.errors import DocumentError

PDFIUM = threading.Lock()
"""To be held while anything of pdfium is used."""
MEGAPIXELS = 250
"""A page with larger pictures is not drawn: its file may be small and its pixels still fill the memory."""

_ERR_PASSWORD, _ERR_SECURITY = 4, 5
_PAGE_TREE, _PAGE = re.compile(rb"/Type\s*/Pages\b"), re.compile(rb"/Type\s*/Page\b")
_ALEF_LAM = re.compile("[\u0622\u0623\u0625\u0627]\u0644")


@contextmanager
def opened(data: bytes, name: str, password: str | None) -> Iterator[Any]:
    """The document, for as long as it takes.

    Raises:
        DocumentError: `encrypted`, `corrupt` or `no_pages`.
    """
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(data, password=password)
    except pypdfium2.PdfiumError as error:
        raise _translated(error, data, name, password) from error
    with closing(pdf):
        if len(pdf) == 0:
            raise _no_pages(name)
        if pdf.get_formtype():
            pdf.init_forms()
        yield pdf


@contextmanager
def page_of(pdf: Any, index: int) -> Iterator[Any]:
    """One page, with what was typed into its form drawn into it, because that is not part of its text.

    Raises:
        pypdfium2.PdfiumError: the page is damaged.
    """
    if pdf.get_formtype():
        with closing(pdf[index]) as page:
            page.flatten()
    with closing(pdf[index]) as page:
        yield page


def text_of(page: Any) -> str:
    """The text of a page in the order of reading, as pdfium sees it.

    Raises:
        pypdfium2.PdfiumError: the page is damaged.
    """
    with closing(page.get_textpage()) as textpage:
        text = str(textpage.get_text_range())
        return lam_alef(text, textpage) if len(text) == textpage.count_chars() else text


def lam_alef(text: str, textpage: Any) -> str:
    """Text with the letters of the Arabic ligature lam-alef in the order in which they are read.

    Fonts draw the two as one glyph, and pdfium gives the letters of a glyph from right to left in the wrong
    order. The same letters in this order are also the commonest article, so only the place tells them apart.

    Args:
        text: one character for each that the page has.
        textpage: where they stand.
    """
    turned = list(text)
    for found in _ALEF_LAM.finditer(text):
        at = found.start()
        if textpage.get_charbox(at) == textpage.get_charbox(at + 1):
            turned[at : at + 2] = turned[at + 1], turned[at]
    return "".join(turned)


def blank(page: Any) -> bool:
    """Whether there is nothing at all on a page."""
    import pypdfium2.raw

    return bool(pypdfium2.raw.FPDFPage_CountObjects(page) == 0)


def too_many_pixels(page: Any) -> bool:
    """Whether the pictures of a page would fill the memory; none of them is decoded to know it."""
    import pypdfium2
    import pypdfium2.raw

    pixels = 0
    for picture in page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]):
        try:
            width, height = picture.get_px_size()
        except pypdfium2.PdfiumError:
            continue
        pixels += width * height
        if pixels > MEGAPIXELS * 1_000_000:
            return True
    return False


def drawn(page: Any, *, width: int, longest: int) -> Any:
    """A bitmap of a page.

    Args:
        page: what to draw.
        width: wanted, in pixels.
        longest: most pixels of its longer side.
    """
    across, down = page.get_size()
    scale = min(width / max(across, 1e-6), longest / max(across, down, 1e-6))
    return page.render(scale=scale)


def _translated(error: Exception, data: bytes, name: str, password: str | None) -> DocumentError:
    """The code of pdfium may be a leftover of an earlier file, so the bytes are asked as well."""
    code = getattr(error, "err_code", None)
    encrypted = b"/Encrypt" in data
    if encrypted and code == _ERR_PASSWORD:
        wrong = "the password does not open it" if password else "it is protected by a password"
        return DocumentError(
            "encrypted", f"{name} cannot be read: {wrong}; give its password or upload a copy without one."
        )
    if encrypted and code == _ERR_SECURITY:
        return DocumentError(
            "encrypted", f"{name} has an encryption of an unknown kind; upload a copy without it."
        )
    if b"%%EOF" in data and _PAGE_TREE.search(data) and not _PAGE.search(data):
        return _no_pages(name)
    return DocumentError("corrupt", f"{name} is damaged or cut off; get a fresh copy of it.")


def _no_pages(name: str) -> DocumentError:
    return DocumentError("no_pages", f"{name} is a PDF without a single page; export it again.")
