"""The Compare tab as a visitor uses it: a race on real weights, its link, its prices, and its end."""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from specrag.tracing.comparisons import ComparisonStore
from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import PHONE, Visitor

pytestmark = pytest.mark.browser

QUESTION: Final = "How much may the Larkspur 3 carry?"
HOSTILE: Final = "<img src=x onerror=alert(1)> ${document.title} {{ 7*7 }} How much may it carry?"
PATIENCE_MS: Final = 400_000
"""For several runs on two busy cores."""
_DONE: Final = re.compile(r"^Done: ")


@pytest.fixture
def page(arrive: Arrive) -> Page:
    """The page of somebody who has just come to the Compare tab."""
    visitor = arrive()
    visitor.open()
    at_compare(visitor.page)
    return visitor.page


@pytest.fixture(scope="module")
def link(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a comparison that has ended; made once, since it takes real runs."""
    with Visitor(request.getfixturevalue("browser"), server.url) as visitor:
        visitor.open()
        at_compare(visitor.page)
        compare(visitor.page, QUESTION, "Drafter only", without="Speculative RAG")
        expect(status(visitor.page)).to_have_text(_DONE, timeout=PATIENCE_MS)
        yield visitor.page.url


def at_compare(page: Page) -> None:
    page.get_by_role("tab", name="Compare", exact=True).click()
    expect(page.locator("#sr-compare-question textarea")).to_be_visible()


def status(page: Page) -> Locator:
    return page.locator("#sr-compare-status .sr-status")


def runners(page: Page) -> Locator:
    return page.locator("#sr-compare-columns .sr-runner")


def table(page: Page) -> Locator:
    return page.locator("#sr-compare-table .sr-results")


def compare(page: Page, question: str, *more: str, without: str = "") -> None:
    """Compare standard with speculative RAG and `more`; waits until the page has its address."""
    pipelines = page.locator("#sr-compare-pipelines")
    for name in more:
        pipelines.get_by_label(name).check()
    if without:
        pipelines.get_by_label(without).uncheck()
    page.locator("#sr-compare-question textarea").fill(question)
    page.locator("#sr-compare-go").click()
    page.wait_for_url(re.compile("compare="))


def test_a_race_is_followed_over_a_reload_and_ends_with_its_numbers(visitor: Visitor, server: Server) -> None:
    """The whole way, with all pipelines, so that there is time enough to come back to the race."""
    page = visitor.page
    at_compare(page)
    compare(page, QUESTION, "Drafter only", "Multi-hop RAG")
    expect(status(page)).to_have_text(re.compile("^Running 1 of 4"), timeout=PATIENCE_MS)
    visitor.reload()
    expect(status(page)).to_have_text(re.compile("^Running"), timeout=PATIENCE_MS)
    expect(page.locator("#sr-compare-stop")).to_be_enabled()
    expect(page.get_by_role("tab", name="Compare", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sr-compare-question textarea")).to_have_value(QUESTION)
    expect(status(page)).to_have_text(_DONE, timeout=PATIENCE_MS)
    expect(table(page).locator("tbody tr")).to_have_count(4)
    expect(page.locator("#sr-compare-plot .js-plotly-plot .bars path").first).to_be_visible()
    expect(page.locator("#sr-compare-go")).to_be_enabled()
    assert server.active()["runs"] == 0
    made = ComparisonStore(server.home / "traces.db", most=1000).load(page.url.split("compare=")[1][:12])
    found = [[passage.id for passage in server.trace(run_id).passages] for run_id in made.run_ids]
    assert all(ids[: made.passages] == found[0] for ids in found)


def test_stop_stops_the_rest(page: Page, server: Server) -> None:
    """A run that begins after Stop keeps the models busy for nobody; a hostile question is only text."""
    compare(page, HOSTILE, "Multi-hop RAG")
    expect(status(page)).to_have_text(re.compile("^Running 1 of 3"), timeout=PATIENCE_MS)
    expect(page.locator("#sr-compare-race h3")).to_contain_text(HOSTILE)
    expect(page.locator("#sr-compare-recent li").first).to_contain_text(HOSTILE)
    page.locator("#sr-compare-stop").click()
    expect(status(page)).to_have_text("Stopped: The comparison was stopped.", timeout=PATIENCE_MS)
    assert [text for text in runners(page).all_inner_texts() if "Not run" in text]
    assert server.active()["runs"] == 0
    expect(page.locator("#sr-compare-go")).to_be_enabled()


def test_a_link_shows_the_comparison_to_another_visitor(link: str, arrive: Arrive) -> None:
    visitor = arrive(width=PHONE, theme="dark")
    page = visitor.page
    page.goto(f"{link}&__theme=dark")
    expect(table(page)).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("tab", name="Compare", exact=True)).to_have_attribute("aria-selected", "true")
    expect(runners(page)).to_have_count(2)
    expect(page.locator("#sr-compare-pipelines").get_by_label("Drafter only")).to_be_checked()
    expect(page.locator("#sr-compare-pipelines").get_by_label("Speculative RAG")).not_to_be_checked()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert visitor.fits()


def test_the_race_is_watched_again_by_keyboard(link: str, arrive: Arrive) -> None:
    page = arrive().page
    page.goto(link)
    play = page.get_by_role("button", name="Watch the race")
    expect(play).to_be_visible(timeout=PATIENCE_MS)
    ended = page.locator("[data-sr-race-said]").all_inner_texts()
    page.locator("[data-sr-race-speed='4']").press("Enter")
    expect(page.locator("[data-sr-race-speed='4']")).to_have_attribute("aria-pressed", "true")
    play.press("Enter")
    pause = page.get_by_role("button", name="Pause")
    expect(pause).to_be_focused()
    pause.press("Enter")
    standing = page.locator("[data-sr-race-clock]").inner_text()
    assert standing.endswith(" s")
    assert page.locator("[data-sr-race-said]").all_inner_texts() != ended
    page.get_by_role("button", name="Go on").press("Enter")
    expect(page.get_by_role("button", name="Watch it again")).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator("[data-sr-race-said]").all_inner_texts() == ended


def test_prices_are_typed_and_a_slip_is_told(link: str, arrive: Arrive) -> None:
    page = arrive().page
    page.goto(link)
    expect(table(page)).to_contain_text("an assumption", timeout=PATIENCE_MS)
    page.locator("#sr-compare-prices > button").click()
    boxes = page.locator("#sr-price-verifier-reads textarea, #sr-price-verifier-reads input")
    boxes.fill("1000")
    expect(table(page)).to_contain_text("the prices that you typed")
    boxes.fill("<b>free</b>")
    notice = page.locator("#sr-price-message .sr-notice")
    expect(notice).to_contain_text("The price of the verifier's tokens read is “<b>free</b>”")
    expect(table(page)).not_to_contain_text("$")
    page.locator("#sr-price-kind").get_by_label("By machine time").check()
    expect(notice).to_have_count(0)
    expect(table(page)).to_contain_text("the time that a question takes")
    expect(boxes).not_to_be_visible()
    page.locator("#sr-price-kind").get_by_label("No cost").check()
    expect(table(page)).not_to_contain_text("$")


def test_a_run_of_it_is_opened_in_traces(link: str, arrive: Arrive) -> None:
    page = arrive().page
    page.goto(link)
    expect(table(page)).to_be_visible(timeout=PATIENCE_MS)
    runners(page).first.get_by_role("button", name="Open the run").click()
    expect(page.get_by_role("tab", name="Traces", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#sr-traces")).to_contain_text(QUESTION)


def test_a_deleted_comparison_is_gone_and_its_runs_are_not(link: str, arrive: Arrive, server: Server) -> None:
    """Last, since the others look at the same one."""
    page = arrive().page
    page.goto(link)
    expect(table(page)).to_be_visible(timeout=PATIENCE_MS)
    identity = link.split("compare=")[1][:12]
    made = ComparisonStore(server.home / "traces.db", most=1000).load(identity)
    row = page.locator("#sr-compare-recent li[aria-current=true]")
    row.get_by_role("button", name=re.compile("^Delete")).click()
    page.locator("#sr-dialog[open]").get_by_role("button", name="Delete", exact=True).click()
    expect(status(page)).to_contain_text("deleted")
    expect(table(page)).to_have_count(0)
    assert "compare=" not in page.url
    assert all(server.trace(run_id).question == QUESTION for run_id in made.run_ids)
    page.goto(link)
    expect(page.locator("#sr-compare-message")).to_contain_text("There is no comparison", timeout=PATIENCE_MS)


def test_a_choice_that_is_none_is_one_sentence(page: Page) -> None:
    page.locator("#sr-compare-pipelines").get_by_label("Speculative RAG").uncheck()
    page.locator("#sr-compare-question textarea").fill(QUESTION)
    page.locator("#sr-compare-go").click()
    message = page.locator("#sr-compare-message .sr-notice")
    expect(message).to_have_text("Error Choose at least two pipelines to compare.")
    assert "compare=" not in page.url


def test_a_link_that_is_none_is_one_sentence_and_runs_nothing(arrive: Arrive) -> None:
    page = arrive().page
    page.goto(f"{arrive()._url}/?compare=%3Cscript%3Ealert(1)%3C/script%3E")
    expect(page.locator("#sr-compare-message")).to_contain_text("“<script>alert(1)</script>”")


def test_the_question_of_the_ask_tab_is_taken_over(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.open()
    visitor.question.fill("Who founded the firm?")
    at_compare(visitor.page)
    expect(visitor.page.locator("#sr-compare-question textarea")).to_have_value("Who founded the firm?")
