"""More visitors than the models take at once: who waits is told so, and begins without another click."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server, serving
from tests.e2e.visitor import DONE, PATIENCE_MS, Visitor

pytestmark = pytest.mark.browser
QUESTIONS = ("How much energy does the Larkspur 3 battery hold?", "Who founded Larkspur Works?")


@pytest.fixture(scope="module")
def narrow(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, embedder_path: Path, model_path: Path
) -> Iterator[Server]:
    """A server whose models take one run at a time."""
    home = tmp_path_factory.mktemp("narrow")
    with serving(home, embedder=embedder_path, model=model_path, SPECRAG_CONCURRENT_RUNS="1") as started:
        yield started


def test_the_second_visitor_waits_is_told_so_and_begins_when_the_first_stops(
    browser: Browser, narrow: Server
) -> None:
    with Visitor(browser, narrow.url) as first, Visitor(browser, narrow.url) as second:
        first.open()
        second.open()
        first.ask(QUESTIONS[0])
        first.wait_for_writing()
        second.record()
        second.ask(QUESTIONS[1])
        expect(second.status).to_have_text("1 run is ahead of this one")
        expect(second.reader).to_contain_text("1 run is ahead of this one. It begins by itself")
        expect(second.stop_button).to_be_enabled()
        expect(second.cards).to_have_count(0)
        assert second.lanes == ["queue"]
        first.stop()
        expect(second.status).to_have_text(re.compile("^Drafting"), timeout=PATIENCE_MS)
        expect(second.chips.first).to_contain_text("History")
        second.wait_for_end(DONE)
        assert second.lanes[0] == "queue"
        assert narrow.trace(first.run_id).status == "cancelled"


def test_a_run_that_waits_can_be_stopped(browser: Browser, narrow: Server) -> None:
    with Visitor(browser, narrow.url) as first, Visitor(browser, narrow.url) as second:
        first.open()
        second.open()
        first.ask(QUESTIONS[0])
        first.wait_for_writing()
        second.ask(QUESTIONS[1])
        expect(second.reader).to_contain_text("ahead of this one")
        second.stop()
        expect(second.answer).to_contain_text("The run was stopped before there was an answer.")
        expect(second.reader).to_have_count(0)
        first.stop()
        assert narrow.active()["runs"] == 0


def test_visitors_at_the_same_time_are_told_that_they_share_the_models(arrive: Arrive) -> None:
    first, second = arrive(), arrive()
    for person in (first, second):
        person.open()
        person.set_drafts(12)  # so that the first still goes on when the second has begun
    for person, question in zip((first, second), QUESTIONS, strict=True):
        person.ask(question)
    shared = re.compile("; shares the models with 1 other run$")
    expect(first.status).to_have_text(shared)
    expect(second.status).to_have_text(shared)
    second.stop()
    expect(first.status).not_to_have_text(shared)
    first.stop()
