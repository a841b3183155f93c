"""Small files made on the spot, one of each format, and plain document values."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

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


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def core(*, title: str = "", modified: str = "", created: str = "") -> str:
    """`docProps/core.xml` of an Office file."""
    return (
        '<?xml version="1.0"?><cp:coreProperties xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:cp='
        '"http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dcterms='
        f'"http://purl.org/dc/terms/"><dc:title>{title}</dc:title><dcterms:created>{created}</dcterms:created>'
        f"<dcterms:modified>{modified}</dcterms:modified></cp:coreProperties>"
    )


def with_member(container: bytes, name: str, content: str | bytes) -> bytes:
    """A container in which one member is added or replaced."""
    with zipfile.ZipFile(io.BytesIO(container)) as archive:
        members: dict[str, str | bytes] = {item: archive.read(item) for item in archive.namelist()}
    return zipped({**members, name: content})


def xlsx(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """A workbook with these rows on each sheet."""
    import xlsxwriter

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, {"in_memory": True, "default_date_format": "yyyy-mm-dd"}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for place, row in enumerate(rows):
                sheet.write_row(place, 0, row)
    return buffer.getvalue()


def pptx(*slides: tuple[str, str], notes: str = "") -> bytes:
    """A presentation with a title and a text on each slide, and notes on the last."""
    from pptx import Presentation

    deck = Presentation()
    for title, text in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text_frame.text = title
        slide.placeholders[1].text_frame.text = text
        if notes and (title, text) == slides[-1]:
            slide.notes_slide.notes_text_frame.text = notes
    buffer = io.BytesIO()
    deck.save(buffer)
    return buffer.getvalue()


def ods(rows: Sequence[Sequence[str]]) -> bytes:
    """A spreadsheet of LibreOffice with one sheet."""
    cells = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
        for short in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0"?><office:document-content {spaces}><office:body><office:spreadsheet>'
        f'<table:table table:name="Birds">{cells}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>'
    )
    return zipped({"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": content})


def epub(
    *chapters: tuple[str, str],
    title: str = "The book",
    date: str = "",
    spine: bool = True,
    contents: str = "",
) -> bytes:
    """A book with a heading and a paragraph in each chapter, and its table of contents if one is given."""
    names = [f"c{number}.xhtml" for number in range(len(chapters))]
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in names)
    items += '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    references = "".join(f'<itemref idref="{name}"/>' for name in ("nav", *names)) if spine else ""
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title><dc:date>{date}</dc:date>'
        f"</metadata><manifest>{items}</manifest><spine>{references}</spine></package>"
    )
    container = (
        '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="EPUB/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    pages = {
        f"EPUB/{name}": f"<html><body><h1>{heading}</h1><p>{text}</p></body></html>"
        for name, (heading, text) in zip(names, chapters, strict=True)
    }
    nav = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><nav>{contents}</nav></body></html>'
    return zipped({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "EPUB/content.opf": package,
        "EPUB/nav.xhtml": nav,
        **pages,
    })  # fmt: skip


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
