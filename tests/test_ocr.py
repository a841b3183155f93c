"""Scans become text where OCR is installed, in the order of reading; where it is not, tests of OCR are skipped."""

import re
from collections.abc import Iterator
from pathlib import Path

import pypdfium2
import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.ocr import available
from specrag.ingest.process.reading import ReadingProcess
from specrag.ingest.readers.layout import Line, text_of_lines
from specrag.types import Document
from tests.made_pdfs import MadePage, column, made_pdf

needs_ocr = pytest.mark.skipif(not available(), reason="pip install -r requirements-ocr.txt to run this")
TEXT = "The mill stands by the old river.\nIt has ground rye since 1742."


@pytest.fixture(scope="module")
def reading() -> Iterator[ReadingProcess]:
    with ReadingProcess(load_settings()) as process:
        yield process


def scan(*lines: tuple[float, float, str], size: float = 14) -> MadePage:
    """A page that is a picture of these lines."""
    with pypdfium2.PdfDocument(made_pdf(MadePage(lines=lines, size=size))) as pdf:
        picture = pdf[0].render(scale=2, grayscale=True).to_numpy()
    height, width = picture.shape[:2]
    return MadePage(picture=picture.tobytes(), picture_size=(width, height))


def read(reading: ReadingProcess, folder: Path, *pages: MadePage) -> Document:
    path = folder / "upload"
    path.write_bytes(made_pdf(*pages))
    return reading.read(path, "scan.pdf")


def at(text: str, left: float, top: float, width: float) -> Line:
    return Line(text=text, left=left, top=top, right=left + width, bottom=top + 20)


def test_lines_are_put_in_order_rows_side_by_side_and_paragraphs_apart() -> None:
    lines = [
        at("B", 300, 101, 100),
        at("three", 50, 190, 200),
        at("two", 50, 126, 200),
        at("A", 50, 99, 100),
    ]
    assert text_of_lines(lines) == "A B\ntwo\n\nthree"


def test_columns_are_read_one_after_the_other_below_their_title() -> None:
    """Lines of two columns stand side by side, and were read across the page."""
    left = [at(f"left {number}", 50, 100 + 25 * number, 240) for number in range(5)]
    right = [at(f"right {number}", 320, 101 + 25 * number, 240) for number in range(5)]
    text = text_of_lines([*right, *left, at("A title over both columns", 100, 50, 400)])
    assert text.split("\n") == [
        "A title over both columns",
        *(f"left {number}" for number in range(5)),
        *(f"right {number}" for number in range(5)),
    ]


def test_a_table_is_read_row_by_row() -> None:
    cells = [
        at(f"{name}{row}", left, 100 + 25 * row, 60)
        for row in range(5)
        for name, left in (("a", 50), ("b", 400))
    ]
    assert text_of_lines(cells).split("\n") == [f"a{row} b{row}" for row in range(5)]


def test_nothing_is_nothing() -> None:
    assert text_of_lines([]) == ""


@needs_ocr
def test_the_real_scan_is_read(reading: ReadingProcess, shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-scan-image-only.pdf"
    document = reading.read(path, path.name)
    text = re.sub(r"\s+", " ", document.pages[0].text)
    assert "Docling bundles PDF document conversion to JSON and Markdown" in text
    assert document.encoding == "OCR (page 1)"


@needs_ocr
def test_only_pages_without_text_are_read_by_ocr_and_each_is_told(
    reading: ReadingProcess, tmp_path: Path
) -> None:
    written = MadePage(lines=[(50, 700, "A page with a text layer.")])
    pages = [written, scan(*column(50, 700, TEXT, 20)), MadePage(), scan(*column(50, 700, TEXT, 20)), written]
    told: list[tuple[int, int]] = []
    path = tmp_path / "upload"
    path.write_bytes(made_pdf(*pages))
    document = reading.read(path, "scan.pdf", on_page=lambda done, total: told.append((done, total)))
    assert document.pages[1].text.split() == TEXT.split()
    assert document.pages[0].text == "A page with a text layer."
    assert document.pages[2].text == ""
    assert document.encoding == "OCR (pages 2, 4)"
    assert told == [(done, 5) for done in range(6)]


@needs_ocr
def test_two_scanned_columns_are_read_one_after_the_other(reading: ReadingProcess, tmp_path: Path) -> None:
    left = "The mill stands by the river\nand grinds rye for the valley,\nas it has done for so long that\nnobody knows when it began."
    right = "The weir above it holds the\nwater back until the miller\nopens a gate in the morning\nof every working day."
    lines = [
        (150.0, 780.0, "Of the mill and of its weir"),
        *column(50, 740, left, 20),
        *column(320, 740, right, 20),
    ]
    document = read(reading, tmp_path, scan(*lines))
    words = document.pages[0].text.split()
    assert words == ["Of", "the", "mill", "and", "of", "its", "weir", *left.split(), *right.split()]


@needs_ocr
def test_a_passage_is_marked_on_a_scan(reading: ReadingProcess, tmp_path: Path) -> None:
    """The store keeps no places, so that a scan was shown without any mark."""
    path = tmp_path / "upload"
    path.write_bytes(made_pdf(scan(*column(100, 700, TEXT, 20), (100.0, 300.0, "Something else."))))
    image = reading.page_image(path, 1, passage=TEXT, evidence=["ground rye since 1742."])
    assert len(image.passage) == 2
    assert all(0.14 < box.left < 0.19 and 0.13 < box.top < 0.2 for box in image.passage)
    assert len(image.evidence) == 1
    assert image.evidence[0].left > image.passage[1].left + 0.05
    assert reading.page_image(path, 1, passage="Nothing of this.").passage == ()


@needs_ocr
def test_letters_of_other_languages_are_read(reading: ReadingProcess, tmp_path: Path) -> None:
    document = read(
        reading, tmp_path, scan((50, 700, "Gr\xf6\xdfe der M\xfchle: \xc9t\xe9, ni\xf1o"), size=18)
    )
    assert document.pages[0].text == "Größe der Mühle: Été, niño"


@needs_ocr
def test_a_picture_without_words_is_said(reading: ReadingProcess, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="OCR finds no text") as caught:
        read(reading, tmp_path, MadePage(picture=bytes([255] * 10_000), picture_size=(100, 100)))
    assert caught.value.reason == "no_text"


@pytest.mark.skipif(available(), reason="OCR is installed")
def test_without_ocr_the_way_to_it_is_said(reading: ReadingProcess, shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-scan-image-only.pdf"
    with pytest.raises(DocumentError, match=r"pip install -r requirements-ocr\.txt") as caught:
        reading.read(path, path.name)
    assert caught.value.reason == "no_text_needs_ocr"
