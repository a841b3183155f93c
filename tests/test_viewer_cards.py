"""What a visitor sees of a document in the sheet, and that nothing in a document can do anything there."""

import base64
import re
from dataclasses import replace

import pytest

from specrag.ingest.base import Box, PageImage
from specrag.leaves import Mark, Piece, Place
from specrag.types import DocumentInfo, Passage
from specrag.ui import viewer_cards as cards
from specrag.ui.readout import Ref, refs_of
from specrag.ui.viewer_cards import Target
from specrag.viewer import PageView
from tests.ui_html import Element, find, inside, read
from tests.ui_traces import HOSTILE, LONG_WORD, SELECTED

DOCUMENT = DocumentInfo(
    id="d1",
    title="Harbour rules",
    source="rules.pdf",
    pages=12,
    chunks=40,
    added_at="2026-01-01",
    published_at="2019-05-01T10:00:00Z",
    media_type="application/pdf",
)
PIECES = (
    Piece(text="4. Quays. ", mark="none"),
    Piece(text="Boats report. ", mark="passage"),
    Piece(text="They stay three nights.", mark="evidence"),
    Piece(text=" 5. Dogs.", mark="none"),
)
VIEW = PageView(
    document=DOCUMENT,
    part=2,
    parts=12,
    page=3,
    section="Quays",
    text=PIECES,
    start=0,
    end=60,
    characters=60,
    place=Place(part=2, start=10, end=47),
    drawable=True,
)
LINES = (
    Box(left=0.1, top=0.2, width=0.5, height=0.02),
    Box(left=0.1, top=0.22, width=0.3, height=0.02),
    Box(left=0.55, top=0.1, width=0.3, height=0.02),
)
IMAGE = PageImage(
    data=b"\x00picture", media_type="image/webp", width=1000, height=1414, passage=LINES, evidence=LINES[:1]
)
REF: Ref = refs_of(SELECTED, "ask")["p2"]
TARGET = Target(id="run-1:p2", ref=REF)


def page(view: PageView = VIEW, target: Target = TARGET) -> str:
    return cards.page_card(view, target, key="7")


def button(html: str, action: str) -> Element:
    (found,) = [one for one in read(html) if one.attributes.get("data-sr-action") == action]
    return found


def shown(one: Element) -> bool:
    return not any("hidden" in other.attributes for other in (one, *one.parents))


def facts(html: str) -> dict[str, str]:
    head = find(html, "sr-sheet-facts")[0]
    names, texts = inside(html, head, "dt"), inside(html, head, "dd")
    return {name.text: text.text for name, text in zip(names, texts, strict=True)}


def said(html: str) -> str:
    (line,) = [one for one in read(html) if one.attributes.get("aria-live")]
    return line.text


def test_the_sheet_says_what_it_shows_and_marks_passage_and_evidence() -> None:
    html = page()
    (sheet,) = find(html, "sr-sheet")
    assert {"popover", "aria-labelledby", "aria-modal"} <= set(sheet.attributes)
    assert sheet.attributes["role"] == "dialog"
    assert "sr-h2" in sheet.classes, "the hue of the draft that read it, as on its citation"
    assert find(html, "h3")[0].text == "2 Harbour rules"
    assert facts(html) == {
        "file": "rules.pdf",
        "page": "3 of 12",
        "section": "Quays",
        "dated": "2019-05-01",
        "similarity": "0.69",
    }
    body = find(html, "sr-leaf-text")[0]
    assert [one.text for one in inside(html, body, "sr-mark-passage")] == ["Boats report."]
    assert [one.text for one in inside(html, body, "sr-mark-evidence")] == ["They stay three nights."]
    assert inside(html, body, "sr-passage")[0].text == "".join(piece.text for piece in PIECES)
    assert said(html) == "Page 3 of 12, passage marked, evidence underlined."


def test_how_the_passage_was_found_is_told_where_it_is_known() -> None:
    ranked = replace(REF, passage=replace(REF.passage, dense_rank=3, bm25_rank=None))
    found = facts(page(target=Target(id="r:p2", ref=ranked)))
    assert (found["rank by meaning"], found["by words"]) == ("3", "–")
    assert "by words" not in facts(page())


def test_pages_are_turned_by_what_the_buttons_say() -> None:
    html = page()
    assert button(html, "leaf-back").attributes["data-sr-value"] == "1"
    assert button(html, "leaf-on").attributes["data-sr-value"] == "3"
    assert {button(html, name).attributes["data-sr-id"] for name in ("leaf-back", "leaf-on", "leaf-to")} == {
        "run-1:p2"
    }
    assert "disabled" in button(page(replace(VIEW, part=0, page=1)), "leaf-back").attributes
    assert "disabled" in button(page(replace(VIEW, part=11, page=12)), "leaf-on").attributes
    assert not shown(button(page(replace(VIEW, part=0, parts=1)), "leaf-on"))


def test_from_another_page_there_is_a_way_back_to_the_passage() -> None:
    html = page(replace(VIEW, part=5, page=6, text=(Piece(text="Fees.", mark="none"),)))
    back = button(html, "leaf-passage")
    assert shown(back)
    assert (back.text, back.attributes["data-sr-value"]) == ("To the passage, page 3", "2")
    assert said(html) == "Page 6 of 12; the passage is on page 3."
    assert not shown(button(page(), "leaf-passage"))


def test_a_passage_that_is_no_longer_there_is_said_to_be_so() -> None:
    html = page(replace(VIEW, place=None, text=(Piece(text="Fees.", mark="none"),)))
    assert "no longer found in this document" in find(html, "sr-notice")[0].text
    assert said(html) == "Page 3 of 12; the passage is not found in the document."


def test_a_drawn_page_has_its_marks_at_their_places_and_words_for_who_cannot_see_it() -> None:
    html = page(replace(VIEW, image=IMAGE))
    (image,) = find(html, "img")
    kind, data = image.attributes["src"].split(",", 1)
    assert kind == "data:image/webp;base64"
    assert base64.b64decode(data) == IMAGE.data
    assert image.attributes["alt"].startswith("Page 3 of 12, passage marked, evidence underlined.")
    boxes = find(html, "sr-box")
    assert len(boxes) == 4
    assert boxes[0].attributes["style"] == "left:10.00%;top:20.00%;width:50.00%;height:2.00%"
    assert len(find(html, "sr-box-evidence")) == 1
    bars = [one.attributes["style"] for one in find(html, "sr-bar-passage")]
    assert bars == ["left:10.00%;top:20.00%;height:4.00%", "left:55.00%;top:10.00%;height:2.00%"], (
        "one bar for each column"
    )


def test_while_a_page_is_drawn_its_place_is_kept() -> None:
    html = page()
    assert find(html, "sr-drawing")
    assert "disabled" not in button(html, "leaf-draw").attributes, "the sheet asks for the image by itself"
    assert "disabled" in button(page(replace(VIEW, image=IMAGE)), "leaf-draw").attributes, "and only once"
    assert not find(html, "img")
    assert "sr-has-image" in find(html, "sr-sheet")[0].classes
    failed = page(replace(VIEW, image_error="Page 3 cannot be drawn."))
    assert find(failed, "sr-notice")[0].text == "Page 3 cannot be drawn. The text is shown instead."
    assert "sr-has-image" not in find(failed, "sr-sheet")[0].classes
    assert "disabled" in button(failed, "leaf-draw").attributes


@pytest.mark.parametrize("media_type", ["image/svg+xml", "text/html", 'image/png" onload="x'])
def test_no_other_kind_of_image_gets_into_the_page(media_type: str) -> None:
    html = page(replace(VIEW, image=replace(IMAGE, media_type=media_type)))
    assert not find(html, "img")


def test_a_long_page_is_shown_in_stretches() -> None:
    html = page(replace(VIEW, start=40_000, end=60_000, characters=2_000_000, place=None))
    earlier, later = button(html, "leaf-earlier"), button(html, "leaf-later")
    assert (earlier.attributes["data-sr-value"], later.attributes["data-sr-value"]) == ("2.20000", "2.60000")
    assert find(html, "sr-stretch")[0].text == "Characters 40,001 to 60,000 of 2,000,000"
    assert not shown(button(page(), "leaf-earlier"))
    assert not shown(button(page(), "leaf-later"))


@pytest.mark.parametrize(
    ("media_type", "number", "word"),
    [
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation", 3, "Slide 3 of 12."),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", 3, "Sheet 3 of 12."),
        ("application/epub+zip", None, "Chapter 3 of 12."),
        ("text/plain", None, "Part 3 of 12."),
        ("", 3, "Page 3 of 12."),
    ],
)
def test_pages_are_called_what_they_are(media_type: str, number: int | None, word: str) -> None:
    view = replace(VIEW, document=replace(DOCUMENT, media_type=media_type), page=number)
    assert said(page(view, Target(id="document:d1"))) == word


def test_a_lost_document_still_shows_what_was_cited() -> None:
    told = (("Boats report. ", False), ("They stay three nights.", True))
    html = cards.lost_card(REF.passage, told, TARGET, "The document is no longer in its collection.", key="3")
    assert find(html, "sr-notice")[0].text == "The document is no longer in its collection."
    body = find(html, "sr-leaf-text")[0]
    assert [one.text for one in inside(html, body, "sr-mark-evidence")] == ["They stay three nights."]
    assert facts(html)["file"] == "quay-notice-2025.pdf"
    assert not shown(button(html, "leaf-on"))


def test_the_header_row_of_a_table_stands_with_its_rows() -> None:
    rows = replace(REF, passage=replace(REF.passage, lead="Boat | Nights"))
    html = page(target=Target(id="r:p2", ref=rows))
    (lead,) = find(html, "sr-lead")
    assert shown(lead)
    assert "Boat | Nights" in lead.text
    assert not shown(find(page(), "sr-lead")[0])


def _sheets() -> dict[str, str]:
    evil_document = replace(
        DOCUMENT, id=HOSTILE, title=HOSTILE, source=HOSTILE, published_at=HOSTILE, media_type=HOSTILE
    )
    marks: tuple[Mark, ...] = ("none", "passage", "evidence")
    evil = replace(
        VIEW,
        document=evil_document,
        section=HOSTILE,
        text=tuple(Piece(text=HOSTILE + LONG_WORD, mark=mark) for mark in marks),
        image_error=HOSTILE,
        image=IMAGE,
    )
    passage: Passage = replace(
        REF.passage, title=HOSTILE, source=HOSTILE, section=HOSTILE, lead=HOSTILE, published_at=HOSTILE
    )
    target = Target(id=f'run"><script>:{HOSTILE}', ref=replace(REF, passage=passage, opens=HOSTILE))
    return {
        "opening": cards.opening(),
        "page": page(replace(VIEW, image=IMAGE)),
        "drawing": page(),
        "text": page(replace(VIEW, drawable=False)),
        "document": page(target=Target(id="document:d1")),
        "evil": page(evil, target),
        "lost": cards.lost_card(passage, ((HOSTILE, True), (HOSTILE, False)), target, HOSTILE, key="1"),
        "failed": cards.failed_card(HOSTILE, key="2"),
    }


def test_nothing_in_a_document_becomes_markup_script_or_template() -> None:
    for name, html in _sheets().items():
        elements = read(html)
        assert {one.tag for one in elements} <= {
            *("section", "div", "h3", "b", "bdi", "button", "dl", "dt", "dd", "p", "span", "label", "input"),
            *("figure", "img", "i", "article", "mark"),
        }, name
        assert not [key for one in elements for key in one.attributes if key.startswith("on")], name
        assert "${" not in html, name
        assert "{{" not in html, name
        assert not re.search("[\u202a-\u202e\u2066-\u2069\ud800-\udfff\x00]", html), name
        assert len([one for one in elements if one.tag == "img"]) <= 1, name


def test_every_sheet_has_the_same_frame() -> None:
    """Gradio patches by place: an element that comes and goes would take the focus and the choices along."""

    def frame(html: str) -> list[tuple[str, str]]:
        (sheet,) = find(html, "sr-sheet")
        tools = find(html, "sr-sheet-tools")[0]
        parts = [one for one in read(html) if one.parents and one.parents[-1].attributes == sheet.attributes]
        return [(one.tag, " ".join(sorted(one.classes))) for one in (*parts, *inside(html, tools, "button"))]

    frames = {name: frame(html) for name, html in _sheets().items()}
    assert all(one == frames["opening"] for one in frames.values())


def test_a_control_can_be_used_by_keyboard_and_is_called_by_a_name() -> None:
    html = page(replace(VIEW, image=IMAGE))
    labels = {one.attributes.get("aria-label") or one.text for one in find(html, "button")}
    assert {"Close", "Previous page", "Next page"} <= labels
    for field in find(html, "input"):
        assert any(parent.tag == "label" and parent.text for parent in field.parents)
    assert find(html, "sr-sheet-body")[0].attributes["tabindex"] == "0", "the page is scrolled by its arrows"
