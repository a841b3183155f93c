"""The list of runs: what a row says, which runs a search wants, and that no question can write into the page."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from specrag.tracing.search import RunFilter, RunSummary
from specrag.types import Parent, RunStatus
from specrag.ui import trace_cards
from specrag.ui.listing import Leaf
from specrag.ui.tabs.traces_desk import Turns, ticked_of
from specrag.ui.trace_cards import Opened, run_head
from specrag.ui.trace_filter import filter_form, filter_of, mark_of
from specrag.ui.trace_list import Live, Neighbours, ago, leaf_of, neighbours, runs_list
from tests.ui_html import find, read
from tests.ui_runs import RUNS
from tests.ui_traces import HOSTILE, LONG_WORD, SELECTED, STATES

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
RUN = RunSummary(
    run_id="run-1",
    created_at="2026-03-10T11:30:00.000+00:00",
    pipeline="speculative",
    question="How long may a boat stay?",
    status="done",
    decision="selected",
    elapsed_ms=4600.0,
    answer="Three nights.",
)
EVERY = {**STATES, **RUNS}


def _list(*runs: RunSummary, total: int = 100, wanted: RunFilter | None = None, found: int = 0) -> str:
    page: Leaf[RunSummary] = leaf_of(runs, found or len(runs), 1)
    return runs_list(page, total=total, wanted=wanted or RunFilter(), now=NOW)


def _is_harmless(html: str) -> None:
    assert not [one for one in read(html) if one.tag in ("script", "img", "style")]
    assert not [one for one in read(html) if any(name.startswith("on") for name in one.attributes)]
    assert "${" not in html
    assert "{{" not in html


# Rows


def test_a_row_says_what_was_asked_and_what_came_of_it() -> None:
    row = find(_list(RUN), "sr-run")[0].text
    for said in (
        "How long may a boat stay?",
        "Three nights.",
        "Selected",
        "Speculative RAG",
        "4.6 s",
        "no feedback",
        "30 min ago",
    ):
        assert said in row


@pytest.mark.parametrize(
    ("status", "decision", "disputed", "word"),
    [
        ("done", "selected", False, "Selected"),
        ("done", "selected", True, "Disputed"),
        ("done", "synthesised", False, "Synthesised"),
        ("done", "fallback", False, "Fallback"),
        ("done", "abstained", False, "Abstained"),
        ("done", "direct", False, "Direct"),
        ("failed", None, False, "Failed"),
        ("cancelled", "selected", True, "Stopped"),
    ],
)
def test_what_has_come_of_a_run_is_told_by_a_word(
    status: RunStatus, decision: str | None, disputed: bool, word: str
) -> None:
    """A stopped run that had decided before was listed as if it had an answer."""
    run = replace(RUN, status=status, decision=decision, disputed=disputed)
    assert find(_list(run), "sr-run-outcome")[0].text.endswith(word)


def test_marks_feedback_and_comment_are_shown() -> None:
    run = replace(RUN, parent="run-0", shared=True, imported=True, feedback="down", comment="Too short.")
    row = find(_list(run), "sr-run")[0].text
    for said in ("forked", "shared by link", "imported", "Not helpful", "“Too short.”"):
        assert said in row


def test_the_line_above_counts() -> None:
    assert find(_list(RUN, total=1), "h3")[0].text == "1 run, 1 shown"
    searched = _list(RUN, total=312, wanted=RunFilter(text="boat"), found=1)
    assert find(searched, "h3")[0].text == "312 runs, 1 matches, 1 shown"


def test_nothing_yet_and_nothing_found_are_told_apart_with_a_way_out() -> None:
    nothing = _list(total=0)
    assert "No runs yet" in find(nothing, "sr-empty")[0].text
    assert "data-sr-unfilter" not in nothing
    unfound = _list(total=7, wanted=RunFilter(text="boat"))
    assert "No run matches" in find(unfound, "sr-empty")[0].text
    assert "7 runs" in find(unfound, "sr-empty")[0].text
    assert "data-sr-unfilter" in unfound


def test_deleting_asks_and_says_how_many() -> None:
    page = leaf_of([RUN], 1234, 1)
    html = runs_list(page, total=1234, wanted=RunFilter(), now=NOW)
    clear = next(one for one in find(html, "button") if one.attributes.get("data-sr-action") == "runs-clear")
    assert "all 1,234 runs" in clear.attributes["data-sr-confirm"]
    one = next(one for one in find(html, "button") if one.attributes.get("data-sr-action") == "run-delete")
    assert RUN.question in one.attributes["data-sr-confirm"]


def test_a_run_that_goes_on_stands_above_the_list() -> None:
    live = Live(run_id="run-9", question="And now?", state="Drafting: 1 of 4 drafts done")
    html = runs_list(leaf_of([], 0, 1), total=0, wanted=RunFilter(), live=[live], now=NOW)
    assert "Drafting: 1 of 4 drafts done" in find(html, "sr-run-live")[0].text
    assert "No runs yet" not in html


def test_no_question_of_a_run_becomes_markup() -> None:
    run = replace(
        RUN,
        run_id='r"><script>7',
        question=HOSTILE,
        answer=LONG_WORD,
        comment=HOSTILE,
        created_at=HOSTILE,
        decision=HOSTILE,
    )
    _is_harmless(_list(run))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("2026-03-10T11:59:40+00:00", "just now"),
        ("2026-03-10T12:00:20+00:00", "just now"),
        ("2026-03-10T10:00:00Z", "2 h ago"),
        ("2026-03-09T09:00:00+00:00", "1 day ago"),
        ("2026-03-10T11:30:00", "30 min ago"),
        ("2025-03-10T11:30:00+00:00", "2025-03-10"),
        ("2027-03-10T11:30:00+00:00", "2027-03-10"),
        ("2026-01-01", "2026-01-01"),
        ("yesterday", "yesterday"),
    ],
)
def test_times_are_told_as_people_say_them(written: str, said: str) -> None:
    assert ago(written, NOW) == said


def test_neighbours_are_those_beside_it_in_the_list() -> None:
    assert neighbours(["c", "b", "a"], "b") == Neighbours(newer="c", older="a")
    assert neighbours(["c", "b", "a"], "c") == Neighbours(older="b")
    assert neighbours(["c", "b", "a"], "gone") == Neighbours()


# The search


def test_the_form_becomes_a_filter() -> None:
    told = {
        "text": "  boat ",
        "pipeline": "multihop",
        "decision": "disputed",
        "latency": "5-to-30",
        "rating": "none",
        "since": "2026-01-31T23:00:00.000Z",
        "until": "",
    }
    assert filter_of(json.dumps(told)) == RunFilter(
        text="boat",
        pipelines=("multihop",),
        decisions=("disputed",),
        rating="none",
        since="2026-01-31T23:00:00.000Z",
        min_ms=5000.0,
        max_ms=30_000.0,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        7,
        "[]",
        "[" * 5000,
        "x" * 20_000,
        json.dumps({"pipeline": "'; DROP TABLE runs", "decision": ["x"], "rating": 1, "since": "never"}),
        json.dumps({"text": ["x"], "latency": {"a": 1}, "until": "9" * 500}),
    ],
)
def test_whatever_the_hidden_box_holds_an_unknown_filter_wants_everything(text: object) -> None:
    assert filter_of(text) == RunFilter()


def test_another_search_has_another_mark() -> None:
    """What is deleted must be what was looked at when it was asked for."""
    assert mark_of(RunFilter(text="a")) != mark_of(RunFilter(text="b"))
    assert mark_of(RunFilter(text="a")) == mark_of(RunFilter(text="a"))


def test_every_field_of_the_form_has_a_name() -> None:
    fields = [one for one in read(filter_form()) if one.tag in ("input", "select")]
    assert len(fields) == 7
    for one in fields:
        assert any(parent.tag == "label" for parent in one.parents)


def test_ticks_are_taken_from_whatever_a_client_sends() -> None:
    assert ticked_of('["a", "b", "a", 7, "", null]') == ("a", "b")
    assert ticked_of("") == ()
    assert ticked_of("{}") == ()
    assert ticked_of("[" * 9999) == ()
    assert len(ticked_of(json.dumps([str(number) for number in range(5000)]))) == 1000


def test_a_press_that_is_told_twice_counts_once() -> None:
    turns = Turns()
    assert not turns.is_repeated("one")
    assert turns.is_repeated("one")
    assert not turns.is_repeated("")
    assert not turns.is_repeated("")


# An opened run


def test_the_header_says_what_the_run_was() -> None:
    trace = replace(
        SELECTED,
        rewritten="How long may a boat stay at the north quay?",
        config={"drafts": 7, "seed": 0, "collection": "harbour", "weights": {"relevance": 4.0}},
        environment={"device": "cpu, 2 threads", "models": {"drafter": {"name": "small"}}},
    )
    html = run_head(Opened(trace=trace, summary=RUN, mine=True), now=NOW)
    head = find(html, "sr-trace-head")[0].text
    for said in ("Asked as: How long may a boat stay at the north quay?", "small", "harbour", "Selected"):
        assert said in head
    settings = find(html, "sr-trace-settings")[0].text
    assert "drafts (m): 7" in settings
    assert "seed" not in settings, "a setting that is as usual"


def test_only_the_owner_is_offered_to_rate_and_delete() -> None:
    theirs = run_head(Opened(trace=SELECTED, summary=RUN, mine=False), now=NOW)
    actions = {one.attributes.get("data-sr-action") for one in find(theirs, "button")}
    assert actions.isdisjoint({"run-rate-up", "run-rate-down", "run-delete"})
    own = run_head(Opened(trace=SELECTED, summary=replace(RUN, feedback="up"), mine=True), now=NOW)
    pressed = {
        one.attributes["data-sr-action"]: one.attributes["aria-pressed"]
        for one in find(own, "sr-rate-button")
    }
    assert pressed == {"run-rate-up": "true", "run-rate-down": "false"}


def test_where_a_run_comes_from_and_what_came_of_it_can_be_opened_and_compared() -> None:
    trace = replace(SELECTED, parent=Parent(run_id="p", step="draft"))
    child = replace(RUN, run_id="c")
    run = Opened(trace=trace, summary=RUN, mine=True, parent=replace(RUN, run_id="p"), children=(child,))
    html = run_head(run, now=NOW)
    pairs = [
        (one.attributes["data-sr-id"], one.attributes.get("data-sr-value", ""))
        for one in find(html, "button")
        if one.attributes.get("data-sr-action") == "runs-compare"
    ]
    assert pairs == [("p", trace.run_id), (trace.run_id, "c")]
    assert "Forked at draft" in find(html, "sr-lineage")[0].text
    gone = run_head(replace(run, parent=None, children=()), now=NOW)
    assert "no longer here" in find(gone, "sr-lineage")[0].text


def test_the_link_says_who_can_see_the_run() -> None:
    everybody = trace_cards.share_card("r", by_link=False, shared=False, mine=True)
    assert "Everybody who can open this page" in everybody
    assert "run-share" not in everybody
    own = trace_cards.share_card("r", by_link=True, shared=False, mine=True)
    switch = next(one for one in find(own, "button") if one.attributes.get("role") == "switch")
    assert switch.attributes["aria-checked"] == "false"
    assert switch.attributes["data-sr-value"] == "on"
    assert "role=" not in trace_cards.share_card("r", by_link=True, shared=True, mine=False)


@pytest.mark.parametrize("name", EVERY)
def test_every_state_has_a_header_and_no_text_becomes_markup(name: str) -> None:
    trace = replace(EVERY[name], config={HOSTILE: HOSTILE, "drafts": LONG_WORD, "collection": HOSTILE})
    summary = replace(RUN, question=HOSTILE, comment=HOSTILE, parent=HOSTILE)
    run = Opened(trace=trace, summary=summary, mine=True, parent=summary, children=(summary,) * 30)
    _is_harmless(run_head(run, now=NOW))
