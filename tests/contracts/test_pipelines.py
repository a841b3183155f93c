"""What all four pipelines promise alike, so that two of their traces differ in method and in nothing else."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import get_args

import pytest

from specrag.build import PIPELINES
from specrag.decide import NO_ANSWER
from specrag.events import (
    Answered,
    AnswerToken,
    DraftToken,
    Event,
    HopToken,
    PassagesRetrieved,
    RunFailed,
    RunFinished,
    RunStarted,
    UsageCounted,
)
from specrag.models.scripted import ScriptedModel, Written
from specrag.pipelines.base import Pipeline, Request
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.codec import events_from_json, events_to_json, from_json, to_json
from specrag.tracing.trace import Trace, TraceFold, fold
from specrag.turnstile import Turnstile
from specrag.types import PipelineName, Role
from tests.toys import PAGES, WordEmbedder, events_of, filled_store, tools

QUESTION = "How many watt-hours does the battery hold?"
ALL: tuple[PipelineName, ...] = get_args(PipelineName)
WRITERS: dict[PipelineName, Role] = {
    "speculative": "drafter",
    "standard": "verifier",
    "drafter": "drafter",
    "multihop": "verifier",
}
"""Who decodes."""


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    filled.ensure_collection("nothing", WordEmbedder.fingerprint)
    yield filled
    filled.close()


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> PipelineName:
    chosen: PipelineName = request.param
    return chosen


def write(text: str) -> Written:
    """Answers from the passages if they hold the answer, and abstains otherwise."""
    found = "640 watt-hours" in text
    return {
        "rationale": " The battery holds 640 watt-hours." if found else " Nothing is said of it.",
        "answer": " 640 watt-hours" if found else " Not in the passages.",
        "note": " the battery holds 640 watt-hours.",
        "query": " nothing",
    }


def broken(_: str) -> Written:
    raise RuntimeError("the model ran out of memory")


def scripted(script: Callable[[str], Written] = write, name: str = "scripted") -> ScriptedModel:
    return ScriptedModel(script, judge=lambda text: 0.9 if "640" in text else 0.2, name=name)


def made(name: PipelineName, store: ChromaStore, script: Callable[[str], Written] = write) -> Pipeline:
    return PIPELINES[name](tools(store, scripted(script)))


async def finished(name: PipelineName, store: ChromaStore) -> tuple[list[Event], Trace]:
    events = await events_of(made(name, store), QUESTION)
    return events, fold(events)


async def test_a_run_begins_once_and_ends_once(name: PipelineName, store: ChromaStore) -> None:
    events, trace = await finished(name, store)
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert sum(isinstance(event, RunStarted | RunFinished | RunFailed) for event in events) == 2
    assert trace.pipeline == name
    assert trace.status == "done"
    assert [event.at_ms for event in events] == sorted(event.at_ms for event in events)


async def test_it_answers_and_says_why(name: PipelineName, store: ChromaStore) -> None:
    _, trace = await finished(name, store)
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    assert trace.answer.confidence is not None
    assert 0 < trace.answer.confidence <= 1
    assert trace.decision is not None
    assert trace.decision.kind == ("selected" if name == "speculative" else "direct")
    assert trace.decision.reason.endswith(".")


async def test_citations_are_passages_that_were_retrieved(name: PipelineName, store: ChromaStore) -> None:
    _, trace = await finished(name, store)
    assert trace.answer is not None
    cited = [trace.passage(passage_id) for passage_id in trace.answer.citations]
    assert [passage.title for passage in cited if passage] == ["Battery"]


async def test_every_span_is_closed_inside_its_parent_and_the_steps_cover_the_run(
    name: PipelineName, store: ChromaStore
) -> None:
    _, trace = await finished(name, store)
    spans = {span.id: span for span in trace.spans}
    (root,) = (span for span in trace.spans if span.parent_id is None)
    for span in trace.spans:
        assert span.end_ms is not None, span.name
        parent = spans.get(span.parent_id or "")
        if parent is not None:
            assert parent.end_ms is not None
            assert parent.start_ms <= span.start_ms <= span.end_ms <= parent.end_ms
    steps = [span for span in trace.spans if span.parent_id == root.id]
    gaps = [later.start_ms - (earlier.end_ms or 0) for earlier, later in pairwise(steps)]
    # on the counting clock one look is a millisecond: nothing but the decision is told between two steps
    assert all(1 <= gap <= 2 for gap in gaps), gaps


async def test_the_written_tokens_are_the_answer(name: PipelineName, store: ChromaStore) -> None:
    """A reader of the stream sees the very words that the answer is made of, each with its probability."""
    events, trace = await finished(name, store)
    assert trace.answer is not None
    if name == "speculative":
        index = trace.decision.draft_index if trace.decision else None
        assert index is not None
        subset = trace.subsets[index].id
        texts = [
            e.text
            for e in events
            if isinstance(e, DraftToken) and (e.subset_id, e.part) == (subset, "answer")
        ]
    else:
        tokens = [event for event in events if isinstance(event, AnswerToken)]
        assert all(token.logprob == -0.5 for token in tokens)
        texts = [token.text for token in tokens]
    assert "".join(texts).strip() == trace.answer.text


async def test_events_and_trace_survive_json_and_a_replay(name: PipelineName, store: ChromaStore) -> None:
    events, trace = await finished(name, store)
    replayed = events_from_json(events_to_json(events))
    assert replayed == events
    growing = TraceFold()
    for event in replayed:
        growing.apply(event)
    assert growing.trace == trace == from_json(to_json(trace))


async def test_all_read_the_same_passages(store: ChromaStore) -> None:
    """Otherwise a comparison would compare retrievals. Multi-hop RAG finds them in its first hop."""
    first = {}
    for name in ALL:
        events, _ = await finished(name, store)
        first[name] = next(event.passages for event in events if isinstance(event, PassagesRetrieved))
    assert len(first["standard"]) == len(PAGES)
    assert len(set(first.values())) == 1


async def test_tokens_are_charged_to_the_model_that_writes_them(
    name: PipelineName, store: ChromaStore
) -> None:
    pipeline = PIPELINES[name](tools(store, scripted(name="small"), scripted(name="large")))
    events = await events_of(pipeline, QUESTION)
    trace = fold(events)
    written = sum(isinstance(event, AnswerToken | DraftToken | HopToken) for event in events)
    usage = {"drafter": trace.usage.drafter, "verifier": trace.usage.verifier}
    writer = usage.pop(WRITERS[name])
    (other,) = usage.values()
    assert writer.completion_tokens == written > 0
    assert writer.prompt_tokens > 0
    assert other.completion_tokens == 0
    assert (other.forward_passes, other.prompt_tokens > 0) == (
        (1, True) if name == "speculative" else (0, False)
    )
    counted = {event.role for event in events if isinstance(event, UsageCounted) and event.completion_tokens}
    assert counted == {WRITERS[name]}
    assert (trace.config["drafter"], trace.config["verifier"]) == ("small", "large")


@pytest.mark.parametrize("said", [" Not in the passages.", ""])
async def test_saying_that_there_is_no_answer_is_an_abstention(
    name: PipelineName, store: ChromaStore, said: str
) -> None:
    """Without a citation and without a confidence: nobody may take it for an answer."""
    events = await events_of(made(name, store, lambda _: {"answer": said}), QUESTION)
    trace = fold(events)
    assert trace.status == "done"
    assert trace.answer is not None
    assert trace.answer.text in ("Not in the passages.", NO_ANSWER)
    assert trace.answer.citations == ()
    assert trace.answer.confidence is None
    assert trace.decision is not None
    if name == "speculative" and not said:
        assert (
            trace.decision.kind == "fallback"
        )  # no draft holds an answer, so the verifier was asked as well
    else:
        assert trace.decision.kind == "abstained"
    if name != "speculative" or not said:
        assert trace.decision.reason.endswith("It says that they do not hold the answer.")


@pytest.mark.parametrize("name", ["standard", "drafter", "multihop"])
async def test_a_run_that_is_stopped_while_it_writes_has_counted_what_it_read(
    name: PipelineName, store: ChromaStore
) -> None:
    """The prompt is nearly all that such a run costs."""
    growing = TraceFold()
    async with aclosing(made(name, store).run(Request(question=QUESTION, collection="documents"))) as stream:
        async for event in stream:
            growing.apply(event)
            if isinstance(event, AnswerToken | HopToken):
                break
    usage = growing.trace.usage
    read = usage.drafter if WRITERS[name] == "drafter" else usage.verifier
    assert read.prompt_tokens > 0
    assert usage.drafter.prompt_tokens + usage.verifier.prompt_tokens == read.prompt_tokens


async def test_the_question_is_kept_as_it_was_asked_of_the_models(
    name: PipelineName, store: ChromaStore
) -> None:
    """A line break from a terminal and none from the page must not make two questions of one."""
    trace = fold(await events_of(made(name, store), f"  How many watt-hours\n{QUESTION[20:]} "))
    assert trace.question == QUESTION


async def test_a_broken_model_is_one_sentence(name: PipelineName, store: ChromaStore) -> None:
    trace = fold(await events_of(made(name, store, broken), QUESTION))
    assert trace.status == "failed"
    assert trace.error is not None
    assert trace.error.type == "model"
    assert "the model ran out of memory" in trace.error.message
    assert all(span.end_ms is not None for span in trace.spans)


@pytest.mark.parametrize(
    ("question", "collection", "sentence"),
    [
        ("   ", "documents", "The question is empty"),
        ("x" * 20_000, "documents", "20,000 characters"),
        (QUESTION, "nothing", "“nothing” has no documents yet"),
        (QUESTION, "elsewhere", "elsewhere"),
    ],
)
async def test_what_cannot_be_answered_is_one_sentence(
    name: PipelineName, store: ChromaStore, question: str, collection: str, sentence: str
) -> None:
    trace = fold(await events_of(made(name, store), question, collection))
    assert trace.status == "failed"
    assert trace.error is not None
    assert sentence in trace.error.message
    assert trace.answer is None


async def test_closing_a_run_closes_its_model_and_gives_its_place_back(
    name: PipelineName, store: ChromaStore
) -> None:
    model, turnstile = scripted(), Turnstile(1)
    pipeline = PIPELINES[name](tools(store, model, turnstile=turnstile))
    async with aclosing(pipeline.run(Request(question=QUESTION, collection="documents"))) as stream:
        async for event in stream:
            if isinstance(event, AnswerToken | DraftToken | HopToken):
                assert turnstile.active == 1
                break
    assert model.closed == 1
    assert turnstile.active == 0


@pytest.mark.parametrize("script", [write, broken], ids=["done", "failed"])
async def test_a_run_that_has_ended_holds_no_place(
    name: PipelineName, store: ChromaStore, script: Callable[[str], Written]
) -> None:
    turnstile = Turnstile(1)
    pipeline = PIPELINES[name](tools(store, scripted(script), turnstile=turnstile))
    trace = fold(await events_of(pipeline, QUESTION))
    assert turnstile.active == 0
    assert "queue" not in {span.name for span in trace.spans}, "it never had to wait"


async def test_the_second_run_waits_in_line_and_says_so(name: PipelineName, store: ChromaStore) -> None:
    turnstile = Turnstile(1)
    shared = tools(store, scripted(), turnstile=turnstile)
    request = Request(question=QUESTION, collection="documents")
    async with aclosing(PIPELINES["speculative"](shared).run(request)) as first:
        await _until(first, lambda: turnstile.active == 1)
        second = TraceFold()
        async with aclosing(PIPELINES[name](shared).run(request)) as stream:
            while (trace := second.apply(await anext(stream))).ahead == 0:
                assert not trace.passages, "it began before its turn"
            assert trace.ahead == 1
            assert [span.name for span in trace.spans if span.end_ms is None] == ["run", "queue"]
            await first.aclose()
            async for event in stream:
                trace = second.apply(event)
    assert (trace.status, trace.ahead) == ("done", 0)
    queue = next(span for span in trace.spans if span.name == "queue")
    retrieve = next(span for span in trace.spans if span.name == "retrieve")
    assert queue.end_ms is not None
    assert queue.end_ms <= retrieve.start_ms


async def test_a_run_that_gives_up_waiting_leaves_the_line(name: PipelineName, store: ChromaStore) -> None:
    """A visitor who closes the page must not keep those behind waiting."""
    turnstile = Turnstile(1)
    shared = tools(store, scripted(), turnstile=turnstile)
    request = Request(question=QUESTION, collection="documents")
    async with aclosing(PIPELINES["standard"](shared).run(request)) as first:
        await _until(first, lambda: turnstile.active == 1)
        async with aclosing(PIPELINES[name](shared).run(request)) as second:
            await _until(second, lambda: turnstile.waiting == 1)
        assert (turnstile.active, turnstile.waiting) == (1, 0)
    assert turnstile.active == 0


async def test_the_answer_is_given_once(name: PipelineName, store: ChromaStore) -> None:
    events, trace = await finished(name, store)
    assert [event.answer for event in events if isinstance(event, Answered)] == [trace.answer]


async def _until(stream: AsyncGenerator[Event], there: Callable[[], bool]) -> None:
    while not there():
        await anext(stream)
