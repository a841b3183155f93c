"""A whole run with scripted models: what a reader of the trace may rely on."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any, get_args

import pytest

from specrag.config import ScoreWeights
from specrag.events import AnswerToken, Event, RunFinished, RunStarted
from specrag.models.scripted import ScriptedModel, Written
from specrag.partition import Partition
from specrag.pipelines.base import Request
from specrag.pipelines.speculative import SpeculativePipeline
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.codec import events_from_json, events_to_json, from_json, to_json
from specrag.tracing.trace import Trace, fold
from specrag.types import PartitionName, Passage, Subset
from tests.toys import events_of, filled_store, pipeline, tools

QUESTION = "How many watt-hours does the battery hold?"


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    filled.ensure_collection("nothing", "words-64")
    yield filled
    filled.close()


def extract(text: str) -> Written:
    """A drafter that answers from the passages if they hold the answer, and abstains otherwise."""
    if "640 watt-hours" in text:
        return {"rationale": " The battery holds 640 watt-hours.", "answer": " 640 watt-hours"}
    return {"rationale": " Nothing is said of it.", "answer": " Not in the passages."}


def judge(text: str) -> float:
    return 0.9 if "640 watt-hours" in text else 0.2


def broken(_: str) -> Written:
    raise RuntimeError("the drafter ran out of memory")


async def run(
    made: SpeculativePipeline, question: str = QUESTION, collection: str = "documents"
) -> list[Event]:
    return await events_of(made, question, collection)


async def trace_of(
    made: SpeculativePipeline, question: str = QUESTION, collection: str = "documents"
) -> Trace:
    return fold(await run(made, question, collection))


async def test_a_run_answers_from_the_draft_that_has_the_evidence(store: ChromaStore) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(extract, judge=judge)))
    assert trace.status == "done"
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    assert trace.decision is not None
    assert trace.decision.kind == "selected"
    cited = [trace.passage(passage_id) for passage_id in trace.answer.citations]
    assert [passage.title for passage in cited if passage] == ["Battery"]


async def test_every_subset_gets_a_draft_and_every_usable_draft_all_scores(store: ChromaStore) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(extract, judge=judge)))
    assert len(trace.subsets) == len(trace.drafts) >= 2
    assert [draft.subset_id for draft in trace.drafts] == [subset.id for subset in trace.subsets]
    for draft in trace.drafts:
        scores = draft.scores
        known = (
            scores.draft,
            scores.self_containment,
            scores.self_reflection,
            scores.relevance,
            scores.combined,
        )
        assert all(value is not None and 0 < value <= 1 for value in known)
        assert draft.log_sums.answer_tokens + draft.log_sums.rationale_tokens == len(draft.tokens)
        assert "".join(t.text for t in draft.tokens if t.part == "answer").strip() == draft.answer
        assert "".join(t.text for t in draft.verifier_tokens if t.part == "answer").strip() == draft.answer


async def test_spans_nest_and_cover_the_run(store: ChromaStore) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(extract, judge=judge)))
    spans = {span.id: span for span in trace.spans}
    root = next(span for span in trace.spans if span.parent_id is None)
    for span in trace.spans:
        assert span.end_ms is not None
        parent = spans.get(span.parent_id or "")
        if parent is not None and parent.end_ms is not None:
            assert parent.start_ms <= span.start_ms <= span.end_ms <= parent.end_ms
    assert {"retrieve", "partition", "draft", "verify", "decide"} <= {span.name for span in trace.spans}
    assert root.end_ms is not None
    assert root.end_ms - root.start_ms >= 0.95 * trace.elapsed_ms
    steps = sorted(
        (span for span in trace.spans if span.parent_id == root.id), key=lambda span: span.start_ms
    )
    # on the counting clock one look is a millisecond: a step begins at the very next look after the last one
    gaps = [later.start_ms - (earlier.end_ms or 0) for earlier, later in pairwise(steps)]
    assert gaps == pytest.approx([1.0] * (len(steps) - 1))


async def test_times_never_run_backwards_and_the_order_of_the_story_is_fixed(store: ChromaStore) -> None:
    events = await run(pipeline(store, ScriptedModel(extract)))
    times = [event.at_ms for event in events]
    assert times == sorted(times)
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    names = [type(event).__name__ for event in events]
    story = [
        "PassagesRetrieved",
        "SubsetsFormed",
        "DraftStarted",
        "DraftFinished",
        "DraftsVerified",
        "Decided",
    ]
    places = [names.index(name) for name in story]
    assert places == sorted(places)


async def test_usage_is_counted_by_role(store: ChromaStore) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(extract), ScriptedModel(extract)))
    assert trace.usage.drafter.prompt_tokens == sum(draft.prompt_tokens for draft in trace.drafts)
    assert trace.usage.drafter.completion_tokens == sum(len(draft.tokens) for draft in trace.drafts)
    assert trace.usage.drafter.forward_passes == 0
    assert trace.usage.verifier.forward_passes == 1
    assert trace.usage.verifier.completion_tokens == 0
    assert trace.usage.verifier.prompt_tokens > 0


async def test_all_abstain(store: ChromaStore) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(lambda _: {"answer": " Not in the passages."})))
    assert trace.decision is not None
    assert trace.decision.kind == "abstained"
    assert trace.status == "done"


async def test_one_failed_draft_never_sinks_a_run(store: ChromaStore) -> None:
    def fragile(text: str) -> Written:
        if "onions" in text:
            raise RuntimeError("the drafter ran out of memory")
        return extract(text)

    trace = await trace_of(pipeline(store, ScriptedModel(fragile)))
    failed = [draft for draft in trace.drafts if draft.finish_reason == "error"]
    assert failed
    assert all(draft.error == "the drafter ran out of memory" for draft in failed)
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"


async def test_when_every_draft_fails_the_run_fails_with_the_reason(store: ChromaStore) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(broken)))
    assert trace.status == "failed"
    assert trace.error is not None
    assert "ran out of memory" in trace.error.message
    assert all(span.end_ms is not None for span in trace.spans)


async def test_below_the_threshold_the_verifier_answers_from_all_passages(store: ChromaStore) -> None:
    seen: list[str] = []

    def verifier(text: str) -> Written:
        seen.append(text)
        return {"answer": " It holds 640 watt-hours."}

    made = pipeline(store, ScriptedModel(extract), ScriptedModel(verifier), threshold=0.99)
    trace = await trace_of(made)
    assert trace.decision is not None
    assert trace.decision.kind == "fallback"
    assert trace.answer is not None
    assert trace.answer.text == "It holds 640 watt-hours."
    assert trace.usage.verifier.completion_tokens > 0
    assert all(passage.text in seen[0] for passage in trace.passages)
    assert "fallback" in {span.name for span in trace.spans}


async def test_a_question_that_is_too_long_is_not_kept_whole(store: ChromaStore) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(extract)), "x" * 20_000)
    assert len(trace.question) == 2000


@pytest.mark.parametrize("found", [1, 2, 3])
async def test_so_few_passages_go_to_standard_rag_at_once(store: ChromaStore, found: int) -> None:
    """Two passages are nothing to divide: the drafts would cost more than they can bring (seed 003)."""
    drafter, verifier = (
        ScriptedModel(broken),
        ScriptedModel(lambda _: {"answer": " It holds 640 watt-hours."}),
    )
    trace = await trace_of(pipeline(store, drafter, verifier, retrieve=found))
    assert trace.pipeline == "speculative"
    assert trace.decision is not None
    assert trace.decision.kind == "direct"
    assert ("1 passage was found" if found == 1 else f"{found} passages were found") in trace.decision.reason
    assert "this is standard RAG" in trace.decision.reason
    assert trace.answer is not None
    assert trace.answer.text == "It holds 640 watt-hours."
    assert not trace.subsets
    assert not {"partition", "draft", "verify", "evidence"} & {span.name for span in trace.spans}


async def test_how_few_is_a_setting(store: ChromaStore) -> None:
    drafted = await trace_of(pipeline(store, ScriptedModel(extract), retrieve=2, direct_passages=0))
    assert drafted.drafts
    direct = await trace_of(pipeline(store, ScriptedModel(extract), retrieve=6, direct_passages=6))
    assert not direct.drafts


@pytest.mark.parametrize("strategy", get_args(PartitionName))
async def test_every_partition_runs_to_an_answer(store: ChromaStore, strategy: PartitionName) -> None:
    trace = await trace_of(pipeline(store, ScriptedModel(extract, judge=judge), partition=strategy))
    assert trace.config["partition"] == strategy
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    if strategy == "contiguous":
        rows = [passage.id for passage in trace.passages]
        assert [subset.passage_ids for subset in trace.subsets] == [tuple(rows[i : i + 2]) for i in (0, 2, 4)]


async def test_a_passage_in_every_subset_is_named(store: ChromaStore) -> None:
    traces = [
        await trace_of(pipeline(store, ScriptedModel(extract), passages_per_draft=k, seed=seed))
        for k in (2, 3, 4)
        for seed in (0, 1)
    ]
    named = [trace for trace in traces if trace.singletons]
    assert named, "none of these partitions has a cluster of one"
    for trace in named:
        assert all(set(trace.singletons) <= set(subset.passage_ids) for subset in trace.subsets)


def pairs(passages: Sequence[Passage], vectors: Any, /, *, m: int, k: int, seed: int) -> Partition:
    """A partition of one's own: the best passage beside each of the others."""
    subsets = tuple(
        Subset(id=f"with-{number}", perspective="a pair", passage_ids=(passages[0].id, passages[number].id))
        for number in range(1, m + 1)
    )
    return Partition(subsets=subsets, note="Made by hand.")


async def test_a_partition_of_ones_own_takes_the_place_of_the_setting(store: ChromaStore) -> None:
    made = SpeculativePipeline(tools(store, ScriptedModel(extract, judge=judge), partitioner=pairs, drafts=2))
    trace = await trace_of(made)
    assert [subset.id for subset in trace.subsets] == ["with-1", "with-2"]
    assert trace.partition_note == "Made by hand."
    assert trace.config["partition"] == "pairs"
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"


async def test_a_partition_that_names_unknown_passages_is_one_sentence(store: ChromaStore) -> None:
    def wrong(passages: Sequence[Passage], vectors: Any, /, *, m: int, k: int, seed: int) -> Partition:
        return Partition(subsets=(Subset(id="s1", perspective="", passage_ids=("elsewhere",)),))

    trace = await trace_of(SpeculativePipeline(tools(store, ScriptedModel(extract), partitioner=wrong)))
    assert trace.error is not None
    assert trace.error.type == "usage"
    assert trace.error.message.startswith("The partition “wrong” cannot be used: ")
    assert "s1" in trace.error.message


async def test_a_partition_that_fails_ends_the_run_with_its_name(store: ChromaStore) -> None:
    """Its error used to leave the stream as an exception, and the run was lost."""

    def hasty(passages: Sequence[Passage], vectors: Any, /, *, m: int, k: int, seed: int) -> Partition:
        raise ZeroDivisionError("division by zero")

    trace = await trace_of(SpeculativePipeline(tools(store, ScriptedModel(extract), partitioner=hasty)))
    assert trace.error is not None
    assert trace.error.type == "usage"
    assert trace.error.message == "The partition “hasty” failed: ZeroDivisionError: division by zero."
    assert all(span.end_ms is not None for span in trace.spans)


async def test_a_partition_of_ones_own_does_not_hold_up_the_loop(store: ChromaStore) -> None:
    """Nobody knows how long it takes, and every other run and page waits for the loop."""
    others_went_on = threading.Event()

    def slow(passages: Sequence[Passage], vectors: Any, /, *, m: int, k: int, seed: int) -> Partition:
        assert others_went_on.wait(20)
        return pairs(passages, vectors, m=m, k=k, seed=seed)

    made = SpeculativePipeline(tools(store, ScriptedModel(extract), partitioner=slow, drafts=2))
    running = asyncio.create_task(trace_of(made))
    asyncio.get_running_loop().call_later(0.05, others_went_on.set)
    assert (await running).status == "done"


async def test_the_best_draft_stands_when_the_fallback_cannot_be_written(store: ChromaStore) -> None:
    """A weak answer, said to be weak, is worth more than an error."""
    verifier = ScriptedModel(broken, judge=judge)
    trace = await trace_of(pipeline(store, ScriptedModel(extract), verifier, threshold=0.99))
    assert trace.status == "done"
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    assert trace.decision is not None
    assert trace.decision.kind == "selected"
    assert trace.decision.draft_index is not None
    assert trace.drafts[trace.decision.draft_index].answer == "640 watt-hours"
    assert "below the threshold of 0.99, so the verifier answers" in trace.decision.reason
    assert "It could not (the drafter ran out of memory), so the best draft stands. Draft" in (
        trace.decision.reason
    )
    assert all(span.end_ms is not None for span in trace.spans)


async def test_a_fallback_that_fails_ends_a_run_without_any_answer(store: ChromaStore) -> None:
    made = pipeline(store, ScriptedModel(lambda _: {"answer": ""}), ScriptedModel(broken))
    trace = await trace_of(made)
    assert trace.status == "failed"
    assert trace.error is not None
    assert "ran out of memory" in trace.error.message


async def test_groundedness_is_scored_on_request_in_the_same_pass(store: ChromaStore) -> None:
    without = await trace_of(pipeline(store, ScriptedModel(extract)))
    assert all(draft.scores.grounded is None for draft in without.drafts)
    asked = await trace_of(pipeline(store, ScriptedModel(extract), grounded=True))
    weighted = await trace_of(pipeline(store, ScriptedModel(extract), weights=ScoreWeights(grounded=1)))
    for trace in (asked, weighted):
        assert all(0 < (draft.scores.grounded or 0) <= 1 for draft in trace.drafts)
        assert trace.usage.verifier.forward_passes == 1
        assert trace.usage.verifier.prompt_tokens > without.usage.verifier.prompt_tokens


async def test_the_verifier_may_write_the_answer_from_the_drafts(store: ChromaStore) -> None:
    verifier = ScriptedModel(lambda _: {"answer": " it holds 640 watt-hours [1]."}, judge=judge)
    made = pipeline(store, ScriptedModel(extract), verifier, decision="synthesise")
    trace = await trace_of(made)
    assert trace.decision is not None
    assert trace.decision.kind == "synthesised"
    assert trace.answer is not None
    assert trace.answer.text == "It holds 640 watt-hours."
    assert trace.answer_tokens[0].text == " it"
    assert trace.usage.verifier.completion_tokens > 0
    assert {"decide", "synthesise"} <= {span.name for span in trace.spans if span.end_ms is not None}


async def test_nothing_is_synthesised_when_all_abstain(store: ChromaStore) -> None:
    made = pipeline(
        store, ScriptedModel(lambda _: {"answer": " Not in the passages."}), decision="synthesise"
    )
    trace = await trace_of(made)
    assert trace.decision is not None
    assert trace.decision.kind == "abstained"
    assert "synthesise" not in {span.name for span in trace.spans}


async def test_closing_a_synthesis_closes_the_verifier(store: ChromaStore) -> None:
    verifier = ScriptedModel(extract, judge=judge)
    made = pipeline(store, ScriptedModel(extract), verifier, decision="synthesise")
    async with aclosing(made.run(Request(question=QUESTION, collection="documents"))) as stream:
        async for event in stream:
            if isinstance(event, AnswerToken):
                break
    assert verifier.closed == 1


async def test_a_lone_surrogate_in_a_question_is_read_as_text(store: ChromaStore) -> None:
    """A byte of another encoding on the command line arrives as one, and nothing can store it."""
    trace = await trace_of(pipeline(store, ScriptedModel(extract)), f"{QUESTION} caf\udce9")
    assert trace.status == "done"
    assert to_json(trace).encode("utf-8")


async def test_closing_a_run_closes_the_drafter(store: ChromaStore) -> None:
    drafter = ScriptedModel(extract)
    async with aclosing(
        pipeline(store, drafter).run(Request(question=QUESTION, collection="documents"))
    ) as stream:
        async for event in stream:
            if type(event).__name__ == "DraftToken":
                break
    assert drafter.closed == 1


async def test_trace_and_events_survive_json(store: ChromaStore) -> None:
    events = await run(pipeline(store, ScriptedModel(extract, judge=judge)))
    assert {type(event) for event in events} <= set(get_args(Event))
    assert events_from_json(events_to_json(events)) == events
    trace = fold(events)
    assert from_json(to_json(trace)) == trace
    assert fold(events_from_json(events_to_json(events))) == trace
