"""From a citation to its place in the document and back, in a browser, with real files and real models."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import DONE, PATIENCE_MS, PHONE, Visitor
from tests.made_files import pdf

pytestmark = pytest.mark.browser

QUESTION: Final = "How many watt-hours does the battery of the Corvale lamp hold?"
PAGES: Final = (
    "Corvale lamp\nOwner's manual of May 2025\nThe Corvale lamp is a lamp for boats and huts.\nKeep it dry.",
    "Charging\nCharge the lamp in the shade.\nA full charge takes six hours.\nKeep the contacts clean.",
    "Light\nThe lamp has three levels of light.\nOn the lowest level it glows for nine nights.",
    "Battery\nThe battery of the lamp holds 640 watt-hours.\nIt weighs 3.4 kilograms with the handle.",
    "Warranty\nThe warranty of the frame is twelve years.\nThe battery has a warranty of three years.",
)
"""One thing is told on each page, so a citation that opens the wrong one is seen."""


class Sheet:
    """The sheet that shows a document, as a visitor sees it."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self.page = visitor.page
        self.whole = visitor.page.locator("#sr-viewer-sheet")
        self.said = self.whole.locator("[role=status]")
        self.image = self.whole.locator(".sr-leaf img")
        self.body = self.whole.locator(".sr-sheet-body")
        self.facts = self.whole.locator(".sr-sheet-facts")
        self.text = self.whole.locator(".sr-leaf-text .sr-passage")
        self.number = self.whole.get_by_role("spinbutton")

    @property
    def open(self) -> Locator:
        return self._visitor.page.locator("#sr-viewer-sheet:popover-open")

    def marked(self, kind: str) -> Locator:
        """What is marked in the text: "passage" or "evidence"."""
        return self.text.locator(f".sr-mark-{kind}")

    def choose(self, name: str) -> None:
        self.whole.get_by_role("radio", name=name, exact=True).check(force=True)

    def turn(self, name: str) -> None:
        self.whole.get_by_role("button", name=name).click()

    def type_number(self, text: str) -> None:
        """Type into the field for the number of the page, and do not go there yet."""
        self.number.focus()
        self.number.press("Control+A")
        self.number.press_sequentially(text)

    def close(self) -> None:
        self._visitor.page.keyboard.press("Escape")
        expect(self.open).to_have_count(0)


class Held:
    """Messages of the page that are kept on their way; each goes to every listener of the channel."""

    def __init__(self, action: str) -> None:
        self._action = action
        self._turns: list[str] = []
        self._routes: list[Route] = []
        self._waits = True

    def take(self, route: Route) -> None:
        told = route.request.post_data_json or {}
        message = next((text for text in told.get("data", ()) if str(text).startswith("{")), "")
        ours = f'"{self._action}"' in message
        if ours and message not in self._turns:
            self._turns.append(message)
        if ours and self._waits:
            self._routes.append(route)
        else:
            route.fallback()

    @property
    def values(self) -> list[str]:
        """What was asked for, whether or not it still waits."""
        return [json.loads(message)["value"] for message in self._turns]

    def release(self) -> None:
        """Let all of them on, those that are still to come among them."""
        self._waits = False
        for route in self._routes:
            route.continue_()
        self._routes.clear()


@contextmanager
def held(page: Page, action: str) -> Iterator[Held]:
    """Keep what is asked of the server under this action until it is released."""
    keeping = Held(action)
    page.route("**/queue/join*", keeping.take)
    try:
        yield keeping
    finally:
        keeping.release()
        page.unroute("**/queue/join*", keeping.take)


def is_in_view(mark: Locator, area: Locator) -> bool:
    """Whether a visitor sees the mark without scrolling."""
    one, other = mark.bounding_box(), area.bounding_box()
    assert one
    assert other
    return other["y"] <= one["y"] and one["y"] + one["height"] <= other["y"] + other["height"]


@pytest.fixture(scope="module")
def reader(browser: Browser, server: Server) -> Iterator[Visitor]:
    """A visitor who has put a manual of five pages in and asked it about the fourth."""
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        visitor.go_to("Documents")
        visitor.upload(
            {"name": "corvale.pdf", "mimeType": "application/pdf", "buffer": pdf(*PAGES)},
        )
        expect(visitor.rows.filter(has_text="corvale.pdf")).to_have_count(1, timeout=PATIENCE_MS)
        visitor.go_to("Ask")
        visitor.choose_collection("Your documents")
        visitor.ask(QUESTION)
        visitor.wait_for_end(DONE)
        yield visitor


@pytest.fixture
def sheet(reader: Visitor) -> Iterator[Sheet]:
    shown = Sheet(reader)
    yield shown
    if shown.open.count():
        shown.close()


def cited(visitor: Visitor) -> Locator:
    """The first citation of the answer."""
    cite = visitor.answer.locator(".sr-cite").first
    expect(cite).to_be_visible()
    return cite


def test_a_citation_opens_its_document_at_its_page_with_the_evidence_marked(
    reader: Visitor, sheet: Sheet
) -> None:
    """Citations that always opened the first chunk looked right on short files (ragflow#8594)."""
    expect(cited(reader)).to_have_accessible_name(re.compile(r"page 4$"))
    cited(reader).click()
    expect(sheet.open).to_have_count(1)
    expect(sheet.facts).to_contain_text("corvale.pdf")
    expect(sheet.facts).to_contain_text("4 of 5")
    expect(sheet.said).to_have_text("Page 4 of 5, passage marked, evidence underlined.")
    expect(sheet.image).to_be_visible()
    expect(sheet.image).to_have_attribute("alt", re.compile("^Page 4 of 5, passage marked"))
    evidence = sheet.whole.locator(".sr-box-evidence")
    expect(evidence.first).to_be_visible()
    assert is_in_view(evidence.first, sheet.body)
    assert sheet.image.evaluate("image => image.complete && image.naturalWidth > 800")
    sheet.choose("Text")
    expect(sheet.image).to_be_hidden()
    expect(sheet.marked("evidence").filter(has_text="640 watt-hours")).to_be_visible()
    assert is_in_view(sheet.marked("evidence").first, sheet.body)
    sheet.choose("Page")
    expect(sheet.image).to_be_visible()


def test_pages_are_turned_by_button_key_and_number_and_the_passage_found_again(
    reader: Visitor, sheet: Sheet
) -> None:
    cited(reader).click()
    expect(sheet.said).to_contain_text("Page 4 of 5")
    sheet.turn("Next page")
    expect(sheet.said).to_have_text("Page 5 of 5; the passage is on page 4.")
    expect(sheet.text).to_contain_text("twelve years")
    expect(sheet.whole.get_by_role("button", name="Next page")).to_be_disabled()
    expect(sheet.whole.locator(".sr-box")).to_have_count(0)
    sheet.body.focus()
    reader.page.keyboard.press("ArrowLeft")
    reader.page.keyboard.press("ArrowLeft")
    expect(sheet.said).to_contain_text("Page 3 of 5")
    sheet.number.fill("2")
    sheet.number.press("Enter")
    expect(sheet.said).to_contain_text("Page 2 of 5")
    expect(sheet.text).to_contain_text("six hours")
    expect(sheet.image).to_be_visible()
    expect(sheet.number).to_have_value("2")
    sheet.turn("To the passage, page 4")
    expect(sheet.said).to_contain_text("Page 4 of 5, passage marked")
    expect(sheet.whole.locator(".sr-box-evidence").first).to_be_visible()


@pytest.fixture
def undrawn(arrive: Arrive, request: pytest.FixtureRequest) -> Iterator[Sheet]:
    """The first page of a document none of whose other pages has been drawn yet; it is deleted afterwards."""
    name = f"{request.node.name[:40]}.pdf"
    visitor = arrive()
    visitor.open()
    visitor.go_to("Documents")
    pages = [f"Sheet {number} of {name}\nNothing else is told here." for number in range(1, 6)]
    visitor.upload({"name": name, "mimeType": "application/pdf", "buffer": pdf(*pages)})
    expect(visitor.rows.filter(has_text=name)).to_have_count(1, timeout=PATIENCE_MS)
    visitor.row(name).get_by_role("button", name=re.compile("^Open")).click()
    sheet = Sheet(visitor)
    expect(sheet.said).to_have_text("Page 1 of 5.")
    expect(sheet.image).to_be_visible()
    yield sheet
    if sheet.open.count():
        sheet.close()
    visitor.delete_document(name)


def test_a_number_that_is_typed_while_the_picture_comes_is_not_lost(undrawn: Sheet) -> None:
    """The picture came between the number and Enter, and Enter did nothing."""
    with held(undrawn.page, "leaf-draw") as drawing:
        undrawn.turn("Next page")
        expect(undrawn.said).to_have_text("Page 2 of 5.")
        expect(undrawn.image).to_have_count(0)
        undrawn.type_number("4")
        assert drawing.values == ["1.0"]
        drawing.release()
        expect(undrawn.image).to_be_visible()
    expect(undrawn.number).to_be_focused()
    expect(undrawn.number).to_have_value("4")
    undrawn.page.keyboard.press("Enter")
    expect(undrawn.said).to_have_text("Page 4 of 5.")
    expect(undrawn.image).to_be_visible()
    expect(undrawn.number).to_have_value("4")


def test_a_number_that_is_typed_while_the_page_turns_is_not_lost(undrawn: Sheet) -> None:
    with held(undrawn.page, "leaf-on") as turning:
        undrawn.turn("Next page")
        undrawn.type_number("5")
        turning.release()
        expect(undrawn.said).to_have_text("Page 2 of 5.")
    expect(undrawn.number).to_have_value("5")
    undrawn.page.keyboard.press("Enter")
    expect(undrawn.said).to_have_text("Page 5 of 5.")


def test_a_page_that_is_only_passed_by_is_not_drawn(undrawn: Sheet) -> None:
    """Its picture came after the page that was meant, and put the visitor back to it."""
    with held(undrawn.page, "leaf-draw") as drawing:
        with held(undrawn.page, "leaf-on") as turning:
            undrawn.body.focus()
            undrawn.page.keyboard.press("ArrowRight")
            undrawn.page.keyboard.press("ArrowRight")
            undrawn.page.evaluate(_PAGE_TWO_COMES)
            turning.release()
            expect(undrawn.said).to_have_text("Page 3 of 5.")
            expect(undrawn.image).to_have_count(0)
        drawing.release()
        expect(undrawn.image).to_be_visible()
    expect(undrawn.said).to_have_text("Page 3 of 5.")
    assert set(drawing.values) == {"2.0"}  # Gradio may say one thing twice


_PAGE_TWO_COMES = """() => {
  const sheet = document.getElementById("sr-viewer-sheet");
  const draw = sheet.querySelector("[data-sr-action=leaf-draw]");
  draw.dataset.srValue = "1.0";
  draw.disabled = false;
  sheet.dataset.srKey = "the second page";
}"""
"""What the answer to the first press does to the sheet, at the moment at which it hurt."""


def test_the_page_is_made_larger_and_the_evidence_stays_in_sight(reader: Visitor, sheet: Sheet) -> None:
    cited(reader).click()
    expect(sheet.image).to_be_visible()
    fit = sheet.image.bounding_box()
    sheet.choose("150 %")
    expect(sheet.whole.locator(".sr-leaf-paper")).to_have_css("width", re.compile(r"\d+"))
    large = sheet.image.bounding_box()
    assert fit
    assert large
    assert large["width"] == pytest.approx(1.5 * fit["width"], rel=0.02)
    reader.page.wait_for_function(
        "document.querySelector('.sr-box-evidence').getBoundingClientRect().top < innerHeight"
    )
    sheet.choose("Fit")


def test_the_focus_stays_in_the_sheet_and_goes_back_to_the_citation(reader: Visitor, sheet: Sheet) -> None:
    """By keyboard alone: open, walk round, close, go on reading where one was."""
    cited(reader).focus()
    reader.page.keyboard.press("Enter")
    expect(sheet.image).to_be_visible()
    for key in ("Tab",) * 12 + ("Shift+Tab",) * 12:
        reader.page.keyboard.press(key)
        inside = "document.getElementById('sr-viewer-sheet').contains(document.activeElement)"
        assert reader.page.evaluate(inside), key
    sheet.close()
    expect(cited(reader)).to_be_focused()
    cited(reader).click()
    sheet.whole.get_by_role("button", name="Close").click()
    expect(sheet.open).to_have_count(0)
    expect(cited(reader)).to_be_focused()


def test_every_passage_opens_its_own_page_from_its_quick_look(reader: Visitor, sheet: Sheet) -> None:
    for chip in reader.chips.all():
        chip.click()
        page = re.search(r"p\. (\d)", chip.inner_text())
        assert page
        words = reader.panel.locator(".sr-passage").inner_text().split()
        reader.panel.get_by_role("button", name="Open in the document").click()
        expect(reader.panel).to_have_count(0)
        expect(sheet.said).to_contain_text(f"Page {page[1]} of 5, passage marked")
        told = sheet.text.locator("mark").all_text_contents()
        assert "".join(told).split() == words
        sheet.close()
        expect(chip).to_be_focused()


def test_on_a_phone_the_sheet_is_the_whole_screen(reader: Visitor, arrive: Arrive) -> None:
    guest = arrive(width=PHONE, theme="dark")
    guest.open(run=reader.run_id)
    sheet = Sheet(guest)
    cited(guest).click()
    expect(sheet.image).to_be_visible()
    box = sheet.whole.bounding_box()
    assert box
    assert (box["x"], box["width"]) == (0, PHONE)
    assert guest.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    for control in sheet.whole.get_by_role("button").all():
        place = control.bounding_box()
        if place:
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= PHONE
            assert place["height"] >= 36, "large enough for a thumb"
    assert is_in_view(sheet.whole.locator(".sr-box-evidence").first, sheet.body)
    sheet.close()
    expect(cited(guest)).to_be_focused()


def test_a_text_without_pages_is_shown_with_its_passage_in_view(arrive: Arrive) -> None:
    """The sample: Markdown files, of which there is no picture."""
    guest = arrive()
    guest.open()
    guest.examples.nth(1).click()
    expect(guest.chips.nth(2)).to_be_visible(timeout=PATIENCE_MS)
    guest.stop()
    sheet = Sheet(guest)
    for chip in guest.chips.all()[:4]:
        chip.click()
        words = guest.panel.locator(".sr-passage").inner_text().split()
        guest.panel.get_by_role("button", name="Open in the document").click()
        expect(sheet.marked("passage").or_(sheet.marked("evidence")).first).to_be_visible()
        assert "".join(sheet.text.locator("mark").all_text_contents()).split() == words
        assert is_in_view(sheet.text.locator("mark").first, sheet.body)
        expect(sheet.image).to_have_count(0)
        sheet.close()


def test_a_document_is_opened_from_its_list_at_its_first_page(reader: Visitor, sheet: Sheet) -> None:
    """Clicks on citations once emptied the list behind them, which hears of all clicks."""
    cited(reader).click()
    expect(sheet.said).to_contain_text("Page 4")
    sheet.close()
    reader.go_to("Documents")
    row = reader.row("corvale.pdf")
    expect(row).to_be_visible()
    row.get_by_role("button", name=re.compile("^Open")).click()
    expect(sheet.said).to_have_text("Page 1 of 5.")
    expect(sheet.image).to_be_visible()
    expect(sheet.text.locator("mark")).to_have_count(0)
    sheet.close()
    expect(row.get_by_role("button", name=re.compile("^Open"))).to_be_focused()
    reader.go_to("Ask")


def test_the_citation_of_a_deleted_document_still_shows_its_sentence(reader: Visitor, sheet: Sheet) -> None:
    """The last test of this file: it deletes what the others read."""
    reader.go_to("Documents")
    reader.delete_document("corvale.pdf")
    reader.go_to("Ask")
    cited(reader).click()
    expect(sheet.whole.locator(".sr-notice").first).to_have_text(
        "The document is no longer in its collection."
    )
    expect(sheet.image).to_have_count(0)
    expect(sheet.marked("evidence").filter(has_text="640 watt-hours")).to_be_visible()
