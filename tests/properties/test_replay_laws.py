"""A run is its events: stored, read and folded again they are the same trace, wherever the run was cut off."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrag.build import PIPELINES
from specrag.conversation import conversation
from specrag.errors import TraceError
from specrag.events import Event, RunCancelled
from specrag.forking import fork
from specrag.models.scripted import ScriptedModel, Written
from specrag.pipelines.base import Pipeline, Request
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.codec import events_from_json, events_to_json, from_json, to_json
from specrag.tracing.trace import Trace, fold
from specrag.types import PipelineName, StepName
from tests.toys import filled_store, tools

WORDS = st.text("ab 1.é\u202e<&\n", max_size=24)


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


def script(texts: list[str], broken: set[int]) -> ScriptedModel:
    """A model that says whatever it is given, and fails at some of its turns."""
    turns = iter(range(10_000))

    def write(_: str) -> Written:
        turn = next(turns)
        if turn in broken:
            raise ValueError("this one fails")
        text = texts[turn % len(texts)]
        return {"rationale": text, "answer": text, "note": text, "query": text}

    return ScriptedModel(write, judge=lambda text: (len(text) % 9 + 1) / 10)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(PIPELINES)),
    texts=st.lists(WORDS, min_size=1, max_size=4),
    broken=st.sets(st.integers(0, 6), max_size=3),
    drafts=st.integers(1, 5),
    decision=st.sampled_from(["select", "synthesise"]),
    grounded=st.booleans(),
    cut=st.integers(0, 200),
    earlier=st.lists(st.tuples(WORDS, WORDS), max_size=4),
    step=st.sampled_from(get_args(StepName)),
)
def test_events_read_again_fold_to_the_same_trace(
    *,
    store: ChromaStore,
    name: PipelineName,
    texts: list[str],
    broken: set[int],
    drafts: int,
    decision: str,
    grounded: bool,
    cut: int,
    earlier: list[tuple[str, str]],
    step: StepName,
) -> None:
    made = PIPELINES[name](
        tools(store, script(texts, broken), drafts=drafts, decision=decision, grounded=grounded)
    )
    asked = Request(question="How much does it hold?", collection="documents", earlier=conversation(earlier))
    events = asyncio.run(told(made, asked))
    stopped: list[Event] = (
        [*events[:cut], RunCancelled(at_ms=1e9, reason="cut")] if 0 < cut < len(events) else events
    )
    trace = fold(stopped)
    assert fold(events_from_json(events_to_json(stopped))) == trace
    assert from_json(to_json(trace)) == trace
    assert trace.status in ("done", "failed", "cancelled")
    assert all(span.end_ms is not None for span in trace.spans), "every span is closed, whatever happened"
    explained(events)
    forked(made, trace, step)


async def told(made: Pipeline, request: Request) -> list[Event]:
    async with aclosing(made.run(request)) as stream:
        return [event async for event in stream]


def explained(events: list[Event]) -> None:
    """Wherever a run ended, the prompts in its trace are what the verifier has read."""
    trace = fold(events)
    read = sum(prompt.tokens for prompt in trace.prompts if prompt.role == "verifier")
    assert read == trace.usage.verifier.prompt_tokens


def forked(made: Pipeline, parent: Trace, step: StepName) -> None:
    """Any run, one that was cut off as well, can be forked or says in a sentence why not."""
    try:
        request = fork(parent, step)
    except TraceError:
        return
    events = asyncio.run(told(made, request))
    child = fold(events)
    assert fold(events_from_json(events_to_json(events))) == child
    assert child.status in ("done", "failed")
    assert child.parent is not None
    if request.given is not None and child.passages:
        assert child.passages == request.given.passages
        assert not request.given.subsets or child.subsets == parent.subsets
