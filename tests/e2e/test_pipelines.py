"""Every pipeline from the page: chosen, watched, answered, and found again by its link."""

import re
from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import DONE, PHONE, Visitor

pytestmark = pytest.mark.browser
FOUNDER = "Who founded Larkspur Works?"


def _told(visitor: Visitor) -> list[str]:
    return list(dict.fromkeys(sample["status"] for sample in visitor.recorded))


def _same_by_its_link(arrive: Arrive, visitor: Visitor) -> None:
    guest = arrive()
    guest.open(run=visitor.run_id)
    expect(guest.status).to_have_text(visitor.status.inner_text())
    for part in ("#sr-answer", "#sr-board", "#sr-passages", "#sr-timeline"):
        expect(guest.page.locator(part)).to_have_text(
            visitor.page.locator(part).inner_text(), use_inner_text=True
        )


@pytest.mark.parametrize(("label", "writer"), [("Standard RAG", "verifier"), ("Drafter only", "drafter")])
def test_a_baseline_is_written_by_one_model(
    visitor: Visitor,
    arrive: Arrive,
    server: Server,
    label: str,
    writer: Literal["drafter", "verifier"],
) -> None:
    visitor.choose_how("pipeline", label)
    expect(visitor.how_button).to_contain_text(f"How: {label}")
    expect(visitor.page.locator("#sr-drafts")).to_be_hidden()
    visitor.record()
    visitor.ask(FOUNDER)
    expect(visitor.reader).to_contain_text(f"the {writer}, ")
    visitor.wait_for_end(DONE)
    # "reads 8 passages" and "is writing the answer"; a short answer may be there within a tick
    assert any(status.startswith(f"The {writer} ") for status in _told(visitor))
    expect(visitor.cards).to_have_count(0)
    assert visitor.chips.count() > 3
    assert server.trace(visitor.run_id).pipeline == {"verifier": "standard"}.get(writer, writer)
    assert {"retrieve", "answer"} <= set(visitor.lanes)
    _same_by_its_link(arrive, visitor)
    visitor.page.get_by_label(f"{writer.capitalize()}'s probability").check()
    answer = visitor.answer.locator(".sr-answer-text bdi")
    expect(answer.locator(".sr-token").first).to_have_attribute("title", re.compile(r"^p = "))
    joined = "".join(answer.locator(".sr-token").all_text_contents())
    assert joined == answer.inner_text()


def test_multi_hop_shows_its_hops(visitor: Visitor, arrive: Arrive, server: Server) -> None:
    visitor.choose_how("pipeline", "Multi-hop RAG")
    visitor.record()
    visitor.ask(FOUNDER)
    expect(visitor.hops.first.locator(".sr-hop-query")).to_contain_text(FOUNDER)
    visitor.wait_for_end(DONE)
    trace = server.trace(visitor.run_id)
    expect(visitor.hops).to_have_count(len(trace.hops))
    assert trace.hops
    for number, hop in enumerate(trace.hops):
        expect(visitor.hops.nth(number).locator(".sr-chip")).to_have_count(len(hop.passage_ids))
    assert any(status.startswith("Hop 1") for status in _told(visitor))
    assert {"hop 1", "answer"} <= set(visitor.lanes)
    visitor.hops.first.locator(".sr-chip").first.click()
    expect(visitor.panel.locator(".sr-meta")).to_contain_text("hop 1")
    visitor.page.keyboard.press("Escape")
    _same_by_its_link(arrive, visitor)


def test_a_synthesised_answer_is_written_before_the_eyes(visitor: Visitor, server: Server) -> None:
    visitor.choose_how("decision", "Synthesise")
    visitor.set_drafts(2)
    expect(visitor.how_button).to_contain_text("2 drafts")
    visitor.record()
    visitor.ask(FOUNDER)
    visitor.wait_for_end(DONE)
    expect(visitor.cards).to_have_count(2)
    decision = server.trace(visitor.run_id).decision
    assert decision
    winners, authors = visitor.board.locator(".sr-winner"), visitor.board.locator(".sr-ribbon-author")
    if decision.kind == "synthesised":
        assert any("writes one answer" in status or "is writing" in status for status in _told(visitor))
        expect(winners).to_have_count(0)
        assert authors.count() >= 1
        assert "synthesise" in visitor.lanes
    else:  # a small verifier may write nothing of use, and the draft stands
        expect(authors).to_have_count(0)
        expect(winners).to_have_count(1 if decision.kind == "selected" else 0)


def test_options_of_one_run_are_those_in_its_trace(visitor: Visitor, server: Server) -> None:
    visitor.choose_how("partition", "Disjoint")
    visitor.choose_how("preset", "Paper")
    visitor.set_drafts(3)
    visitor.page.get_by_label("Evidence focus").check()
    visitor.page.get_by_label("Groundedness").check()
    visitor.ask(FOUNDER)
    visitor.wait_for_end(DONE)
    config = server.trace(visitor.run_id).config
    assert (config["partition"], config["preset"], config["drafts"]) == ("disjoint", "paper", 3)
    assert config["focus_sentences"] == 3
    assert config["weights"]["relevance"] == 0
    expect(visitor.cards).to_have_count(3)
    expect(visitor.board.locator(".sr-score-grounded")).to_have_count(3)


def test_options_by_keyboard(visitor: Visitor, server: Server) -> None:
    page = visitor.page
    visitor.examples.last.focus()
    page.keyboard.press("Tab")
    expect(visitor.how_button).to_be_focused()
    expect(visitor.how_button).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(page.locator("#sr-pipeline")).to_be_visible()
    expect(visitor.how_button).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Tab")
    expect(page.locator("#sr-pipeline input")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(visitor.how_button).to_contain_text("How: Standard RAG")
    visitor.question.focus()
    page.keyboard.type(FOUNDER)
    page.keyboard.press("Enter")
    expect(visitor.reader).to_contain_text("Standard RAG")
    visitor.wait_for_end(DONE)
    assert server.trace(visitor.run_id).pipeline == "standard"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_options_and_hops_fit_on_a_phone(arrive: Arrive, theme: Literal["light", "dark"]) -> None:
    visitor = arrive(width=PHONE, theme=theme)
    visitor.open()
    visitor.open_how()
    assert visitor.fits()
    for part in ("decision", "partition", "preset", "drafts", "focus", "grounded"):
        box = visitor.page.locator(f"#sr-{part}").bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE
    visitor.choose_how("pipeline", "Multi-hop RAG")
    visitor.ask(FOUNDER)
    expect(visitor.hops.first).to_be_visible()
    assert visitor.fits()
    visitor.wait_for_end(DONE)
    assert visitor.fits()
