"""The walkthrough in a browser: seven steps without a model, by keyboard, and nothing of the page is touched."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from specrag.tracing.trace import fold
from specrag.ui.tour import recordings
from specrag.ui.tour_steps import steps
from tests.e2e.conftest import Arrive
from tests.e2e.modelless import waiting_page
from tests.e2e.serving import Server
from tests.e2e.visitor import DESKTOP, PHONE, Visitor

pytestmark = pytest.mark.browser
RUN = recordings()[0]
STEPS = steps(fold(RUN.events), events=len(RUN.events))
PARTS = ("question", "passages", "board", "board", "board", "answer", "timeline")


@pytest.fixture(scope="module")
def page_url(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page whose models never come."""
    with waiting_page(tmp_path_factory.mktemp("waiting")) as url:
        yield url


class Tour:
    """The tour as a visitor meets it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.dialog = page.get_by_role("dialog", name=re.compile("."))
        self.title = page.locator("#sr-tour-title")
        self.text = page.locator("#sr-tour-text")

    def begin(self) -> None:
        self.page.get_by_role("button", name="Take the tour").first.click()
        expect(self.title).to_have_text(STEPS[0].title)

    def part(self, name: str) -> Locator:
        return self.page.locator(f"[data-sr-part={name}]")

    def next(self) -> None:
        self.page.get_by_role("button", name="Next", exact=True).click()

    def to_step(self, number: int) -> None:
        for step in STEPS[1:number]:
            self.page.keyboard.press("ArrowRight")
            expect(self.title).to_have_text(step.title)

    @property
    def lit(self) -> FloatRect:
        box = self.page.locator("#sr-tour-light").bounding_box()
        assert box is not None
        return box


def arrived(browser: Browser, url: str, **looks: object) -> Visitor:
    visitor = Visitor(browser, url.partition("?")[0].rstrip("/"), **looks)  # type: ignore[arg-type]  # width and theme
    visitor.page.goto(url)
    expect(visitor.page.locator("#sr-tour-open")).to_be_visible()
    return visitor


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_seven_steps_tell_the_recorded_run_while_the_models_still_load(
    browser: Browser, page_url: str, width: int
) -> None:
    """The tour needed neither models nor an answered question, and each step lights up what it speaks of."""
    with arrived(browser, page_url, width=width) as visitor:
        tour = Tour(visitor.page)
        tour.begin()
        for number, (step, part) in enumerate(zip(STEPS, PARTS, strict=True), 1):
            expect(tour.dialog).to_contain_text(f"Step {number} of 7")
            expect(tour.title).to_have_text(step.title)
            assert tour.text.locator("p").all_inner_texts() == list(step.sentences)
            expect(tour.part(part)).not_to_be_empty()
            assert visitor.fits()
            if number < len(STEPS):
                tour.next()
        expect(tour.part("answer")).to_contain_text("The maximum load of the Larkspur 3 is 160 kilograms.")
        expect(tour.part("answer")).to_contain_text("Disputed")
        visitor.page.get_by_role("button", name="Done").click()
        expect(tour.dialog).to_have_count(0)


def test_the_light_falls_on_the_part_and_the_words_do_not_cover_its_top(
    browser: Browser, page_url: str
) -> None:
    with arrived(browser, page_url) as visitor:
        tour = Tour(visitor.page)
        tour.begin()
        for number, part in enumerate(PARTS, 1):
            tour.to_step(1)
            visitor.page.wait_for_function(SETTLED)
            spot = tour.part(part).bounding_box()
            assert spot is not None
            assert abs(tour.lit["x"] - spot["x"]) < 40
            top, words = tour.lit["y"], tour.dialog.bounding_box()
            assert words is not None
            assert -2 <= top < words["y"] - 60, f"step {number}"
            if number < len(PARTS):
                visitor.page.keyboard.press("ArrowRight")


SETTLED = """() => new Promise((done) => {
  let last = "";
  let same = 0;
  const look = () => {
    const now = JSON.stringify([scrollY, document.getElementById("sr-tour-light").style.cssText]);
    same = now === last ? same + 1 : 0;
    last = now;
    same > 20 ? done(true) : requestAnimationFrame(look);
  };
  look();
})"""
"""Nothing moves any more: the drafts are complete and the scrolling is over."""


def test_drafts_grow_side_by_side_and_can_be_seen_again(browser: Browser, page_url: str) -> None:
    with arrived(browser, page_url) as visitor:
        tour = Tour(visitor.page)
        tour.begin()
        tour.to_step(3)
        visitor.page.evaluate(COUNT)
        visitor.page.keyboard.press("ArrowRight")
        last = tour.part("board").locator(".sr-card").nth(2)
        expect(last).to_contain_text("102 tok")
        grown = visitor.page.evaluate("window.lengths")
        assert len(set(grown)) > 3, "the text was not seen growing"
        assert grown == sorted(grown)
        again = visitor.page.get_by_role("button", name="Replay")
        again.click()
        expect(last).not_to_contain_text("102 tok")
        expect(last).to_contain_text("102 tok")


COUNT = """() => {
  window.lengths = [];
  const board = document.querySelector("[data-sr-part=board]");
  new MutationObserver(() => window.lengths.push(
    [...board.querySelectorAll(".sr-text")].reduce((sum, one) => sum + one.textContent.trim().length, 0)))
    .observe(board, { subtree: true, childList: true });
}"""


def test_with_reduced_motion_a_step_is_there_at_once(browser: Browser, page_url: str) -> None:
    with arrived(browser, page_url) as visitor:
        visitor.page.emulate_media(reduced_motion="reduce")
        tour = Tour(visitor.page)
        tour.begin()
        tour.to_step(4)
        expect(tour.part("board")).to_contain_text("102 tok", timeout=400)
        expect(visitor.page.get_by_role("button", name="Replay")).to_have_count(0)


def test_the_keyboard_alone_walks_through_and_ends(browser: Browser, page_url: str) -> None:
    """The focus stays inside, the heading of each step gets it, and Escape gives it back."""
    with arrived(browser, page_url) as visitor:
        page, tour = visitor.page, Tour(visitor.page)
        opener = page.locator("#sr-tour-open")
        opener.focus()
        page.keyboard.press("Enter")
        expect(tour.title).to_have_text(STEPS[0].title)
        expect(tour.title).to_be_focused()
        expect(tour.text).to_have_attribute("aria-live", "polite")
        page.keyboard.press("Enter")
        expect(tour.title).to_have_text(STEPS[1].title)
        # the heading has the focus already, so only what is live is said
        expect(tour.text).to_contain_text(f"Step 2 of {len(STEPS)}: {STEPS[1].title}.")
        page.keyboard.press("ArrowLeft")
        expect(tour.title).to_have_text(STEPS[0].title)
        page.keyboard.press("ArrowLeft")
        expect(tour.title).to_have_text(STEPS[0].title)
        for _ in range(12):
            page.keyboard.press("Tab")
            assert page.evaluate("!!document.activeElement.closest('#sr-tour')")
        for _ in range(12):
            page.keyboard.press("Shift+Tab")
            assert page.evaluate("!!document.activeElement.closest('#sr-tour')")
        page.keyboard.press("Escape")
        expect(tour.dialog).to_have_count(0)
        expect(opener).to_be_focused()


def test_a_screen_reader_is_told_what_it_is_and_where_it_is(browser: Browser, page_url: str) -> None:
    with arrived(browser, page_url) as visitor:
        tour = Tour(visitor.page)
        tour.begin()
        tour.to_step(2)
        expect(visitor.page.get_by_role("dialog", name=STEPS[1].title)).to_be_visible()
        expect(tour.text).to_have_attribute("aria-live", "polite")
        expect(tour.text.locator("p")).to_have_text(STEPS[1].sentences)
        assert visitor.page.locator("#sr-tour [aria-live]").count() == 1


def test_the_other_recording_can_be_chosen(browser: Browser, page_url: str) -> None:
    with arrived(browser, page_url) as visitor:
        tour = Tour(visitor.page)
        tour.begin()
        other = fold(recordings()[1].events)
        button = visitor.page.get_by_role("button", name=other.question)
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(tour.part("question")).to_contain_text(other.question)
        tour.next()
        expect(tour.part("passages")).to_contain_text(other.passages[0].title[:12])


def test_the_empty_page_invites_and_a_link_begins_it(browser: Browser, page_url: str) -> None:
    with arrived(browser, page_url) as visitor:
        invite = visitor.page.locator(".sr-tour-invite button")
        expect(invite).to_be_visible()
        invite.click()
        expect(Tour(visitor.page).title).to_have_text(STEPS[0].title)
        visitor.page.keyboard.press("Escape")
        expect(invite).to_be_focused()
    with arrived(browser, f"{page_url}/?tour=1") as visitor:
        expect(Tour(visitor.page).title).to_have_text(STEPS[0].title)


def test_afterwards_the_page_is_as_before(browser: Browser, page_url: str) -> None:
    """What was typed, the open tab and the place on the page stay; the stage is empty again."""
    with arrived(browser, page_url) as visitor:
        page, tour = visitor.page, Tour(visitor.page)
        visitor.question.fill("half a question")
        page.get_by_role("tab", name="Documents").click()
        before = shown(page)
        tour.begin()
        expect(page.get_by_role("tab", name="Ask", exact=True, include_hidden=True)).to_have_attribute(
            "aria-selected", "true"
        )
        tour.to_step(6)
        page.keyboard.press("Escape")
        expect(page.get_by_role("tab", name="Documents")).to_have_attribute("aria-selected", "true")
        assert shown(page) == before
        page.get_by_role("tab", name="Ask", exact=True).click()
        expect(visitor.question).to_have_value("half a question")
        expect(page.locator(".sr-tour-parts")).to_be_hidden()
        assert page.locator(".sr-tour-parts").inner_text().strip() == ""


def shown(page: Page) -> str:
    """The texts of the visitor's own page."""
    parts = ("sr-status", "sr-answer", "sr-passages", "sr-board", "sr-timeline")
    return str(
        page.evaluate(
            "ids => ids.map(id => document.querySelector(`#${id} .sr`)?.textContent).join('|')", parts
        )
    )


def test_a_run_that_goes_on_is_neither_stopped_nor_mixed_up(arrive: Arrive, server: Server) -> None:
    """The tour drew over the board of the run, and the run's next tick drew over the tour."""
    visitor = arrive()
    visitor.open()
    visitor.ask("Who founded Larkspur Works?")
    run_id = visitor.run_id
    tour = Tour(visitor.page)
    tour.begin()
    tour.to_step(3)
    expect(tour.part("board")).to_contain_text(fold(RUN.events).subsets[0].perspective)
    expect(visitor.board).to_be_hidden()
    visitor.page.keyboard.press("Escape")
    assert visitor.run_id == run_id
    visitor.wait_for_end()
    expect(visitor.board).to_be_visible()
    expect(visitor.board).not_to_contain_text(fold(RUN.events).subsets[0].perspective)
    answer = server.trace(run_id).answer
    assert answer is not None
    expect(visitor.answer).to_contain_text(answer.text)
