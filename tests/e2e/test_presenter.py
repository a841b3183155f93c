"""The presenter view: large type, nothing to press, and whatever run the page follows."""

import re

import pytest
from playwright.sync_api import Browser, expect

from specrag.tracing.trace import fold
from specrag.ui.tour import recordings
from tests.e2e.axe import RUN
from tests.e2e.scripted_page import ScriptedPage
from tests.e2e.visitor import DESKTOP, PATIENCE_MS, PHONE, Visitor

pytestmark = pytest.mark.browser
PROJECTOR = 1920
TRACE = fold(recordings()[0].events)
PARTS = ("#sr-present-question", "#sr-status", "#sr-answer", "#sr-board", "#sr-timeline")
CONTROLS = (
    "#sr-question", "#sr-ask", "#sr-stop", "#sr-how", "#sr-collection", "#sr-header", "#sr-tour-open", "#sr-present",
    "#sr-passages", "footer", "#sr-tabs [role=tablist]",
)  # fmt: skip


def present(visitor: Visitor, run: str = "") -> None:
    visitor.page.goto(f"{visitor.url}/?present=1{f'&run={run}' if run else ''}")
    expect(visitor.page.locator("#sr-present-question")).to_be_attached()


@pytest.mark.parametrize("width", [PHONE, DESKTOP, PROJECTOR])
def test_a_link_presents_a_run_in_large_type_without_controls(
    browser: Browser, paced: ScriptedPage, width: int
) -> None:
    with Visitor(browser, paced.url, width=width) as visitor:
        present(visitor, RUN)
        expect(visitor.page.locator("#sr-present-question")).to_have_text(TRACE.question)
        expect(visitor.cards).to_have_count(len(TRACE.drafts))
        for part in PARTS:
            expect(visitor.page.locator(part)).to_be_visible()
        for control in CONTROLS:
            expect(visitor.page.locator(control).first).to_be_hidden()
        expect(visitor.board.locator(".sr-scores").first).to_be_visible()
        assert visitor.fits()
        size = float(visitor.page.evaluate("document.querySelector('#sr-answer').currentCSSZoom"))
        assert size >= (1.7 if width == PROJECTOR else 1.1)


def test_a_sentence_shows_its_evidence_on_the_projector_too(browser: Browser, paced: ScriptedPage) -> None:
    """The sentences were links to panels that were hidden: focus stopped at them, and nothing came."""
    with Visitor(browser, paced.url) as visitor:
        present(visitor, RUN)
        said = visitor.board.locator(".sr-said").first
        said.focus()
        visitor.page.keyboard.press("Enter")
        expect(visitor.panel.locator("mark.sr-pointed").first).to_be_visible()
        visitor.page.keyboard.press("Escape")
        expect(visitor.panel).to_have_count(0)
        expect(said).to_be_focused()
        expect(visitor.page.locator("#sr-present-question")).to_be_visible()


def test_escape_leaves_and_gives_the_focus_back(browser: Browser, paced: ScriptedPage) -> None:
    """The address says whether it is on, so that a reload or a bookmark shows the same."""
    with Visitor(browser, paced.url) as visitor:
        visitor.open(run=RUN)
        button = visitor.page.locator("#sr-present")
        button.focus()
        visitor.page.keyboard.press("Enter")
        expect(visitor.page).to_have_url(re.compile(r"[?&]present=1"))
        leave = visitor.page.get_by_role("button", name=re.compile("^Leave the presenter view"))
        expect(leave).to_be_focused()
        visitor.page.keyboard.press("Escape")
        expect(button).to_be_focused()
        expect(visitor.question).to_be_visible()
        expect(visitor.page).not_to_have_url(re.compile("present"))
        assert visitor.run_id == RUN


def test_it_follows_the_run_that_goes_on(browser: Browser, paced: ScriptedPage) -> None:
    """The heading is what was asked, whatever is typed afterwards."""
    with Visitor(browser, paced.url) as visitor:
        visitor.open()
        visitor.ask("Who founded Larkspur Works?")
        visitor.question.fill("typed afterwards, and not asked")
        visitor.page.locator("#sr-present").click()
        heading = visitor.page.locator("#sr-present-question")
        expect(heading).to_have_text("Who founded Larkspur Works?")
        visitor.wait_for_writing()
        expect(visitor.status).to_have_text(re.compile("^Done"), timeout=PATIENCE_MS)
        expect(visitor.answer.locator(".sr-answer-text")).to_contain_text("nswer")
        expect(heading).to_have_text("Who founded Larkspur Works?")
