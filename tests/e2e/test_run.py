"""A question from its click to its answer, and what can be done with the finished run."""

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import DONE, Sample, Visitor, sources_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def finished(browser: Browser, server: Server) -> Iterator[Visitor]:
    """A visitor who clicked the first example and watched the run to its end."""
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        visitor.record()
        visitor.examples.first.click()
        visitor.wait_for_end(DONE)
        yield visitor


def running(samples: list[Sample]) -> list[Sample]:
    return [sample for sample in samples if not DONE.match(sample["status"])]


def test_drafts_appear_while_they_are_written(finished: Visitor) -> None:
    """Not in one piece at the end: every card grows at least twice before the run is over."""
    during = running(finished.recorded)
    for number in range(4):
        texts = [sample["written"][number] for sample in during if len(sample["written"]) == 4]
        growth = [after for before, after in pairwise(texts) if after != before and after.startswith(before)]
        assert len(growth) >= 2, (number, texts)
        rates = [sample["rates"][number] for sample in during if len(sample["rates"]) == 4]
        counts = {int(found[1]) for rate in rates if (found := re.match(r"(\d+) tok", rate))}
        assert len(counts) >= 2, (number, rates)


def test_the_status_line_tells_each_step_once(finished: Visitor) -> None:
    told = list(dict.fromkeys(sample["status"] for sample in finished.recorded))
    steps = [next((i for i, text in enumerate(told) if text.startswith(step)), -1) for step in _STEPS]
    assert -1 not in steps, told
    assert steps == sorted(steps)


_STEPS = ("Drafting: 0 of 4", "Verifying", "Done in")


def test_the_board_says_who_won_and_why(finished: Visitor) -> None:
    expect(finished.cards).to_have_count(4)
    answer = finished.answer.locator(".sr-answer")
    ribbons = finished.board.locator(".sr-ribbon")
    won = "sr-look-selected" in (answer.get_attribute("class") or "")
    if won:
        expect(ribbons).to_have_text(["winner"])
        expect(finished.board.locator(".sr-winner .sr-ribbon")).to_have_count(1)
    else:
        expect(answer).to_have_class(re.compile("sr-look-(abstained|fallback)"))
        expect(ribbons).to_have_count(0)
    expect(answer.locator(".sr-reason")).to_have_text(re.compile(r"\w+.*\.$"))


def test_every_draft_has_its_scores_as_bars_and_numbers(finished: Visitor) -> None:
    for card in finished.cards.all():
        labels = card.locator(".sr-score dt").all_text_contents()
        assert {"draft", "self-containment", "self-reflection", "relevance", "combined"} <= set(labels)
        for score in card.locator(".sr-score").all():
            value = score.locator(".sr-value").inner_text()
            assert 0 < float(value.replace("<", "")) <= 1, value
            bar, track = score.locator(".sr-bar i").bounding_box(), score.locator(".sr-bar").bounding_box()
            assert bar
            assert track
            if not value.startswith("<"):
                assert bar["width"] / track["width"] == pytest.approx(float(value), abs=0.03)


def test_the_timeline_has_a_lane_for_each_step(finished: Visitor) -> None:
    expected = {"retrieve", "partition", "draft 1", "draft 2", "draft 3", "draft 4", "verify", "decide"}
    assert expected <= set(finished.lanes)
    lanes = [sample["lanes"] for sample in running(finished.recorded)]
    assert ["retrieve"] in [seen[:1] for seen in lanes], "no lane while the run was on"
    assert len({len(seen) for seen in lanes}) >= 3, "the lanes did not grow"


def test_the_waterfall_has_a_bar_for_each_span(finished: Visitor, server: Server) -> None:
    bars = finished.page.locator("#sr-plot .bars .point path")
    expect(bars).to_have_count(len(server.trace(finished.run_id).spans))
    for bar in bars.all():
        box = bar.bounding_box()
        assert box
        assert box["width"] >= 1
        assert box["height"] >= 4


def test_the_address_names_the_run(finished: Visitor) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", finished.run_id)


def test_tokens_are_coloured_on_demand(finished: Visitor) -> None:
    expect(finished.board.locator(".sr-token")).to_have_count(0)
    for role in ("Drafter's", "Verifier's"):
        finished.page.get_by_label(f"{role} probability").check()
        tokens = finished.board.locator(f".sr-colour-{role[:-2].lower()} .sr-token")
        expect(tokens.first).to_have_attribute("title", re.compile(r"^p = (>?0\.\d{4}|1|\d\.\de-\d+)$"))
        assert tokens.count() > 20
    finished.page.get_by_label("No colours").check()
    expect(finished.board.locator(".sr-token")).to_have_count(0)


def test_a_chip_opens_its_passage_and_escape_closes_it(finished: Visitor) -> None:
    """What a citation opens is in test_citations.py."""
    opener = finished.chips.first
    opener.click()
    expect(finished.panel).to_have_count(1)
    expect(finished.panel.locator(".sr-passage")).to_have_text(re.compile(r"Larkspur[\s\S]{60,}"))
    number = re.sub(r"\D.*", "", opener.inner_text().strip("[ ]\n"))
    expect(finished.panel.locator(".sr-panel-head h3 b")).to_have_text(number)
    finished.page.keyboard.press("Escape")
    expect(finished.panel).to_have_count(0)


def test_the_passages_are_those_of_the_question(finished: Visitor) -> None:
    sources = sources_of(finished, finished.chips.all())
    assert sources[0] == "02-battery-and-charging.md"
    assert all(source.endswith(".md") for source in sources)


def test_a_shared_link_shows_the_same_run_and_runs_nothing(
    finished: Visitor, arrive: Arrive, server: Server
) -> None:
    guest = arrive()
    guest.open(run=finished.run_id)
    expect(guest.status).to_have_text(finished.status.inner_text())
    assert server.active() == {"runs": 0, "model_jobs": 0, "server_prompts": 0}
    for part in ("#sr-answer", "#sr-board", "#sr-timeline", "#sr-passages"):
        expect(guest.page.locator(part)).to_have_text(
            finished.page.locator(part).inner_text(), use_inner_text=True
        )
    expect(guest.page.locator("#sr-plot .bars .point path").first).to_be_visible()
    expect(guest.question).to_have_value(finished.question.input_value())
    expect(guest.ask_button).to_be_enabled()
    assert guest.run_id == finished.run_id


def test_an_unknown_run_is_one_sentence(arrive: Arrive) -> None:
    guest = arrive()
    guest.open(run="nothing<b>")
    expect(guest.answer.get_by_role("alert")).to_have_text(
        re.compile(r"There is no run .nothing<b>. here; .+\.")
    )
    expect(guest.cards).to_have_count(0)
    expect(guest.ask_button).to_be_enabled()
