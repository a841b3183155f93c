"""What a visitor would notice on the Compare tab: numbers that add up, who agrees, and nothing that runs."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from specrag import events as e
from specrag.prices import EXAMPLE, MachinePrice, Prices, TokenPrices
from specrag.race import Race
from specrag.tracing.trace import fold
from specrag.types import Decision
from specrag.ui import compare_cards as cards
from specrag.ui import compare_words as words
from specrag.ui.compare_columns import columns
from specrag.ui.compare_figures import COMMON, stacked
from specrag.ui.compare_numbers import Measured, measured, sides
from specrag.ui.compare_phases import begun_ms, own_ms, phases, sums
from specrag.ui.compare_reel import reel, said
from specrag.ui.options import PIPELINES
from tests.compare_races import DONE, FAILED, RUNNING, STATES, STOPPED, comparison, race, written
from tests.ui_html import find, read
from tests.ui_runs import RUNS, STANDARD_WRITING, Script
from tests.ui_traces import HOSTILE, PASSAGES
from tests.ui_traces import STATES as TRACES

STANDARD, OTHER = (written(name, "three nights") for name in ("standard", "speculative"))
SLOW = written("speculative", "Three  nights, as the notice says in its second line")


def _numbers(*scripts: Script, prices: Prices | None = None) -> list[Measured]:
    pipelines = [script.trace.pipeline for script in scripts]
    made = race(comparison(pipelines), *(script.trace for script in scripts))
    rows = measured(made, [script.events for script in scripts], prices)
    return [row for row in rows if row is not None]


# Phases


@pytest.mark.parametrize("state", RUNS | TRACES)
def test_the_phases_of_a_run_follow_one_another_and_sum_to_its_time(state: str) -> None:
    """Steps overlap; bars that add their times up would be longer than the run."""
    trace = (RUNS | TRACES)[state]
    found = phases(trace)
    assert sum(phase.takes_ms for phase in found) == pytest.approx(own_ms(trace))
    assert all(a.end_ms == b.start_ms for a, b in pairwise(found))
    assert sum(sums(found).values()) == pytest.approx(own_ms(trace))


def test_the_time_in_line_is_not_the_runs_own() -> None:
    """Whoever waited for others would look slow."""
    quick, waited = written("standard", "three nights"), written("standard", "three nights", waits=True)
    assert begun_ms(quick.trace) == 0
    assert begun_ms(waited.trace) > 0
    assert waited.trace.elapsed_ms > quick.trace.elapsed_ms
    assert own_ms(waited.trace) < own_ms(quick.trace) + 200
    (first, *_) = phases(waited.trace)
    assert first.start_ms == 0


def test_a_model_that_writes_alone_reads_first_and_then_writes() -> None:
    kinds = [phase.kind for phase in phases(STANDARD.trace)]
    assert kinds.index("read") < kinds.index("write")
    assert "verify" not in kinds


def test_a_hop_that_searches_counts_as_finding() -> None:
    taken = sums(phases(RUNS["multihop"]))
    assert taken["find"] > 0
    assert taken["note"] > 0


def test_comparing_sentences_is_not_finding_passages_that_were_given() -> None:
    """Speculative RAG weighs the given passages; told as finding, it would seem to look for them again."""
    script = Script("speculative")
    key = script.open("retrieve", given=True)
    step = script.open("evidence", key)
    script.tell(e.PassagesRetrieved(at_ms=script.now, passages=PASSAGES))
    script.close(step)
    script.close(key)
    assert list(sums(phases(script.trace))) == ["weigh", "other"]
    searched = Script("speculative")
    searched.retrieve()
    assert list(sums(phases(searched.trace))) == ["find", "other"]


# Numbers


def test_times_count_from_the_question_with_the_common_passages() -> None:
    """Every event takes 100 ms, and the passages took 120 ms before the run began."""
    (row,) = _numbers(STANDARD)
    first = next(event.at_ms for event in STANDARD.events if isinstance(event, e.AnswerToken))
    assert row.first_ms == row.answer_ms == 120 + first
    assert row.total_ms == 120 + STANDARD.trace.elapsed_ms


def test_the_first_token_may_be_a_drafts_and_the_answer_begins_when_it_is_decided() -> None:
    made = race(comparison(("speculative",)), TRACES["selected"])
    token = e.DraftToken(at_ms=911.0, subset_id="s1", part="rationale", text="The", logprob=-0.1)
    (row,) = measured(made, [[token]], None)
    assert row is not None
    assert row.first_ms == 120 + 911.0
    assert row.answer_ms is not None
    assert row.first_ms < row.answer_ms <= row.total_ms


def test_a_hops_note_is_a_first_token_as_well() -> None:
    """Else multi-hop RAG would seem to write nothing until its answer."""
    token = e.HopToken(at_ms=300.0, number=1, part="note", text="The", logprob=-0.1)
    (row,) = measured(race(comparison(("multihop",)), RUNS["multihop"]), [[token]], None)
    assert row is not None
    assert row.first_ms == 420.0


def test_the_ratio_is_to_standard_rag_and_it_has_none_itself() -> None:
    standard, slow = _numbers(STANDARD, SLOW)
    assert standard.ratio is None
    wanted = (120 + SLOW.trace.elapsed_ms) / (120 + STANDARD.trace.elapsed_ms)
    assert slow.ratio == pytest.approx(wanted)
    (alone,) = _numbers(SLOW)
    assert alone.ratio is None


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "–"), (2.0, "2.00 times as long"), (0.5, "2.00 times as fast"), (1.001, "as long")],
)
def test_a_ratio_cannot_be_read_the_wrong_way_round(ratio: float | None, text: str) -> None:
    assert words.ratio_text(ratio) == text


def test_the_cost_is_of_its_own_tokens_or_its_own_time() -> None:
    """900 read at 1 dollar and 6 written at 10, by the verifier: 960 millionths, times a thousand."""
    prices = TokenPrices(drafter_read=99, drafter_written=99, verifier_read=1, verifier_written=10)
    (row,) = _numbers(STANDARD, prices=prices)
    assert row.dollars == pytest.approx(0.96)
    (timed,) = _numbers(STANDARD, prices=MachinePrice(per_hour=3.6))
    assert timed.dollars == pytest.approx((120 + STANDARD.trace.elapsed_ms) / 1000)


def test_equal_answers_have_equal_letters_whatever_their_case_and_points() -> None:
    assert sides(["a", "b", "a", ""]) == ("A", "B", "A", "C")
    same = written("drafter", "Three nights!", "drafter")
    rows = _numbers(STANDARD, same, SLOW)
    assert [row.side for row in rows] == ["A", "A", "B"]


def test_two_that_find_no_answer_agree_in_other_words() -> None:
    one, two = written("standard", "No mention of it"), written("drafter", "Unknown", "drafter")
    for script in (one, two):
        script.events.insert(-4, e.Decided(at_ms=script.now - 500, decision=_abstention(script)))
    assert [row.side for row in _numbers(one, two)] == ["A", "A"]


def _abstention(script: Script) -> Decision:
    assert script.trace.decision is not None
    return replace(script.trace.decision, kind="abstained")


def test_agreement_is_said_in_one_sentence() -> None:
    names = [PIPELINES[name] for name in ("standard", "drafter", "speculative")]
    same = written("drafter", "Three nights!", "drafter")
    assert words.agreement(_numbers(STANDARD, OTHER)) == "Both give the same answer."
    assert words.agreement(_numbers(STANDARD, SLOW)) == "Every pipeline gives another answer."
    mixed = words.agreement(_numbers(STANDARD, same, SLOW))
    assert mixed == f"{names[0]} and {names[1]} give the same answer; {names[2]} differs."
    assert words.agreement(_numbers(STANDARD)) == ""


def test_a_run_without_an_end_of_its_own_has_no_numbers() -> None:
    made = race(comparison(("standard", "speculative")), STANDARD_WRITING, None)
    assert measured(made, [[], []], EXAMPLE) == (None, None)
    assert cards.table(made, (None, None), EXAMPLE, example=True) == ""


# What is shown


def _all(made: Race) -> str:
    told = [[] for _ in made.traces]  # type: ignore[var-annotated]  # no events are needed
    reels = [((0, said(trace)),) if trace else () for trace in made.traces]
    rows = measured(made, told, EXAMPLE)
    return "".join(
        (
            cards.status_line(words.status(made)),
            cards.race_card(made, reels),
            columns(made),
            cards.table(made, rows, EXAMPLE, example=True),
            cards.steps(made),
            cards.recent([made.comparison], made.comparison.id),
            cards.how_note("How: Speculative RAG"),
            cards.idle(),
        )
    )


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_well_formed_and_runs_nothing(state: str) -> None:
    elements = read(_all(STATES[state]))
    assert not [one for one in elements if one.tag in {"script", "style", "img", "iframe", "form"}]
    assert not [name for one in elements for name in one.attributes if name.startswith("on")]


@pytest.mark.parametrize("state", STATES)
def test_no_state_holds_a_template_of_gradio(state: str) -> None:
    """Gradio evaluates its templates; a question that looks like one must stay text."""
    html = _all(STATES[state])
    assert "${" not in html
    assert "{{" not in html


def test_hostile_words_stay_words_also_where_the_browser_reads_them_as_data() -> None:
    html = cards.race_card(STATES["hostile"], [((0, HOSTILE),), ((0, HOSTILE),)])
    for lane in [one for one in read(html) if "data-sr-reel" in one.attributes]:
        ((at, text),) = json.loads(lane.attributes["data-sr-reel"])
        assert at == 0
        assert "<script>alert(1)</script>" in text
    assert "<script" not in html


def test_a_lane_never_reaches_beyond_the_common_axis() -> None:
    for made in STATES.values():
        html = cards.race_card(made)
        for bar in find(html, "sr-phase"):
            if "style" in bar.attributes:
                found = re.findall(r"([\d.]+)(?:%|;)", bar.attributes["style"])
                assert sum(float(share) for share in found) <= 100.01


def test_what_ended_keeps_its_time_and_what_is_to_come_says_when() -> None:
    lanes = find(cards.race_card(RUNNING), "sr-race-lane")[:4]
    times = [find(cards.race_card(RUNNING), "sr-race-time")[place].text for place in range(4)]
    assert times[0]
    assert times[1:] == ["", "", ""]
    assert "Begins next" in lanes[2].text
    assert "Runs as number 4" in lanes[3].text


def test_a_stopped_comparison_says_what_was_left_out() -> None:
    runners = find(columns(STOPPED), "sr-runner")
    assert "Not run" in runners[1].text
    assert words.status(STOPPED) == "Stopped: The comparison was stopped."
    assert words.status(FAILED) == "Failed: The collection is empty."


def test_a_deleted_run_is_not_one_that_never_ran() -> None:
    assert "Its run was deleted" in find(columns(STATES["deleted"]), "sr-runner")[0].text


def test_only_an_ended_race_with_its_events_can_be_watched() -> None:
    def buttons(made: Race, reels: Sequence[Sequence[tuple[int, str]]]) -> int:
        return sum("data-sr-race-play" in one.attributes for one in read(cards.race_card(made, reels)))

    reels = [((0, "x"),)] * 4
    assert buttons(DONE, reels) == 1
    assert buttons(DONE, ()) == 0
    assert buttons(RUNNING, reels) == 0


def test_every_ended_run_can_be_opened() -> None:
    opened = [
        one.attributes["data-sr-id"]
        for one in read(columns(DONE))
        if one.attributes.get("data-sr-action") == "run-open"
    ]
    assert opened == [trace.run_id for trace in DONE.traces if trace]
    assert len(opened) == 4


def test_the_fairness_of_the_order_is_said() -> None:
    told = " ".join(words.fairness(race(comparison(turn=1, others=2), *DONE.traces)))
    order = ["Drafter only", "Multi-hop RAG", "Speculative RAG", "Standard RAG"]
    assert f"in the order {order[0]}, {order[1]}, {order[2]} and {order[3]}" in told
    assert "warming the models up before is not measured" in told
    assert "Finding the 8 passages took 120 ms, once" in told
    assert "may find more" in told
    assert "2 other runs used the models meanwhile" in told


def test_the_rest_is_not_said_where_it_does_not_hold() -> None:
    made = race(comparison(("standard", "drafter")), *DONE.traces[:2])
    told = " ".join(words.fairness(made))
    assert "hop" not in told
    assert "meanwhile" not in told


def test_prices_are_never_a_fact() -> None:
    rows = measured(DONE, [[]] * 4, EXAMPLE)
    assert "an assumption" in cards.table(DONE, rows, EXAMPLE, example=True)
    assert "you typed" in cards.table(DONE, rows, EXAMPLE, example=False)
    free = cards.table(DONE, measured(DONE, [[]] * 4, None), None, example=False)
    assert "$" not in free
    assert "1,000" not in free


def test_the_table_tells_what_the_bars_show() -> None:
    """Whoever cannot see the figure reads the same numbers."""
    figure = stacked(DONE)
    assert figure is not None
    assert next(bar.name for bar in figure.data) == COMMON
    totals = [sum(bar.x[place] for bar in figure.data) for place in range(4)]
    assert totals == pytest.approx([120 + own_ms(trace) for trace in DONE.traces if trace])
    assert len(find(cards.steps(DONE), "tr")) == 5


def test_there_is_no_figure_before_a_run_has_ended() -> None:
    assert stacked(FAILED) is None
    assert cards.steps(FAILED) == ""


# The reel


def test_the_reel_ends_with_what_the_run_came_to_and_begins_after_the_passages() -> None:
    frames = reel(STANDARD.events, before_ms=120)
    assert frames[0][0] >= 120
    assert frames[-1][1] == said(STANDARD.trace) == "Three nights"
    assert [at for at, _ in frames] == sorted(at for at, _ in frames)
    assert len({text for _, text in frames}) > 2


def test_the_reel_leaves_the_wait_out() -> None:
    waited = written("standard", "three nights", waits=True)
    frames = reel(waited.events, before_ms=0)
    spoken = max(event.at_ms for event in waited.events if isinstance(event, e.AnswerToken))
    assert begun_ms(waited.trace) > 0
    assert frames[-1][0] == spoken - begun_ms(waited.trace)


def test_a_long_answer_shows_its_end_while_it_is_written() -> None:
    script = written("standard", " ".join(f"word{number}" for number in range(200)))
    half = fold(script.events[:150])
    assert said(half).startswith("…")
    assert len(said(half)) < 200


def test_recent_comparisons_mark_the_one_that_is_shown() -> None:
    made = [comparison(id="one"), comparison(id="two", status="running")]
    html = cards.recent(made, "two")
    (current,) = [one for one in read(html) if one.attributes.get("aria-current") == "true"]
    assert "under way" in current.text
    assert cards.recent([], "") == ""
    assert "Only you can open it" in html
    assert "Everybody who can open this page can open it" in cards.recent(made, "two", everybody=True)
