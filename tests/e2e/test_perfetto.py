"""Perfetto's own trace_processor reads what we export: nothing dropped, nothing repaired, tracks as drawn."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser

from specrag.tracing.export.perfetto import to_perfetto
from specrag.tracing.trace import Trace, fold
from tests.golden.record import events as golden_events
from tests.trace_processor import TraceProcessor, trace_processor
from tests.ui_runs import MULTIHOP, many_drafts
from tests.ui_traces import HOSTILE_TRACE, SELECTED

pytestmark = pytest.mark.browser

_SLICES = """
    SELECT slice.name AS name, thread.name AS track, ts, dur, depth
    FROM slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)
    ORDER BY ts, slice.id
"""
_WRONG = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"


@pytest.fixture(scope="module")
def golden() -> Trace:
    with ThreadPoolExecutor(1) as elsewhere:  # the browser's driver keeps a loop running in this thread
        return fold(elsewhere.submit(lambda: asyncio.run(golden_events())).result())


@pytest.fixture(scope="module")
def processor(browser: Browser) -> Iterator[TraceProcessor]:
    with trace_processor(browser) as opened:
        yield opened


def test_a_run_is_what_perfetto_says_it_is(processor: TraceProcessor) -> None:
    processor.load(to_perfetto(SELECTED))
    assert processor.query(_WRONG) == []
    rows = processor.query(_SLICES)
    assert len(rows) == len(SELECTED.spans)
    spans = sorted((round(s.start_ms * 1e6), round((s.end_ms or 0) * 1e6)) for s in SELECTED.spans)
    assert sorted((row["ts"], row["ts"] + row["dur"]) for row in rows) == spans
    drafts = [row for row in rows if str(row["track"]).startswith("draft ")]
    assert {row["track"] for row in drafts} == {"draft 1", "draft 2", "draft 3", "draft 4"}
    assert {row["depth"] for row in drafts if row["name"] == "decode"} == {1}
    assert processor.query("SELECT count(*) AS n FROM flow") == [{"n": 5}]
    scores = processor.query(
        "SELECT real_value FROM slice JOIN args USING (arg_set_id) WHERE key = 'args.score.combined' ORDER BY 1"
    )
    assert [row.get("real_value") for row in scores] == [0.19, 0.61, 0.62, 0.83]
    assert processor.query("SELECT max(value) AS n FROM counter") == [{"n": 63.0}]


@pytest.mark.parametrize("name", ["hostile", "hops", "sixteen", "golden"])
def test_other_runs_load_without_a_complaint(processor: TraceProcessor, golden: Trace, name: str) -> None:
    trace = {"hostile": HOSTILE_TRACE, "hops": MULTIHOP, "sixteen": many_drafts(16), "golden": golden}[name]
    processor.load(to_perfetto(trace))
    assert processor.query(_WRONG) == []
    assert len(processor.query(_SLICES)) == len(trace.spans)
