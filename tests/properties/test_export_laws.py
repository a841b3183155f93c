"""What leaves as a file comes back as the same run, whatever it holds and wherever it was cut off."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrag.build import PIPELINES
from specrag.events import Event, RunCancelled
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.codec import run_to_json
from specrag.tracing.export.importing import import_run
from specrag.tracing.export.perfetto import to_perfetto
from specrag.tracing.export.redact import without_texts
from specrag.tracing.trace import Trace, fold
from specrag.types import PipelineName
from tests.chrome_trace import check_chrome_trace
from tests.properties.test_replay_laws import WORDS, script
from tests.toys import events_of as run_of
from tests.toys import filled_store, tools


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(PIPELINES)),
    texts=st.lists(WORDS, min_size=1, max_size=4),
    broken=st.sets(st.integers(0, 6), max_size=3),
    drafts=st.integers(1, 5),
    decision=st.sampled_from(["select", "synthesise"]),
    eager=st.booleans(),
    cut=st.integers(0, 200),
)
def test_a_run_that_was_a_file_is_the_same_run(
    *,
    store: ChromaStore,
    name: PipelineName,
    texts: list[str],
    broken: set[int],
    drafts: int,
    decision: str,
    eager: bool,
    cut: int,
) -> None:
    """Also without texts and without its events, which are then made from the trace."""
    made = PIPELINES[name](tools(store, script(texts, broken), drafts=drafts, decision=decision, eager=eager))
    events: tuple[Event, ...] = tuple(asyncio.run(run_of(made, "How much does it hold?")))
    if 0 < cut < len(events):
        events = (*events[:cut], RunCancelled(at_ms=events[cut].at_ms, reason="cut"))
    trace = fold(events)
    assert import_run(run_to_json(trace, events).encode()) == (trace, events)
    alone = json.loads(run_to_json(trace, ()))
    del alone["events"]
    again, told = import_run(json.dumps(alone).encode())
    assert again == trace
    assert _same(fold(told), trace)
    bare, figures = without_texts(trace, events)
    assert fold(figures) == bare
    assert import_run(run_to_json(bare, figures).encode()) == (bare, figures)
    check_chrome_trace(to_perfetto(trace))


def _same(one: Trace, other: Trace) -> bool:
    """Equal but for what a trace does not keep: the texts of a hop that was cut off in its middle."""
    if any(not hop.finished for hop in other.hops):
        return replace(one, hops=()) == replace(other, hops=())
    return one == other
