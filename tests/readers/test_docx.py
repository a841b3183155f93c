"""Word documents: tables, notes, headings, statements; bombs and passwords."""

import io
import random
import zipfile
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.ingest.loaders import read
from tests.made_files import core, docx, with_member, zipped
from tests.readers.tools import folded, load, marked, refused, text_of

PARAGRAPH = "<w:p><w:r><w:t>Read me.</w:t></w:r></w:p>"


def test_a_docx_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = docx("<w:p/>" + " " * 5_000_000)
    assert len(bomb) < 50_000
    assert refused(tmp_path, "bomb.docx", bomb, max_unpacked_mb=1).reason == "too_large"


@pytest.mark.parametrize("member", ["word/document.dat", "word/media/text.png"])
def test_a_docx_bomb_is_refused_whatever_its_main_part_is_called(tmp_path: Path, member: str) -> None:
    with zipfile.ZipFile(io.BytesIO(docx("<w:p/>" + " " * 5_000_000))) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    parts[member] = parts.pop("word/document.xml")
    bomb = zipped({name: text.replace("word/document.xml", member) for name, text in parts.items()})
    assert len(bomb) < 50_000
    assert refused(tmp_path, "bomb.docx", bomb, max_unpacked_mb=1).reason == "too_large"


def test_pictures_do_not_count_as_text_of_a_docx(tmp_path: Path) -> None:
    buffer = io.BytesIO(docx("<w:p><w:r><w:t>Read me.</w:t></w:r></w:p>"))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image1.bmp", b"BM" + bytes(5_000_000))
    assert text_of(load(tmp_path, "letter.docx", buffer.getvalue(), max_unpacked_mb=1)) == "Read me."


def test_a_docx_keeps_table_rows_lists_and_headings(tmp_path: Path) -> None:
    def cell(text: str) -> str:
        return f"<w:tc>{paragraph(text)}</w:tc>"

    def paragraph(text: str, style: str = "") -> str:
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"

    rows = "".join(f"<w:tr>{cell(a)}{cell(b)}</w:tr>" for a, b in (("Part", "Price"), ("Wheel", "12")))
    body = paragraph("Parts", "Heading1") + f"<w:tbl>{rows}</w:tbl>" + paragraph("More", "Heading2")
    document = load(tmp_path, "parts.docx", docx(body))
    assert text_of(document) == "Parts\n\nPart | Price\nWheel | 12\n\nMore"
    assert marked(document) == ["Parts @ Parts", "More @ More"]
    assert document.title == "Parts"


def test_a_docx_keeps_its_footnotes(shared_data: Path) -> None:
    path = shared_data / "docs" / "docx-footnotes.docx"
    assert folded(text_of(read(path, path.name, load_settings()))).endswith(
        "A tachyon walks into a bar. Fin."
    )


def test_a_docx_states_title_and_date(tmp_path: Path) -> None:
    stated = core(title="The mill", created="2019-01-02T03:04:05Z", modified="2020-05-06T07:08:09Z")
    document = load(tmp_path, "a.docx", with_member(docx(PARAGRAPH), "docProps/core.xml", stated))
    assert (document.title, document.published_at) == ("The mill", "2020-05-06")


@pytest.mark.parametrize(
    ("title", "modified"),
    [
        ("Untitled", "1601-01-01T00:00:00Z"),
        ("Document1", "2013-12-23T23:15:00Z"),
        ("", "9999-12-31T00:00:00Z"),
    ],
)
def test_what_programs_state_by_themselves_is_not_believed(tmp_path: Path, title: str, modified: str) -> None:
    """The date of a template made every document of a library the same age."""
    data = with_member(docx(PARAGRAPH), "docProps/core.xml", core(title=title, modified=modified))
    document = load(tmp_path, "my letter.docx", data)
    assert (document.title, document.published_at) == ("my letter", None)


def test_a_strict_document_with_a_nested_table_is_read(tmp_path: Path) -> None:
    inner = f"<w:tbl><w:tr><w:tc>{PARAGRAPH}</w:tc></w:tr></w:tbl><w:p/>"
    outer = docx(f"<w:tbl><w:tr><w:tc>{inner}</w:tc></w:tr></w:tbl>")
    with zipfile.ZipFile(io.BytesIO(outer)) as archive:
        body = archive.read("word/document.xml").decode()
    strict = body.replace(
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    )
    assert (
        text_of(load(tmp_path, "strict.docx", with_member(outer, "word/document.xml", strict))) == "Read me."
    )


def test_merged_cells_of_word_have_their_text_once(shared_data: Path) -> None:
    path = shared_data / "docs" / "docx-merged-tables.docx"
    text = text_of(read(path, path.name, load_settings()))
    assert text.count("Merged Cell 1.1 1.2") == 2  # in two tables
    assert "Cell 2.0 | | Cell 2.2" in text


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_entities_are_refused_in_every_part(tmp_path: Path, codec: str) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY x "aaaa"><!ENTITY y "&x;&x;&x;&x;">]><a>&y;</a>'.encode(codec)
    error = refused(tmp_path, "bomb.docx", with_member(docx(PARAGRAPH), "word/styles.xml", bomb))
    assert error.reason == "corrupt"


def test_a_document_behind_a_password_opens_with_it(tmp_path: Path) -> None:
    from msoffcrypto.format.ooxml import OOXMLFile

    locked = io.BytesIO()
    long_enough = with_member(
        docx(PARAGRAPH), "word/media/a.png", b"\x89PNG" + random.Random(0).randbytes(9000)
    )
    OOXMLFile(io.BytesIO(long_enough)).encrypt("open sesame", locked)
    data = locked.getvalue()
    assert refused(tmp_path, "secret.docx", data).reason == "encrypted"
    assert "does not open it" in str(refused(tmp_path, "secret.docx", data, password="wrong"))
    document = load(tmp_path, "secret.docx", data, password="open sesame")
    assert (text_of(document), document.media_type.rsplit(".", 1)[1]) == ("Read me.", "document")
