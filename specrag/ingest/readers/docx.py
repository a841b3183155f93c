"""Text of a DOCX through mammoth, which follows footnotes, nested tables and strict documents.

mammoth's HTML is read back as text by `markup`, headings included. Pictures are dropped before they are
decoded, and the container is packed anew first, because a small ZIP can hold gigabytes.
"""

import io
from typing import Any
from xml.parsers.expat import ExpatError
from xml.sax import SAXException

from specrag.errors import DocumentError
from specrag.ingest.readers.cells import arrange
from specrag.ingest.readers.container import DAMAGED, members, packed
from specrag.ingest.readers.content import Content, Gathering, Source
from specrag.ingest.readers.markup import flowed
from specrag.ingest.readers.office import statements
from specrag.ingest.readers.typography import spell_out
from specrag.ingest.text import prose

_TITLE_STYLE = "p[style-name='Title'] => h1:fresh"
_BROKEN = (*DAMAGED, SAXException, ExpatError, AttributeError, TypeError, RecursionError, AssertionError)
"""What zipfile, expat and mammoth raise when a part is missing, cut off or not what it should be."""


def read_docx(source: Source) -> Content:
    """The text of a Word document as one page.

    Raises:
        DocumentError: `corrupt`, `encrypted` or `too_large`.
    """
    whole = packed(members(source))
    root = _tree(whole, source.name)
    for link in root.xpath("//a[starts-with(@href, '#footnote-ref') or starts-with(@href, '#endnote-ref')]"):
        link.drop_tree()  # the arrow back to the text
    spell_out(root)
    arrange(root)
    title, published_at = statements(whole)
    text, headings = flowed(root)
    gathering = Gathering(source)
    gathering.add(text, headings=headings)
    return Content(pages=gathering.pages, title=_first_heading(root) or title, published_at=published_at)


def _tree(whole: bytes, name: str) -> Any:
    import mammoth
    from lxml import etree, html

    drop = mammoth.images.img_element(_no_image)
    try:
        page = mammoth.convert_to_html(io.BytesIO(whole), convert_image=drop, style_map=_TITLE_STYLE).value
        return html.fromstring(f"<body>{page}</body>", parser=html.HTMLParser(huge_tree=True))
    except (*_BROKEN, etree.LxmlError) as error:
        raise DocumentError("corrupt", f"{name} is damaged: it is no complete Word document.") from error


def _no_image(_image: Any) -> dict[str, str]:
    return {}


def _first_heading(root: Any) -> str | None:
    """The first block of the document, if it is a heading."""
    first = next((child for child in root if "".join(child.itertext()).strip()), None)
    return prose("".join(first.itertext())) if first is not None and first.tag == "h1" else None
