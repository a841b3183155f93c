"""The trace for Perfetto: one track a draft, slices that nest, arrows that land, and figures to click on."""

from dataclasses import replace
from typing import Any

import pytest

from specrag.tracing.export.perfetto import to_perfetto
from specrag.tracing.trace import Trace, fold
from specrag.types import Span
from tests.chrome_trace import check_chrome_trace
from tests.golden.record import events as golden_events
from tests.ui_runs import MULTIHOP, RUNS, many_drafts
from tests.ui_traces import CANCELLED, HOSTILE, SELECTED, STATES


def tracks(events: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The names of the slices of each track."""
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    return {
        label: [event["name"] for event in events if event["ph"] == "X" and event["tid"] == tid]
        for tid, label in names.items()
    }


@pytest.mark.parametrize("name", sorted({**STATES, **RUNS}))
def test_every_run_is_a_sound_trace(name: str) -> None:
    trace: Trace = {**STATES, **RUNS}[name]
    check_chrome_trace(to_perfetto(trace))


def test_each_draft_has_a_track() -> None:
    """Drafts overlap in time; on one track a viewer drops all but the first (overlapping slices)."""
    found = tracks(check_chrome_trace(to_perfetto(SELECTED)))
    assert found["draft 1"] == ["draft", "decode"]
    assert [label for label in found if label.startswith("draft ")] == [f"draft {n}" for n in (1, 2, 3, 4)]
    assert found["retrieve"] == ["retrieve"]
    assert found["verify"] == ["verify"]
    assert found["run"] == ["run"]


def test_sixteen_drafts_and_hops_have_tracks_of_their_own() -> None:
    many = tracks(check_chrome_trace(to_perfetto(many_drafts(16))))
    assert sum(label.startswith("draft ") for label in many) == 16
    hops = tracks(check_chrome_trace(to_perfetto(MULTIHOP)))
    assert "retrieve" in hops["hop 1"]


async def test_a_real_run_shows_its_scores_and_its_winner() -> None:
    trace = fold(await golden_events())
    events = check_chrome_trace(to_perfetto(trace))
    drafts = [
        event
        for event in events
        if event["ph"] == "X" and "args" in event and "score.combined" in event["args"]
    ]
    assert [event["args"]["score.combined"] for event in drafts] == [
        draft.scores.combined for draft in trace.drafts
    ]
    run = next(event for event in events if event["ph"] == "X" and event["name"] == "run")
    assert run["args"]["question"] == trace.question
    assert run["args"]["drafter.completion_tokens"] == trace.usage.drafter.completion_tokens
    assert trace.decision is not None
    decide = next(event for event in events if event["ph"] == "X" and event["name"] == "decide")
    assert decide["args"]["draft"] == (trace.decision.draft_index or 0) + 1
    arrows = [event for event in events if event["ph"] == "s"]
    assert len(arrows) == len(trace.drafts) + 1, "from each draft to the verifier, and on to the decision"
    counted = [event["args"]["tokens"] for event in events if event["ph"] == "C"]
    assert counted[-1] == sum(len(draft.tokens) for draft in trace.drafts)


def test_times_are_those_of_the_trace_to_the_microsecond() -> None:
    events = check_chrome_trace(to_perfetto(SELECTED))
    verify = next(event for event in events if event["ph"] == "X" and event["name"] == "verify")
    assert (verify["ts"], verify["dur"]) == (3_900_000, 650_000)


def test_spans_that_cross_lie_beside_each_other() -> None:
    """An eager verifier reads one draft while it still reads another."""
    spans = tuple(
        Span(id=key, parent_id=None, name="verify", start_ms=start, end_ms=end)
        for key, start, end in (("a", 0.0, 20.0), ("b", 10.0, 30.0), ("c", 25.0, 40.0))
    )
    found = tracks(check_chrome_trace(to_perfetto(replace(SELECTED, spans=spans))))
    assert found["verify"] == ["verify", "verify"]
    assert found["verify (2)"] == ["verify"]


def test_children_that_outlast_their_parents_are_cut_to_them() -> None:
    spans = (
        Span(id="a", parent_id=None, name="run", start_ms=5.0, end_ms=20.0),
        Span(id="b", parent_id="a", name="queue", start_ms=0.0, end_ms=30.0),
        Span(id="c", parent_id="b", name="queue", start_ms=28.0, end_ms=30.0),
    )
    found = tracks(check_chrome_trace(to_perfetto(replace(SELECTED, spans=spans))))
    assert found["run"] == ["run", "queue", "queue"]


def test_spans_in_a_circle_end() -> None:
    spans = tuple(
        Span(id=key, parent_id=above, name="draft", start_ms=1.0, end_ms=2.0)
        for key, above in (("a", "b"), ("b", "a"), ("c", "c"))
    )
    check_chrome_trace(to_perfetto(replace(SELECTED, spans=spans)))


def test_a_run_that_was_stopped_ends_where_it_was_stopped() -> None:
    events = check_chrome_trace(to_perfetto(CANCELLED))
    ends = [event["ts"] + event["dur"] for event in events if event["ph"] == "X"]
    assert max(ends) == CANCELLED.elapsed_ms * 1000
    assert any(event["args"].get("open") for event in events if event["ph"] == "X")


def test_hostile_texts_are_only_texts() -> None:
    """Half characters and control characters must not break the file."""
    trace = replace(SELECTED, question=HOSTILE, run_id=HOSTILE)
    events = check_chrome_trace(to_perfetto(trace))
    assert "<script>" in next(event for event in events if event["name"] == "process_name")["args"]["name"]
