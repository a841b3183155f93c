"""A replay shows what the page showed: the fold of the events so far, and pictures that the browser rebuilds."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrag import events as e
from specrag.tracing.codec import events_from_json, events_to_json
from specrag.tracing.trace import TraceFold, fold
from specrag.types import TokenLogprob
from specrag.ui import cards
from specrag.ui.detail.film import SCOPE, changes_of, film_card, film_of, player, stage
from specrag.ui.detail.replay import moments, replayed, retrieved_at, verdict_at
from tests.detail_runs import events_of_run, run_of
from tests.ui_html import find, read
from tests.ui_runs import RUNS
from tests.ui_traces import HOSTILE, STATES

EVENTS = events_of_run(drafts=5, words=12)


def rebuilt(before: list[str], changes: list[list[Any]]) -> list[str]:
    """What the browser does (specrag/ui/detail.js): it counts in UTF-16 units."""
    lines = list(before)
    for change in changes:
        if isinstance(change[2], list):
            lines[change[0] : change[0] + change[1]] = change[2]
            continue
        old = lines[change[0]].encode("utf-16-le")
        end = old[len(old) - 2 * change[2] :]
        lines[change[0]] = (old[: 2 * change[1]] + change[3].encode("utf-16-le") + end).decode("utf-16-le")
    return lines


def test_at_every_event_the_replay_is_the_fold_so_far() -> None:
    """The live page folds events one by one; a replay that folds otherwise shows another run."""
    folding = TraceFold()
    for place, event in enumerate(EVENTS):
        trace = folding.apply(event)
        last_of_its_time = place + 1 == len(EVENTS) or EVENTS[place + 1].at_ms > event.at_ms
        if last_of_its_time:
            assert replayed(EVENTS, event.at_ms) == trace


@given(st.floats(min_value=-10, max_value=3000))
@settings(max_examples=150, deadline=None)
def test_between_two_events_only_the_clock_has_moved(until_ms: float) -> None:
    """As `Runs.follow` shows a run that goes on: the events so far, at the time of that moment."""
    seen = [event for event in EVENTS if event.at_ms <= until_ms] or EVENTS[:1]
    expected, found = fold(seen), replayed(EVENTS, until_ms)
    if expected.status == "running":
        assert found.elapsed_ms == max(seen[-1].at_ms, min(until_ms, EVENTS[-1].at_ms))
    for name in (
        "passages",
        "subsets",
        "drafts",
        "spans",
        "decision",
        "answer",
        "status",
        "usage",
        "prompts",
    ):
        assert getattr(found, name) == getattr(expected, name), name


def test_at_the_end_the_replay_is_the_stored_trace() -> None:
    stored = events_from_json(events_to_json(EVENTS))
    assert replayed(stored, 1e12) == fold(EVENTS)
    assert replayed(stored, EVENTS[-1].at_ms) == fold(EVENTS)


def test_a_run_begins_with_its_question_however_early_one_looks() -> None:
    begun = replayed(EVENTS, -1.0)
    assert (begun.status, begun.question, begun.passages) == ("running", fold(EVENTS).question, ())


def test_nothing_can_be_replayed_without_events() -> None:
    with pytest.raises(ValueError, match="begins with RunStarted"):
        replayed([], 0.0)
    for events in ([], EVENTS[1:]):
        with pytest.raises(ValueError, match="begins with RunStarted"):
            film_of(events)


def test_a_replay_stops_at_every_time_that_something_happens() -> None:
    stops = [moment.at_ms for moment in moments(EVENTS, most=10_000)]
    assert stops == sorted({event.at_ms for event in EVENTS})


def test_a_long_run_has_about_as_many_moments_as_asked_and_ends_where_it_ended() -> None:
    long = events_of_run(drafts=8, words=120)
    stops = list(moments(long, most=100))
    assert 50 <= len(stops) <= 110
    assert stops[-1].trace == fold(long)


def test_each_moment_says_what_has_happened() -> None:
    said = [moment.says for moment in moments(EVENTS, most=10_000)]
    assert said[0] == "the question is asked"
    for words in (
        "8 passages are found",
        "5 subsets are formed",
        "draft 2 begins to read",
        "draft 1 writes “The”",
        "draft 5 is finished",
        "the verifier has read the drafts",
        "the decision",
        "the end",
    ):
        assert words in said


def test_the_verdict_and_the_passages_have_their_times() -> None:
    decided = next(event for event in EVENTS if isinstance(event, e.Decided))
    assert verdict_at(EVENTS) == decided.at_ms
    assert replayed(EVENTS, decided.at_ms).decision == decided.decision
    found = retrieved_at(EVENTS)
    assert found is not None
    assert replayed(EVENTS, found).passages
    assert not replayed(EVENTS, found - 1).passages
    assert verdict_at(EVENTS[:9]) is retrieved_at(EVENTS[:3]) is None


def test_the_pictures_are_those_that_the_live_page_had() -> None:
    """Rebuilt as the browser does it; a change that is off by a letter would go unseen without this."""
    film = film_of(EVENTS)
    lines: dict[str, list[str]] = {"status": [], "answer": [], "board": []}
    for at_ms, _, parts in film.frames:
        for name, changes in parts.items():
            lines[name] = rebuilt(lines[name], json.loads(json.dumps(changes)))
        then = replayed(EVENTS, at_ms)
        assert "\n".join(lines["status"]) == cards.status_line(then)
        assert "\n".join(lines["board"]) == cards.board(then, scope=SCOPE)
        assert "\n".join(lines["answer"]) == cards.answer_card(then, scope=SCOPE)
    assert film.frames[-1][0] < film.end_ms, "the finished page is there already"


@given(
    st.lists(st.text(st.sampled_from("ab\U0001f600é<"), max_size=6), max_size=6),
    st.lists(st.text(st.sampled_from("ab\U0001f600é<"), max_size=6), max_size=6),
)
def test_changes_turn_any_lines_into_any_others(before: list[str], after: list[str]) -> None:
    """Letters outside the basic plane count as two in the browser."""
    assert rebuilt(before, changes_of(before, after)) == after


def test_a_film_is_small_because_it_holds_differences() -> None:
    long = events_of_run(drafts=20, words=100)
    assert len(film_card(film_of(long), key="1")) < 800_000
    whole = sum(len(cards.board(moment.trace, scope=SCOPE)) for moment in moments(long, most=50))
    assert whole > 800_000


def test_texts_in_a_film_stay_texts() -> None:
    hostile = [
        event
        if not isinstance(event, e.DraftToken)
        else e.DraftToken(
            at_ms=event.at_ms, subset_id=event.subset_id, part="rationale", text=HOSTILE, logprob=-1.0
        )
        for event in EVENTS[:40]
    ]
    html = film_card(film_of(hostile), key='"><script>')
    assert {element.tag for element in read(html)} == {"div"}
    film = json.loads("".join(read(html)[0].pieces))
    assert "<script" not in json.dumps([parts for _, _, parts in film["frames"]]), "what becomes HTML"
    assert "<script" in json.dumps([says for _, says, _ in film["frames"]]), "what is set as text"
    assert "${" not in html


@pytest.mark.parametrize("state", ["selected", "fallback", "failed", "cancelled", "hostile"])
def test_the_player_can_be_worked_by_keyboard_and_named(state: str) -> None:
    html = player(STATES[state])
    named = [button.attributes.get("aria-label") or button.text for button in find(html, "button")]
    for name in ("Play", "1x", "2x", "4x", "Step back", "Step to the next event", "To the verdict"):
        assert name in named
    assert find(html, "sr-seek")[0].attributes["aria-label"]
    assert find(html, "sr-player")[0].attributes["tabindex"] == "0"
    assert find(stage(), "sr-stage")[0].attributes["hidden"] == ""


def test_the_axis_of_the_replay_is_that_of_the_timeline() -> None:
    """The browser uncovers the finished timeline, so both must have one scale."""
    for trace in (run_of(), STATES["selected"], RUNS["multihop"]):
        last = find(cards.timeline(trace), "sr-tick")[-1]
        told = re.fullmatch(r"([\d.]+) (ms|s)", last.text)
        assert told
        axis = float(told[1]) * (1000 if told[2] == "s" else 1)
        assert float(find(player(trace), "sr-replay")[0].attributes["data-sr-axis"]) == pytest.approx(axis)


def test_tokens_of_the_replay_have_their_times() -> None:
    tokens = replayed(EVENTS, 400.0).drafts[0].tokens
    assert tokens
    assert all(isinstance(token, TokenLogprob) and (token.at_ms or 0) <= 400 for token in tokens)
