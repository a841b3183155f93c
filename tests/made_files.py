"""Small files made on the spot: a PDF with a text layer (or without), a DOCX, and a plain document value."""

import io
import zipfile

from specrag.types import Chunk, Document, Page

_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" Type='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>'
)


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text for each line of a page; an empty page has no text layer."""
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    fonts = "/Resources << /Font << /F1 3 0 R >> >>"
    for index, text in enumerate(pages):
        lines = " ".join(f"({line}) Tj 0 -14 Td" for line in text.splitlines())
        content = f"BT /F1 11 Tf 50 780 Td {lines} ET" if text else ""
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * index} 0 R {fonts} >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    body, offsets = "%PDF-1.4\n", []
    for number, item in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{item}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")


def docx(body_xml: str) -> bytes:
    """A Word document with the given content of `w:body`."""
    document = (
        '<?xml version="1.0"?><w:document xmlns:w='
        f'"http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{body_xml}</w:body></w:document>'
    )
    return zipped({"[Content_Types].xml": _TYPES, "_rels/.rels": _RELATIONS, "word/document.xml": document})


def zipped(members: dict[str, str]) -> bytes:
    """A ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def document(*pages: str, identity: str = "0123456789abcdef") -> Document:
    """A document with these pages."""
    numbered = tuple(Page(text=text, number=number) for number, text in enumerate(pages, start=1))
    return Document(id=identity, title="Notes", source="notes.txt", pages=numbered)


def chunks(document_id: str, count: int, text: str = "chunk") -> list[Chunk]:
    """Numbered chunks of one document."""
    return [
        Chunk(
            id=f"{document_id}-{position:05d}",
            document_id=document_id,
            title="Notes",
            source="notes.txt",
            text=f"{text} {position}",
            position=position,
        )
        for position in range(count)
    ]
