"""Text of a DOCX through mammoth, which follows footnotes, nested tables and strict documents.

mammoth's HTML is read back as text by `markup`. Pictures are dropped before they are decoded; the size of
whatever else would be unpacked is checked first, because a small ZIP can hold gigabytes.
"""

import io
import zipfile
import zlib
from typing import Any
from xml.parsers.expat import ExpatError
from xml.sax import SAXException

from specrag.errors import DocumentError
from specrag.ingest.readers.content import Content
from specrag.ingest.readers.markup import flow
from specrag.ingest.text import prose
from specrag.types import Page

_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_MEGABYTE = 1_000_000
_PICTURES = (
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"BM",
    b"II*\0",
    b"MM\0*",
    b"RIFF",
    b"\x01\0\0\0",
    b"\xd7\xcd\xc6\x9a",
)
"""How PNG, JPEG, GIF, BMP, TIFF, WebP, EMF and WMF begin, and no XML does."""
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    SAXException,
    ExpatError,
    LookupError,
    AttributeError,
    ValueError,
    RecursionError,
    NotImplementedError,
    EOFError,
    OSError,
)
"""What zipfile, expat and mammoth raise when a part is missing, cut off or not what it should be."""


def read_docx(data: bytes, name: str, *, max_xml_mb: int) -> Content:
    """The text of a Word document as one page.

    Raises:
        DocumentError: `corrupt` or `too_large`.
    """
    import mammoth
    from lxml import etree, html

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(item.file_size for item in archive.infolist() if not _picture(archive, item))
            if unpacked > max_xml_mb * _MEGABYTE:
                raise DocumentError(
                    "too_large", f"{name} unpacks to {unpacked // _MEGABYTE} MB of text; split the document."
                )
            stated = _stated_title(archive)
        drop = mammoth.images.img_element(_no_image)
        page = mammoth.convert_to_html(io.BytesIO(data), convert_image=drop).value
        root = html.fromstring(f"<body>{page}</body>", parser=html.HTMLParser(huge_tree=True))
    except (*_DAMAGED, etree.LxmlError) as error:
        raise DocumentError("corrupt", f"{name} is damaged: it is no complete Word document.") from error
    for link in root.xpath("//a[starts-with(@href, '#footnote-ref') or starts-with(@href, '#endnote-ref')]"):
        link.drop_tree()  # the arrow back to the text
    return Content(pages=(Page(text=prose(flow(root))),), title=_heading(root) or stated)


def _picture(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> bool:
    """Whether a member is never unpacked: by its content, as a document may name any member as its text."""
    if not item.filename.startswith("word/media/") or item.is_dir():
        return False
    with archive.open(item) as member:
        return member.read(8).startswith(_PICTURES)


def _no_image(_image: Any) -> dict[str, str]:
    return {}


def _heading(root: Any) -> str | None:
    """The first block of the document, if it is a heading."""
    first = next((child for child in root if "".join(child.itertext()).strip()), None)
    return prose("".join(first.itertext())) if first is not None and first.tag == "h1" else None


def _stated_title(archive: zipfile.ZipFile) -> str | None:
    from lxml import etree

    if "docProps/core.xml" not in archive.namelist():
        return None
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    core = etree.fromstring(archive.read("docProps/core.xml"), parser)
    return prose(core.findtext(_TITLE) or "") or None
