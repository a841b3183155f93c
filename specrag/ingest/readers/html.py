"""The main text of an HTML page by trafilatura; the whole visible text where it finds little.

Navigation and cookie banners would otherwise be retrieved as if they were content. Pages that are not
articles (a table, a form, a few lines) have no main text, and then everything that a visitor sees counts.
"""

import codecs
import re
from contextlib import suppress
from typing import Any

from specrag.errors import DocumentError
from specrag.ingest.readers.cells import arrange
from specrag.ingest.readers.content import Content, Gathering, Source
from specrag.ingest.readers.dates import stated_date
from specrag.ingest.readers.embedded import without_data
from specrag.ingest.readers.markup import flattened, flowed, too_deep
from specrag.ingest.readers.typography import spell_out
from specrag.ingest.text import decode, marked_encoding, prose
from specrag.types import Heading

_CHARSET = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)
_WEB_CODECS = re.compile(
    r"utf-8(?:-sig)?|ascii|iso8859-\d+|cp125\d|cp(?:437|85\d|86\d|874|932|949|950)|koi8-\w|mac-\w+|tis-620"
    r"|shift_jis\w*|euc_\w+|gb\w+|big5\w*|johab|iso2022_\w+"
)
"""Python's names of what pages are written in. Its other codecs (`idna`, `unicode_escape`) are no such thing,
and a page whose label can be read as ASCII is not UTF-16, whatever the label says."""
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_ENOUGH, _SHARE = 250, 0.15
"""A main text of this many characters, or this share of the visible text, is believed."""
_DATES = {"extensive_search": False, "original_date": False}
"""The last change: a page that was begun long ago says what it says now."""


def read_html(source: Source) -> Content:
    """The text of a page as one page, with the title and date that it states.

    Raises:
        DocumentError: `corrupt` or `too_large`.
    """
    import trafilatura

    root, encoding = tree(source.data, source.name)
    spell_out(root)
    arrange(root)
    visible = flowed(root)
    found = trafilatura.bare_extraction(
        root, with_metadata=True, include_comments=False, favor_recall=True, date_extraction_params=_DATES
    )
    text, headings = _main(found, visible)
    gathering = Gathering(source)
    gathering.add(text, headings=headings)
    return Content(
        pages=gathering.pages,
        title=prose(getattr(found, "title", None) or root.findtext(".//title") or "") or None,
        published_at=stated_date(getattr(found, "date", None)),
        encoding=encoding,
    )


def tree(data: bytes, name: str) -> tuple[Any, str]:
    """The element tree of a page, never too deep to be walked, and the encoding it was written in.

    Raises:
        DocumentError: `corrupt`.
    """
    from lxml import etree, html

    text, encoding = _decoded(data, name)
    text = _DECLARATION.sub("", without_data(text))
    try:
        root = html.document_fromstring(text, parser=html.HTMLParser(huge_tree=True))
        if too_deep(root):
            root = html.document_fromstring(flattened(text), parser=html.HTMLParser(huge_tree=True))
    except (etree.LxmlError, ValueError, AssertionError) as error:
        raise DocumentError("corrupt", f"{name} holds no HTML that can be read.") from error
    return root, encoding


def _main(found: Any, visible: tuple[str, tuple[Heading, ...]]) -> tuple[str, tuple[Heading, ...]]:
    body = getattr(found, "body", None)
    main = flowed(body) if body is not None else ("", ())
    return main if len(main[0]) >= max(_ENOUGH, _SHARE * len(visible[0])) else visible


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    declared = _CHARSET.search(data[:4096])
    if declared and marked_encoding(data) is None:
        label = declared[1].decode("ascii", "replace").lower()
        # The Web reads these labels as Windows-1252, and so do the people who write them.
        label = "cp1252" if label in ("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii") else label
        with suppress(LookupError, ValueError):  # A wrong label is common; the bytes decide.
            if _WEB_CODECS.fullmatch(codecs.lookup(label).name):
                return data.decode(label), label
    decoded = decode(data)
    if decoded is None:
        raise DocumentError("corrupt", f"{name} is called a web page but holds no text.")
    return decoded
