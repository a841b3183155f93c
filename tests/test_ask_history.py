"""What a tab remembers, what follows what, and the runs and ratings that stand around an answer."""

import json
from dataclasses import replace
from typing import Any

import pytest

from specrag.tracing.search import RunSummary
from specrag.types import Exchange
from specrag.ui.ask_history import feedback_card, history_card
from specrag.ui.conversation import MOST, exchanges_of
from specrag.ui.memory import MOST_RUNS, Memory, memory_of
from tests.ui_html import find, inside
from tests.ui_runs import STANDARD
from tests.ui_traces import CANCELLED, DRAFTING, FAILED, HOSTILE, SELECTED

RUN = RunSummary(
    run_id="run-1",
    created_at="2026-01-01T00:00:00+00:00",
    pipeline="speculative",
    question="How long may a boat stay?",
    status="done",
    decision="selected",
    elapsed_ms=4600.0,
    answer="Three nights",
)


def test_a_follow_up_comes_after_the_run_and_what_that_run_came_after() -> None:
    earlier = tuple(Exchange(question=f"Question {n}?", answer=f"Answer {n}.") for n in range(3))
    told = exchanges_of(replace(SELECTED, earlier=earlier, rewritten="How long may a boat stay here?"))
    assert len(told) == MOST
    assert told[:2] == earlier[1:]
    assert told[-1] == Exchange(
        question="How long may a boat stay here?", answer="Three nights, since the 2025 notice."
    )


@pytest.mark.parametrize("trace", [DRAFTING, CANCELLED, FAILED])
def test_a_run_without_an_answer_adds_nothing_to_a_conversation(trace: Any) -> None:
    earlier = (Exchange(question="Where?", answer="Here."),)
    assert exchanges_of(replace(trace, earlier=earlier)) == earlier
    assert exchanges_of(trace) == ()


def test_the_answer_of_a_baseline_can_be_followed() -> None:
    assert STANDARD.answer is not None
    assert [one.answer for one in exchanges_of(STANDARD)] == [STANDARD.answer.text]


def test_what_a_tab_remembers_comes_back() -> None:
    told = json.dumps({"runs": ["b", "a", "b"], "colour": "verifier"})
    assert memory_of(told) == Memory(runs=("b", "a"), colour="verifier")
    assert len(memory_of(json.dumps({"runs": [f"r{n}" for n in range(50)]})).runs) == MOST_RUNS


@pytest.mark.parametrize(
    "text",
    [None, 7, "", "{", "[]", "7", "[" * 1500, "x" * 10_000, '{"runs": 7, "colour": ["drafter"]}',
     '{"runs": [7, null, "../x", "a b", "", {"a": 1}], "colour": "<b>"}'],
)  # fmt: skip
def test_whatever_a_client_sends_as_its_memory_is_empty_or_plain(text: object) -> None:
    assert memory_of(text) == Memory()


def test_the_history_says_what_has_come_of_each_run() -> None:
    runs = [
        RUN,
        replace(RUN, run_id="run-2", disputed=True),
        replace(RUN, run_id="run-3", status="failed", decision=None, answer=""),
        replace(RUN, run_id="run-4", decision="abstained"),
    ]
    html = history_card(runs, shown="run-2", own=frozenset({"run-1", "run-3"}))
    rows = find(html, "sr-past")
    outcomes = [inside(html, row, "sr-past-outcome")[0].text for row in rows]
    assert outcomes == ["selected", "disputed", "failed", "no answer"]
    assert [one.attributes.get("aria-current") for one in rows] == [None, "true", None, None]
    assert [one.attributes["data-sr-show"] for one in find(html, "sr-past-question")] == [
        run.run_id for run in runs
    ]
    opens = [one for one in find(html, "button") if one.attributes.get("data-sr-action") == "run-open"]
    assert [one.attributes["data-sr-id"] for one in opens] == [run.run_id for run in runs]
    rated = {one.attributes["data-sr-id"] for one in find(html, "sr-thumb")}
    assert rated == {"run-1"}, "only what is one's own, and only an answer"
    assert history_card([], shown="") == ""


def test_a_pressed_thumb_takes_the_rating_back_and_the_comment_is_there_again() -> None:
    html = feedback_card(replace(RUN, feedback="down", comment='It says "two".'))
    up, down = find(html, "sr-thumb")
    assert (up.attributes["aria-pressed"], up.attributes["data-sr-value"]) == ("false", "up")
    assert (down.attributes["aria-pressed"], down.attributes["data-sr-value"]) == ("true", "none")
    assert find(html, "input")[0].attributes["value"] == 'It says "two".'
    assert "hidden" not in find(html, "sr-comment")[0].attributes
    assert "hidden" in find(feedback_card(RUN), "sr-comment")[0].attributes


def test_hostile_questions_answers_and_comments_are_text() -> None:
    run = replace(RUN, question=HOSTILE, answer=HOSTILE, comment=HOSTILE, feedback="up")
    html = history_card([run], shown="") + feedback_card(run, said=HOSTILE)
    assert "<script" not in html
    assert "<img" not in html
    assert "${" not in html
    assert find(html, "sr-past-question")[0].text.startswith("<script>alert(1)</script>")
