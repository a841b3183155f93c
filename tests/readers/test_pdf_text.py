"""Words and lines of PDFs; what else they may be is in tests/test_pdf.py."""

from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.loaders import read
from specrag.ingest.readers.unwrap import rejoin_hyphens, unwrap
from tests.made_files import pdf
from tests.readers.tools import load, refused, text_of


def test_an_encrypted_pdf_opens_with_its_password(shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-encrypted-user-password.pdf"
    assert "Lorem ipsum" in text_of(read(path, path.name, load_settings(), password="openpassword"))
    with pytest.raises(DocumentError, match="the password does not open it"):
        read(path, path.name, load_settings(), password="wrong")


def test_an_encrypted_file_does_not_colour_the_next_one(shared_data: Path, tmp_path: Path) -> None:
    """An error code of pdfium stays behind: a PDF without pages was called encrypted."""
    path = shared_data / "docs" / "pdf-encrypted-user-password.pdf"
    with pytest.raises(DocumentError, match="protected by a password"):
        read(path, path.name, load_settings())
    assert refused(tmp_path, "no pages.pdf", pdf()).reason == "no_pages"
    assert refused(tmp_path, "cut.pdf", pdf("Hello there.")[:120]).reason == "corrupt"


def test_words_cut_at_line_ends_are_whole_and_paragraphs_are_unwrapped(shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-two-column-latex.pdf"
    text = text_of(read(path, path.name, load_settings()))
    assert "consectetuer id, vulputate a, magna." in text
    assert "sit amet, consectetuer adipiscing elit. Ut purus elit, vestibulum ut, placerat ac" in text
    assert "dignissim rutrum.\n\nNam dui ligula" in text


def test_a_hyphen_that_the_document_writes_elsewhere_stays() -> None:
    pages = [
        "a state-of-the-art way",
        "self-contained text, and self\ufffecontained text, and consec\ufffetetuer",
    ]
    assert (
        unwrap(rejoin_hyphens(pages)[1]) == "self-contained text, and self-contained text, and consectetuer"
    )


def test_rows_of_a_table_stay_rows() -> None:
    rows = "Name Age City\r\nAnna 30 Berlin\r\nBen 25 Rome"
    assert unwrap(rows).splitlines() == ["Name Age City", "Anna 30 Berlin", "Ben 25 Rome"]


def test_lines_of_scripts_without_blanks_join_without_one() -> None:
    assert unwrap("東京は日本の首都であり世界で最も人口の多い都\r\n市圏の一つでありとても大きい") == (
        "東京は日本の首都であり世界で最も人口の多い都市圏の一つでありとても大きい"
    )


def test_pages_keep_their_numbers_also_when_one_has_no_text(tmp_path: Path) -> None:
    """One scanned page in a readable file must not vanish silently."""
    document = load(tmp_path, "mixed.pdf", pdf("The first page.", "", "The third page."))
    assert [(page.number, page.text) for page in document.pages] == [
        (1, "The first page."),
        (2, ""),
        (3, "The third page."),
    ]
