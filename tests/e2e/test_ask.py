"""Reading an answer: values of tokens, evidence, the runs of a page, ratings and conversations.

Most of these open runs that are kept already, so that no model has to write anything.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from specrag.tracing.store import TraceStore
from specrag.types import Exchange
from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import PHONE, Visitor
from tests.ui_traces import DISPUTED, HOSTILE, SELECTED

pytestmark = pytest.mark.browser
FOLLOWING = replace(
    SELECTED,
    run_id="ask-follow",
    question="And in winter?",
    earlier=(Exchange(question=SELECTED.question, answer="Three nights."),),
    rewritten="How long may a boat stay in winter?",
)
KEPT = (
    replace(SELECTED, run_id="ask-one"),
    replace(DISPUTED, run_id="ask-two", question="How long, says who?"),
    FOLLOWING,
    replace(SELECTED, run_id="ask-odd", question=HOSTILE, earlier=(Exchange(question=HOSTILE, answer="x"),)),
)


@pytest.fixture(scope="module", autouse=True)
def _runs(server: Server) -> None:
    traces = TraceStore(server.home / "traces.db")
    for trace in KEPT:
        traces.save(trace, [])


@pytest.fixture(scope="module")
def reader(browser: Browser, server: Server) -> Iterator[Visitor]:
    with Visitor(browser, server.url) as visitor:
        visitor.open(run="ask-one")
        yield visitor


def tip(visitor: Visitor) -> Locator:
    return visitor.page.locator("#sr-tip:popover-open")


def past(visitor: Visitor) -> Locator:
    """The rows of the history."""
    return visitor.page.locator("#sr-history .sr-past")


def focused(visitor: Visitor) -> Any:
    return visitor.page.evaluate("document.activeElement.textContent")


def test_the_exact_value_of_each_token_is_told_by_keyboard(reader: Visitor) -> None:
    """Values came on hover only, and there rounded."""
    reader.page.get_by_label("Drafter's probability").check()
    rationale = reader.board.get_by_role("listbox", name="Rationale of draft 2, token by token")
    tokens = rationale.get_by_role("option")
    tokens.first.focus()
    for index in (1, 2, 3):
        reader.page.keyboard.press("ArrowRight")
        expect(tokens.nth(index)).to_be_focused()
        expect(tip(reader)).to_have_text(re.compile(r"^p = 0\.\d{4}$"))
        value = tip(reader).inner_text().removeprefix("p = ")
        expect(tokens.nth(index)).to_have_accessible_name(re.compile(f"{re.escape(value)}$"))
    reader.page.keyboard.press("ArrowLeft")
    expect(tokens.nth(2)).to_be_focused()
    expect(rationale.locator("[tabindex='0']")).to_have_count(1)
    reader.page.keyboard.press("End")
    expect(tokens.last).to_be_focused()
    reader.page.keyboard.press("Tab")
    expect(rationale.locator(":focus")).to_have_count(0)
    reader.page.keyboard.press("Shift+Tab")
    expect(tokens.last).to_be_focused()
    reader.page.keyboard.press("Escape")
    expect(tip(reader)).to_have_count(0)


def test_the_answer_is_coloured_with_the_board_and_the_choice_outlives_a_reload(reader: Visitor) -> None:
    for role in ("Drafter's", "Verifier's"):
        reader.page.get_by_label(f"{role} probability").check()
        expect(reader.answer.locator(".sr-token").first).to_be_visible()
    reader.reload()
    expect(reader.board.locator(".sr-colour-verifier .sr-token").first).to_be_visible()
    expect(reader.page.get_by_label("Verifier's probability")).to_be_checked()
    reader.page.get_by_label("No colours").check()
    expect(reader.page.locator(".sr-token")).to_have_count(0)


def test_a_sentence_shows_its_evidence_and_opens_it(reader: Visitor) -> None:
    said = reader.cards.nth(1).locator(".sr-said")
    said.hover()
    expect(tip(reader)).to_have_text(
        "2: “From 1 March 2025 the stay at the north quay is shortened to three nights.”"
    )
    expect(reader.chips.nth(1)).to_have_class(re.compile("sr-pointed"))
    expect(reader.page.locator(".sr-chip.sr-pointed")).to_have_count(1)
    reader.page.mouse.move(2, 2)
    expect(tip(reader)).to_have_count(0)
    expect(reader.page.locator(".sr-pointed")).to_have_count(0)
    said.focus()
    expect(tip(reader)).to_have_count(1)
    reader.page.keyboard.press("Enter")
    expect(reader.panel).to_have_count(1)
    expect(reader.panel.locator("mark.sr-pointed").first).to_be_in_viewport()
    expect(reader.panel.locator(".sr-close")).to_be_focused()
    reader.page.keyboard.press("Escape")
    expect(reader.panel).to_have_count(0)
    expect(said).to_be_focused()


def test_the_keyboard_goes_into_a_panel_and_back_out_to_what_opened_it(reader: Visitor) -> None:
    """It stayed on the page behind, and was lost altogether when one panel had been opened from another."""
    keyboard = reader.page.keyboard
    source = reader.board.locator(".sr-source").first
    source.focus()
    keyboard.press("Enter")
    expect(reader.panel.locator(".sr-close")).to_be_focused()
    keyboard.press("Enter")
    expect(reader.panel).to_have_count(0)
    expect(source).to_be_focused()
    more = reader.page.locator("#sr-passages .sr-chip-more")
    more.focus()
    keyboard.press("Enter")
    inner = reader.panel.locator(".sr-chip").first
    inner.focus()
    keyboard.press("Enter")
    expect(reader.panel).to_have_count(2)
    keyboard.press("Escape")
    expect(inner).to_be_focused()
    keyboard.press("Escape")
    expect(more).to_be_focused()


def test_a_citation_shows_its_sentence_before_it_is_opened(reader: Visitor) -> None:
    reader.answer.locator(".sr-cite").first.focus()
    expect(tip(reader)).to_contain_text("shortened to three nights")
    expect(reader.chips.nth(1)).to_have_class(re.compile("sr-pointed"))
    reader.page.keyboard.press("Escape")


def test_the_runs_of_a_page_are_shown_again_at_once(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.open(run="ask-one")
    expect(past(visitor)).to_have_count(1)
    visitor.open(run="ask-two")
    expect(past(visitor)).to_have_count(2)
    expect(past(visitor).first).to_contain_text("disputed")
    past(visitor).nth(1).get_by_role("button").first.click()
    visitor.page.wait_for_url(re.compile("run=ask-one"))
    expect(visitor.question).to_have_value(SELECTED.question)
    expect(visitor.answer.locator(".sr-disputed")).to_have_count(0)
    expect(past(visitor).first).to_have_attribute("aria-current", "true")
    expect(past(visitor)).to_have_count(2)
    visitor.reload()
    expect(past(visitor)).to_have_count(2)
    other = arrive()
    other.open(run="ask-two")
    expect(past(other)).to_have_count(1)


def test_an_answer_is_rated_with_a_comment_that_is_there_after_a_reload(
    arrive: Arrive, server: Server
) -> None:
    visitor = arrive()
    visitor.open(run="ask-two")
    feedback = visitor.page.locator("#sr-feedback")
    feedback.get_by_role("button", name="Not helpful").click()
    expect(feedback.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "true")
    feedback.get_by_label("Comment").fill("The newer one <b>holds</b>")
    visitor.page.keyboard.press("Enter")
    expect(feedback.get_by_role("status")).to_have_text("Noted with your comment.")
    kept = TraceStore(server.home / "traces.db").summary("ask-two")
    assert (kept.feedback, kept.comment) == ("down", "The newer one <b>holds</b>")
    visitor.reload()
    expect(feedback.get_by_label("Comment")).to_have_value("The newer one <b>holds</b>")
    feedback.get_by_role("button", name="Not helpful").click()
    expect(feedback.locator("[aria-pressed=true]")).to_have_count(0)
    assert TraceStore(server.home / "traces.db").summary("ask-two").feedback is None


def test_a_comment_that_is_being_typed_is_not_lost_to_a_rating(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.open(run="ask-follow")
    feedback = visitor.page.locator("#sr-feedback")
    feedback.get_by_role("button", name="Helpful", exact=True).click()
    feedback.get_by_label("Comment").fill("half a comm")
    feedback.get_by_role("button", name="Not helpful").click()
    expect(feedback.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "true")
    expect(feedback.get_by_label("Comment")).to_have_value("half a comm")


def test_a_rewritten_question_is_told_and_can_be_edited(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.open(run="ask-follow")
    line = visitor.answer.locator(".sr-asked")
    expect(line).to_contain_text(f"Follow-up to “{SELECTED.question}”")
    expect(line).to_contain_text("Asked as: How long may a boat stay in winter?")
    line.get_by_role("button", name="Edit").click()
    expect(visitor.question).to_have_value("How long may a boat stay in winter?")
    expect(visitor.question).to_be_focused()


def test_a_follow_up_is_asked_with_what_came_before(arrive: Arrive, server: Server) -> None:
    visitor = arrive()
    visitor.open()
    follow_up = visitor.page.get_by_label("Follow-up to the answer below")
    expect(follow_up).to_be_hidden()
    visitor.open(run="ask-follow")
    follow_up.check()
    visitor.ask("And for dinghies?")
    expect(visitor.answer.locator(".sr-asked")).to_contain_text(f"Follow-up to “{FOLLOWING.rewritten}”")
    visitor.stop()
    earlier = server.trace(visitor.run_id).earlier
    assert [one.question for one in earlier] == [SELECTED.question, FOLLOWING.rewritten]
    assert earlier[-1].answer == "Three nights, since the 2025 notice."
    visitor.examples.first.click()
    expect(visitor.answer.locator(".sr-look-running")).to_be_visible()
    expect(visitor.answer.locator(".sr-asked")).to_have_count(0)
    visitor.stop()


def test_a_new_conversation_begins_on_an_empty_page(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.open(run="ask-one")
    expect(past(visitor)).to_have_count(1)
    visitor.page.get_by_label("Follow-up to the answer below").check()
    visitor.page.get_by_role("button", name="New conversation").click()
    expect(visitor.answer.locator(".sr-empty")).to_be_visible()
    expect(visitor.cards).to_have_count(0)
    expect(visitor.question).to_have_value("")
    expect(visitor.page.get_by_label("Follow-up to the answer below")).to_be_hidden()
    expect(visitor.page).not_to_have_url(re.compile("run="))
    expect(past(visitor)).to_have_count(1)


def test_what_is_typed_under_an_answer_survives_a_reload(arrive: Arrive) -> None:
    """After a lost connection Gradio loads the page anew, and the old question stood over the next one."""
    visitor = arrive()
    visitor.open(run="ask-one")
    expect(visitor.question).to_have_value(SELECTED.question)
    visitor.question.fill("half of the next quest")
    visitor.reload()
    expect(visitor.cards).to_have_count(4)
    expect(past(visitor)).to_have_count(1)
    expect(visitor.question).to_have_value("half of the next quest")
    visitor.open(run="ask-two")
    expect(visitor.question).to_have_value("How long, says who?")


@pytest.mark.parametrize("run", ["ask-odd", "ask-two"])
def test_it_fits_on_a_phone(arrive: Arrive, run: str) -> None:
    visitor = arrive(width=PHONE, theme="dark")
    visitor.open(run=run)
    expect(past(visitor)).to_have_count(1)
    visitor.page.locator("#sr-feedback").get_by_role("button", name="Helpful", exact=True).click()
    expect(visitor.page.locator("#sr-feedback .sr-comment")).to_be_visible()
    visitor.page.get_by_label("Drafter's probability").check()
    expect(visitor.page.locator(".sr-legend").first).to_be_visible()
    assert visitor.fits(), visitor.cut
