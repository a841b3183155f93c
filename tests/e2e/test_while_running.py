"""What a visitor does while a run is on: read, stop, reload, use the keyboard, be two people."""

import re
import time

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Arrive
from tests.e2e.scripted_page import ScriptedPage
from tests.e2e.serving import Server
from tests.e2e.visitor import DONE, Visitor

pytestmark = pytest.mark.browser
FREE_WITHIN_S = 1.0
DECODING_WITHIN_MS = 30_000
ENERGY = "How much energy does the Larkspur 3 battery hold?"
FOUNDER = "Who founded Larkspur Works?"
IDLE = {"runs": 0, "model_jobs": 0, "server_prompts": 0}


def _wait_until_free(server: Server, since: float) -> None:
    """The models are free within a second: a job looks for its end once a layer, not at once."""
    while server.active() != IDLE and time.monotonic() < since + FREE_WITHIN_S:
        pass
    assert server.active() == IDLE


def test_a_passage_can_be_read_while_drafts_are_written(visitor: Visitor) -> None:
    """The panel is re-sent with new evidence whenever a draft ends, and must not close under the reader."""
    visitor.record()
    visitor.ask(FOUNDER)
    visitor.wait_for_writing()
    visitor.chips.first.click()
    expect(visitor.panel.locator(".sr-passage")).to_contain_text("Ada Brennick")
    visitor.wait_for_end(DONE)
    expect(visitor.panel).to_have_count(1)
    samples = visitor.recorded
    opened = next(index for index, sample in enumerate(samples) if sample["panel"])
    assert samples[opened]["status"].startswith("Drafting")
    assert all(sample["panel"] for sample in samples[opened:])
    visitor.page.keyboard.press("Escape")
    expect(visitor.panel).to_have_count(0)


def test_stop_frees_the_server_at_once_and_keeps_what_was_written(visitor: Visitor, server: Server) -> None:
    visitor.record()
    visitor.ask(ENERGY)
    visitor.wait_for_writing()
    assert server.active()["runs"] == 1
    visitor.stop_button.click()
    clicked = time.monotonic()
    _wait_until_free(server, clicked)
    visitor.wait_for_end(re.compile("^Stopped"))
    expect(visitor.stop_button).to_be_disabled()
    expect(visitor.answer).to_contain_text("The run was stopped before there was an answer.")
    expect(visitor.board.locator(".sr-winner")).to_have_count(0)
    expect(visitor.cards.locator(".sr-note")).to_have_text(["stopped"] * 4)
    before, after = visitor.recorded[-2]["written"], visitor.recorded[-1]["written"]
    assert any(after)
    assert all(late.startswith(early) for early, late in zip(before, after, strict=True))
    visitor.examples.first.click()
    visitor.wait_for_writing(timeout_ms=DECODING_WITHIN_MS)
    visitor.stop()


def test_a_reload_in_the_middle_follows_the_run_to_its_end(browser: Browser, slow: ScriptedPage) -> None:
    """A run of the real model may have ended before the page is back."""
    with Visitor(browser, slow.url) as visitor:
        visitor.open()
        visitor.ask(FOUNDER)
        expect(visitor.status).to_have_text(re.compile("^Drafting"))
        run_id = visitor.run_id
        assert run_id
        visitor.reload()
        expect(visitor.status).to_have_text(re.compile("^Drafting"))
        assert slow.active()["runs"] == 1
        expect(visitor.stop_button).to_be_enabled()
        expect(visitor.ask_button).to_be_disabled()
        assert visitor.run_id == run_id
        assert slow.active()["runs"] == 1, "still the same run"
        visitor.wait_for_end(DONE)
        expect(visitor.cards).to_have_count(4)
        assert visitor.run_id == run_id


def test_stop_reaches_a_run_that_was_found_again_after_a_reload(browser: Browser, slow: ScriptedPage) -> None:
    with Visitor(browser, slow.url) as visitor:
        visitor.open()
        visitor.ask(FOUNDER)
        expect(visitor.status).to_have_text(re.compile("^Drafting"))
        visitor.reload()
        expect(visitor.stop_button).to_be_enabled()
        visitor.stop()
        _wait_until_free(slow, time.monotonic())


def test_the_keyboard_is_enough(visitor: Visitor) -> None:
    """Enter asks, Tab reaches Stop while a run is on, and everything else when it is over."""
    page = visitor.page
    status = page.locator("#sr-status")
    expect(status).to_have_attribute("role", "status")
    expect(status).to_have_attribute("aria-live", "polite")
    page.add_style_tag(content="*, ::before, ::after {transition: none !important}")
    visitor.question.focus()
    page.keyboard.type("Which brakes does it have?")
    page.keyboard.press("Enter")
    expect(visitor.status).to_have_text(re.compile("^Drafting"))
    expect(visitor.stop_button).to_be_enabled()
    page.keyboard.press("Tab")
    expect(visitor.stop_button).to_be_focused()
    page.keyboard.press("Enter")
    visitor.wait_for_end(re.compile("^Stopped"))
    visitor.question.focus()
    reached: list[str] = []
    assert _focus_is_visible(visitor)
    for _ in range(4 + visitor.examples.count() + visitor.chips.count()):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(_FOCUSED))
        assert _focus_is_visible(visitor), " ".join(reached)
    assert reached[0] == "sr-ask"
    assert reached.count("sr-example") == visitor.examples.count()
    assert reached.count("label-wrap") == 1, "the panel of options"
    assert reached.count("sr-chip") == visitor.chips.count()


_FOCUSED = """() => {
  const e = document.activeElement;
  return e.id || ["sr-example", "label-wrap", "sr-chip"].find(name => e.classList.contains(name)) || e.tagName;
}"""


def _focus_is_visible(visitor: Visitor) -> bool:
    """Whether the focused element, or a frame close around it, looks different without the focus."""
    return bool(
        visitor.page.evaluate("""() => {
          const focused = document.activeElement;
          const look = () => {
            const seen = [];
            for (let e = focused, depth = 0; e && depth < 8; depth++, e = e.parentElement) {
              const s = getComputedStyle(e);
              seen.push(s.outlineStyle, s.outlineWidth, s.boxShadow, s.borderColor, s.backgroundColor);
            }
            return seen.join();
          };
          const before = look();
          focused.blur();
          return look() !== before;
        }""")
    )


def test_the_focus_on_the_chosen_colour_can_be_seen(visitor: Visitor) -> None:
    visitor.ask(FOUNDER)
    visitor.wait_for_writing()
    visitor.stop()
    visitor.page.add_style_tag(content="*, ::before, ::after {transition: none !important}")
    visitor.page.get_by_label("Drafter's probability").focus()
    visitor.page.keyboard.press("Shift+Tab")
    expect(visitor.page.get_by_label("No colours")).to_be_focused()
    assert _focus_is_visible(visitor)


def test_a_page_has_one_run_at_a_time(arrive: Arrive, server: Server) -> None:
    """Two runs on one page wrote over each other, and only the newer could be stopped."""
    visitor = arrive()
    visitor.open()
    visitor.examples.first.click()
    expect(visitor.status).to_have_text(re.compile("^Drafting"))
    first = visitor.next_run()
    visitor.question.press("Enter")
    visitor.wait_for_writing()
    visitor.stop()
    try:
        _wait_until_free(server, time.monotonic())
    finally:
        follower = arrive()
        follower.open(run=first)
        if follower.stop_button.is_enabled():
            follower.stop()


def test_two_visitors_do_not_mix(arrive: Arrive) -> None:
    first, second = arrive(), arrive()
    asked = {first: ENERGY, second: FOUNDER}
    for person in asked:
        person.open()
    for person, question in asked.items():
        person.ask(question)
    for person in asked:
        person.wait_for_end(DONE)
    assert first.run_id != second.run_id
    expect(first.chips.first).to_contain_text("battery")
    expect(second.chips.first).to_contain_text("History")
    for person, question in asked.items():
        other = FOUNDER if question == ENERGY else ENERGY
        for prompt in person.board.locator("details pre").all_text_contents():
            assert question in prompt
            assert other not in prompt
        expect(person.question).to_have_value(question)


def test_enter_again_replaces_the_question_that_is_being_answered(arrive: Arrive, server: Server) -> None:
    """The same key twice is one listener of gradio, which by default drops the second press."""
    visitor = arrive()
    visitor.open()
    visitor.question.fill(ENERGY)
    visitor.question.press("Enter")
    expect(visitor.status).to_have_text(re.compile("^Drafting"))
    first = visitor.next_run()
    visitor.question.fill(FOUNDER)
    visitor.question.press("Enter")
    expect(visitor.chips.first).to_contain_text("History")
    assert visitor.next_run(first) != first
    assert server.trace(first).status == "cancelled"
    assert server.active()["runs"] == 1
    visitor.stop()
