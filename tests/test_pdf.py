"""PDFs as people have them: their words in order and whole, their outline and date, and a way out for scans."""

import json
import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from specrag.errors import DocumentError
from specrag.ingest.ocr import encoding, warning
from specrag.ingest.readers.content import Content
from specrag.ingest.readers.pdf import read_pdf
from specrag.ingest.readers.unwrap import unwrap
from tests.made_pdfs import MadePage, column, made_pdf

GREY = bytes(range(256)) * 4


def read(data: bytes, **options: Any) -> Content:
    limits = {"max_pages": 3000, "max_characters": 20_000_000, "password": None, "ocr": False}
    return read_pdf(data, "a.pdf", **(limits | {"on_page": lambda _done, _total: None} | options))


def reason(data: bytes, **options: Any) -> str:
    with pytest.raises(DocumentError, match=r"^a\.pdf .*\.$") as caught:
        read(data, **options)
    return caught.value.reason


def text_of(content: Content) -> str:
    return "\n".join(page.text for page in content.pages)


def folded(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text))


@pytest.fixture
def folder(shared_data: Path) -> Path:
    return shared_data / "docs"


def test_every_awkward_pdf_gives_its_text_or_its_reason(folder: Path) -> None:
    """The reasons are those of the manifest, word for word, a scan's included."""
    problems = []
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["file"].endswith(".pdf") and case["file"] != "pdf-zero-bytes.pdf":
            problem = _problem((folder / case["file"]).read_bytes(), case)
            problems += [f"{case['file']}: {problem}"] if problem else []
    assert problems == []


def _problem(data: bytes, case: dict[str, Any]) -> str | None:
    try:
        text = folded(text_of(read(data)))
    except DocumentError as error:
        return None if error.reason == case["error_kind"] else f"{error.reason}: {error}"
    if case["outcome"] in ("error", "no_text"):
        return "was read although it must be refused"
    missing = [phrase for phrase in case["must_contain"] if folded(phrase) not in text]
    return f"missing {missing}" if missing else None


def test_a_password_opens_and_a_wrong_one_is_said(folder: Path) -> None:
    data = (folder / "pdf-encrypted-user-password.pdf").read_bytes()
    assert "Lorem ipsum dolor sit amet" in text_of(read(data, password="openpassword"))
    with pytest.raises(DocumentError, match=r"password does not open it; give its password"):
        read(data, password="wrong")


def test_arabic_is_in_the_order_in_which_it_is_read(folder: Path) -> None:
    """The ligature lam-alef came out as alef-lam, so that nobody found these words; the article is untouched."""
    text = text_of(read((folder / "pdf-arabic-rtl.pdf").read_bytes()))
    assert "تحسين الإنتاجية وحل المشكلات من خلال البرمجة بلغة R" in text
    assert "اإل" not in text
    assert "علاوة على ذلك" in text


def test_columns_are_read_one_after_the_other_and_words_are_whole(folder: Path) -> None:
    text = text_of(read((folder / "pdf-two-column-latex.pdf").read_bytes()))
    assert text.index("dignissim rutrum.") < text.index("Nam dui ligula, fringilla a,")
    assert "consectetuer id, vulputate a, magna." in text
    assert "\ufffe" not in text


def test_rows_of_a_table_that_fill_the_page_stay_rows(folder: Path) -> None:
    """They were taken for lines of a paragraph, and a country got the languages of the one above."""
    text = text_of(read((folder / "pdf-two-column-latex.pdf").read_bytes()))
    assert "Brussels Dutch, French, German\nCzech Republic 10.7" in text


def test_numbers_in_prose_do_not_part_its_lines() -> None:
    lines = "In 1998 the mill had 40 workers, and it was the largest employer of the\ntown until the fire of 1911, of which little is left to be seen today."
    assert "of the town until" in unwrap(lines)


def test_filled_form_fields_are_text(folder: Path) -> None:
    text = text_of(read((folder / "pdf-form-filled.pdf").read_bytes()))
    assert "Alice" in text
    assert "Bob" in text


def test_title_and_date_are_those_that_the_file_states() -> None:
    page = MadePage(lines=[(50, 700, "Some text.")])
    stated = read(made_pdf(page, info="/Title (The old mill) /CreationDate (D:20230506070809+02'00')"))
    assert (stated.title, stated.published_at) == ("The old mill", "2023-05-06")
    junk = read(made_pdf(page, info="/Title (Microsoft Word - draft.doc) /CreationDate (D:19000101000000)"))
    assert (junk.title, junk.published_at) == (None, None)


def test_pages_fall_under_their_outline() -> None:
    """A page is found by the name of its chapter only if it knows it."""
    content = read(
        made_pdf(
            MadePage(lines=column(50, 780, "Preface\nThanks to all.")),
            MadePage(lines=column(50, 780, "1 The mill\nIt grinds."), outline=["The mill"]),
            MadePage(lines=[(50, 780, "It still grinds.")]),
            MadePage(
                lines=column(
                    50, 780, "It stops after many years of grinding.\n" * 4 + "1.2 The weir\nIt holds."
                ),
                outline=["The weir"],
            ),
            MadePage(lines=[(50, 780, "And so on.")], outline=["An entry whose words are nowhere"]),
        )
    )
    assert [page.section for page in content.pages] == [
        None,
        "The mill",
        "The mill",
        "The mill",
        "An entry whose words are nowhere",
    ]
    weir = content.pages[3]
    assert [heading.text for heading in weir.headings] == ["The weir"]
    assert weir.text[weir.headings[0].start :].startswith("1.2 The weir")
    assert content.pages[4].headings == ()


def test_a_scan_is_refused_with_the_ways_to_its_text() -> None:
    scan = MadePage(picture=GREY, picture_size=(32, 32))
    with pytest.raises(
        DocumentError, match=r"SPECRAG_OCR to true, or run OCR elsewhere \(ocrmypdf"
    ) as caught:
        read(made_pdf(scan))
    assert caught.value.reason == "no_text_needs_ocr"


def test_a_page_without_text_stays_a_page() -> None:
    content = read(
        made_pdf(
            MadePage(lines=[(50, 700, "First.")]),
            MadePage(picture=GREY, picture_size=(32, 32)),
            MadePage(lines=[(50, 700, "Third.")]),
        )
    )
    assert [(page.number, page.text) for page in content.pages] == [(1, "First."), (2, ""), (3, "Third.")]


def test_two_thousand_pages_are_read_quickly_and_each_is_told() -> None:
    data = made_pdf(*(MadePage(lines=[(50, 700, f"This is page {number}.")]) for number in range(2000)))
    told: list[tuple[int, int]] = []
    started = time.monotonic()
    content = read(data, on_page=lambda done, total: told.append((done, total)))
    assert time.monotonic() - started < 10
    assert told == [(done, 2000) for done in range(2001)]
    assert content.pages[1999].text == "This is page 1999."


def test_limits_are_kept() -> None:
    many = made_pdf(*(MadePage(lines=[(50, 700, "word " * 30)]) for _ in range(4)))
    assert reason(many, max_pages=3) == "too_large"
    assert reason(many, max_characters=200) == "too_large"
    assert reason(made_pdf(), max_pages=3) == "no_pages"
    assert reason(many[: len(many) // 3]) == "corrupt"


def test_pages_read_by_ocr_are_named_as_a_person_would() -> None:
    assert encoding([1, 3, 4, 5, 7, 9, 10]) == "OCR (pages 1, 3-5, 7, 9-10)"
    assert str(warning(encoding([2]))).startswith("Read by OCR, which makes mistakes: page 2; ")
    assert (encoding([]), warning("utf-8"), warning(None)) == (None, None, None)
