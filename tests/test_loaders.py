"""Files as people have them: wrong names, broken, too large. A document, or one clear sentence."""

import os
import re
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.loaders import SUFFIXES, read
from specrag.ingest.text import clean_name
from tests.made_files import docx, pdf, xlsx, zipped
from tests.readers.tools import load, refused, text_of


@pytest.mark.parametrize(
    ("name", "data", "reason", "says"),
    [
        ("empty.pdf", b"", "empty_file", "0 bytes"),
        ("blank.pdf", pdf("", ""), "no_text_needs_ocr", "OCR"),
        ("no pages.pdf", pdf(), "no_pages", "without a single page"),
        ("cut.pdf", pdf("Hello there.")[:120], "corrupt", "damaged"),
        ("invoice.pdf", b"MZ\x90\0\x03\0\0\0" + bytes(200), "type_mismatch", "a Windows program"),
        ("notes.txt", b"\x7fELF\x02\x01\x01" + bytes(200), "type_mismatch", "a Linux program"),
        ("tool.exe", b"MZ\x90\0\x03\0\0\0" + bytes(200), "unsupported", "a Windows program"),
        ("photo.png", b"\x89PNG\r\n\x1a\n" + bytes(90), "unsupported", "Portable Network Graphics"),
        ("photo.docx", b"\x89PNG\r\n\x1a\n" + bytes(90), "type_mismatch", "called .docx"),
        ("blob", bytes(range(256)) * 8, "unsupported", "no text"),
        ("hollow.xlsx", zipped({"xl/workbook.xml": "<x/>"}), "corrupt", "no complete workbook"),
        ("hollow.pptx", zipped({"ppt/presentation.xml": "<x/>"}), "corrupt", "no complete PowerPoint presentation"),
        ("hollow.epub", zipped({"META-INF/container.xml": "<x/>"}), "corrupt", "list of chapters is missing"),
        ("letter.odt", zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), "unsupported", "save it as DOCX"),
        ("files.zip", zipped({"a.txt": "a"}), "unsupported", "a ZIP archive"),
        ("app.docx", zipped({"word/a.txt": "a"}), "type_mismatch", "a ZIP archive"),
        ("text.xlsx", b"Only plain text in here.", "type_mismatch", "plain text"),
        ("half.docx", docx("<w:p/>")[:200], "corrupt", "ZIP container"),
        ("hollow.docx", zipped({"word/document.xml": "no xml"}), "corrupt", "no complete Word document"),
        ("blank.docx", docx("<w:p/>"), "no_text", "no text to index"),
        ("secret.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted", "password"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "unsupported", "Office 97-2003"),
        ("letter.rtf", rb"{\rtf1\ansi Hello}", "unsupported", "an RTF document"),
        ("renamed.pdf", b"Only plain text in here.", "type_mismatch", "plain text"),
        ("blank.txt", b" \n\t\n ", "no_text", "no text to index"),
        ("empty.html", b"<html><script>alert(1)</script></html>", "no_text", "no text to index"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, data: bytes, reason: str, says: str) -> None:
    error = refused(tmp_path, name, data)
    assert (error.reason, says in str(error)) == (reason, True), str(error)


def test_the_supported_types_are_named_in_a_refusal(tmp_path: Path) -> None:
    error = refused(tmp_path, "a.png", b"\x89PNG\r\n\x1a\n" + bytes(90))
    for suffix in set(SUFFIXES) - {".md", ".txt", ".tsv", ".jsonl"}:
        assert suffix[1:].upper() in str(error)


def test_a_file_above_the_limit_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.touch()
    os.truncate(path, 40_000_000_000)  # sparse: takes no disk, but reading it would take all memory
    with pytest.raises(DocumentError, match=r"40000\.0 MB.*SPECRAG_MAX_FILE_MB") as caught:
        read(path, "huge.txt", load_settings(max_file_mb=1))
    assert caught.value.reason == "too_large"


def test_too_many_pages_or_characters_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, "long.pdf", pdf("a", "b", "c"), max_pages=2).reason == "too_large"
    assert refused(tmp_path, "long.txt", "word " * 400, max_characters=1000).reason == "too_large"
    assert refused(tmp_path, "dense.pdf", pdf("word " * 400), max_characters=1000).reason == "too_large"


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file"):
        read(tmp_path / "gone", "gone.txt", load_settings())


def test_content_decides_before_the_extension(tmp_path: Path) -> None:
    paragraph = "<w:p><w:r><w:t>Read me.</w:t></w:r></w:p>"
    assert text_of(load(tmp_path, "letter.doc", docx(paragraph))) == "Read me."
    assert text_of(load(tmp_path, "page.pdf", "<!doctype html><p>An error page.</p>")) == "An error page."
    assert (
        text_of(load(tmp_path, "rows.csv", xlsx({"A": [["Item", "Price"], ["Oar", 9]]})))
        == "Item: Oar; Price: 9"
    )
    assert text_of(load(tmp_path, "export.csv", "<!doctype html><p>Please log in.</p>")) == "Please log in."
    assert (
        text_of(load(tmp_path, "wide.csv", "Item,Price\nOar,9\n".encode("utf-16"))) == "Item: Oar; Price: 9"
    )
    assert text_of(load(tmp_path, "export.xls", "Item\tPrice\nOar\t9\n")) == "Item: Oar; Price: 9"
    assert text_of(load(tmp_path, "noextension", pdf("A page."))) == "A page."


def test_the_same_bytes_are_the_same_document_under_any_name(tmp_path: Path) -> None:
    one, other = load(tmp_path, "a.txt", "Same."), load(tmp_path, "b.md", "Same.")
    assert one.id == other.id
    assert re.fullmatch(r"[0-9a-f]{16}", one.id)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\report.pdf", "report.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("a\0b\n\r\tc.txt", "abc.txt"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("\udcff.txt", "\ufffd.txt"),
        ("<script>alert(1)</script>.md", "script>.md"),
        ("名前.pdf", "名前.pdf"),
        ("files.zip/../../etc/passwd", "files.zip/etc/passwd"),
        ("files.zip/in\u202ener/./a\n.pdf", "files.zip/inner/a.pdf"),
        ("files.zip\\in\\..", "files.zip/in/unnamed"),
    ],
)
def test_names_are_shown_without_tricks(name: str, shown: str) -> None:
    assert clean_name(name) == shown


def test_a_very_long_name_keeps_its_extension() -> None:
    shown = clean_name("x" * 400 + ".pdf")
    assert len(shown) == 255
    assert shown.endswith(".pdf")
    inside = clean_name("files.zip/" + "folder/" * 60 + "x" * 300 + ".pdf")
    assert len(inside) <= 255
    assert re.fullmatch(r"files\.zip/…/x+\.pdf", inside)
