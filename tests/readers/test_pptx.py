"""Presentations: a page for each slide, with everything that is said on it."""

import io
from pathlib import Path

from pptx import Presentation
from pptx.util import Inches

from specrag.config import load_settings
from specrag.ingest.loaders import read
from tests.made_files import core, pptx, with_member
from tests.readers.tools import load, refused, text_of


def test_slides_are_numbered_pages_with_titles_and_notes(tmp_path: Path) -> None:
    deck = pptx(("The mill", "Old\vstones"), ("The wheel", "New"), notes="Say hello.")
    document = load(tmp_path, "talk.pptx", deck)
    assert [(page.number, page.section, page.text) for page in document.pages] == [
        (1, "The mill", "The mill\n\nOld\nstones"),
        (2, "The wheel", "The wheel\n\nNew\n\nNotes: Say hello."),
    ]
    assert (document.title, document.published_at) == ("The mill", None)  # the template's date is none


def test_stated_title_and_date_are_kept_unless_a_program_wrote_them(tmp_path: Path) -> None:
    deck = pptx(("First", "x"))
    stated = with_member(deck, "docProps/core.xml", core(title="My talk", modified="2021-02-03T00:00:00Z"))
    document = load(tmp_path, "talk.pptx", stated)
    assert (document.title, document.published_at) == ("My talk", "2021-02-03")
    junk = with_member(deck, "docProps/core.xml", core(title="PowerPoint Presentation"))
    assert load(tmp_path, "talk.pptx", junk).title == "First"


def test_groups_tables_and_hidden_slides_are_read_and_repeated_numbers_are_not(tmp_path: Path) -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide._element.set("show", "0")
    group = slide.shapes.add_group_shape()
    inner = group.shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "in a group"
    table = slide.shapes.add_table(2, 3, 0, 0, Inches(3), Inches(1)).table
    for column, text in enumerate(("a", "b", "c")):
        table.cell(0, column).text = text
        table.cell(1, column).text = text.upper()
    table.cell(0, 0).merge(table.cell(0, 1))
    buffer = io.BytesIO()
    deck.save(buffer)
    assert text_of(load(tmp_path, "a.pptx", buffer.getvalue())) == "in a group\n\na b | | c\nA | B | C"


def test_a_real_deck_has_its_merged_table_once(shared_data: Path) -> None:
    path = shared_data / "docs" / "pptx-tables-notes.pptx"
    document = read(path, path.name, load_settings())
    assert text_of(document).count("A merged with B") == 1
    assert [page.number for page in document.pages] == [1, 2, 3]
    assert document.published_at == "2024-10-23"


def test_too_many_slides_and_none_are_refused(tmp_path: Path) -> None:
    assert "3 slides" in str(refused(tmp_path, "a.pptx", pptx(*[("t", "x")] * 3), max_pages=2))
    assert refused(tmp_path, "a.pptx", pptx()).reason == "no_pages"
