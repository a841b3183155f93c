"""Forks: what is taken over is not made again, and what is done anew comes out as it would have."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, get_args

import pytest

from specrag.build import PIPELINES
from specrag.errors import ModelError, TraceError, UsageError
from specrag.events import DraftStarted
from specrag.forking import fork, given_of, settings_of
from specrag.models.base import ScoreRequest, TokenScores
from specrag.models.scripted import ScriptedModel
from specrag.overrides import for_one_run
from specrag.pipelines.base import Pipeline, Request
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.codec import from_json, to_json
from specrag.tracing.trace import Trace, fold
from specrag.types import Draft, PipelineName, StepName
from tests.test_speculative import QUESTION, extract, judge
from tests.toys import WordEmbedder, events_of, filled_store, tools

STEPS: tuple[StepName, ...] = get_args(StepName)
SPANS: dict[StepName, set[str]] = {
    "retrieve": set(),
    "partition": {"retrieve"},
    "draft": {"retrieve", "partition"},
    "verify": {"retrieve", "partition", "draft"},
    "decide": {"retrieve", "partition", "draft", "verify"},
}


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@pytest.fixture(scope="module")
def empty() -> Iterator[ChromaStore]:
    """Another machine: nothing of the parent's collection is here."""
    made = ChromaStore(None)
    yield made
    made.close()


def made(store: ChromaStore, name: PipelineName = "speculative", **settings: Any) -> Pipeline:
    return PIPELINES[name](tools(store, ScriptedModel(extract, judge=judge), **settings))


async def run(pipeline: Pipeline, request: Request) -> Trace:
    async with aclosing(pipeline.run(request)) as events:
        return fold([event async for event in events])


@pytest.fixture(scope="module")
def parent(store: ChromaStore) -> Trace:
    return fold(asyncio.run(events_of(made(store), QUESTION, run_id="parent")))


def judged(trace: Trace) -> list[Draft]:
    """The drafts without the moments of their tokens."""
    return [
        replace(draft, tokens=tuple(replace(token, at_ms=None) for token in draft.tokens))
        for draft in trace.drafts
    ]


@pytest.mark.parametrize("step", STEPS)
async def test_a_fork_under_the_same_settings_comes_to_the_same_end(
    store: ChromaStore, parent: Trace, step: StepName
) -> None:
    child = await run(made(store), fork(parent, step))
    assert child.status == "done"
    assert child.parent is not None
    assert (child.parent.run_id, child.parent.step) == ("parent", step)
    assert child.passages == parent.passages
    assert child.subsets == parent.subsets
    assert child.spots == parent.spots
    assert judged(child) == judged(parent)
    assert child.decision == parent.decision
    assert child.answer == parent.answer
    assert {span.name for span in child.spans if span.attributes.get("given")} == SPANS[step]


@pytest.mark.parametrize("step", STEPS[1:])
async def test_a_fork_of_a_trace_from_a_file_needs_nothing_of_the_store(
    empty: ChromaStore, parent: Trace, step: StepName
) -> None:
    child = await run(made(empty), fork(from_json(to_json(parent)), step))
    assert child.status == "done"
    assert child.subsets == parent.subsets, "vectors made of the texts cluster like those of the store"
    assert judged(child) == judged(parent)
    assert child.answer == parent.answer


@pytest.mark.parametrize("step", ["verify", "decide"])
async def test_drafts_that_are_taken_over_cost_nothing(
    store: ChromaStore, parent: Trace, step: StepName
) -> None:
    child = await run(made(store), fork(parent, step))
    assert child.usage.drafter.prompt_tokens == child.usage.drafter.completion_tokens == 0
    assert child.usage.verifier.forward_passes == (1 if step == "verify" else 0)
    assert all(token.at_ms is None for draft in child.drafts for token in draft.tokens)


class Unreadable(ScriptedModel):
    """A verifier that cannot read."""

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        raise ModelError("The verifier is out of memory.")


@pytest.mark.parametrize("eager", [False, True])
async def test_what_was_said_of_the_verification_is_taken_over(store: ChromaStore, *, eager: bool) -> None:
    """Without it nobody would know why the scores of the fork lack the verifier's."""
    toys = tools(store, ScriptedModel(extract), Unreadable(extract), eager=eager)
    parent = fold(await events_of(PIPELINES["speculative"](toys), QUESTION))
    assert parent.decision is not None
    assert "The verifier is out of memory." in parent.decision.reason
    child = await run(made(store), fork(parent, "decide"))
    assert child.decision is not None
    assert "The verifier is out of memory." in child.decision.reason
    assert child.drafts[0].scores.self_reflection is None


async def test_a_fork_follows_its_own_settings_from_its_step_on(store: ChromaStore, parent: Trace) -> None:
    """From the partition other subsets are formed; from the draft on they are those of the parent."""
    settings: dict[str, Any] = {"drafts": 2, "passages_per_draft": 3}
    divided = await run(made(store, **settings), fork(parent, "partition"))
    assert [len(subset.passage_ids) for subset in divided.subsets] == [3, 3]
    drafted = await run(made(store, **settings), fork(parent, "draft"))
    assert drafted.subsets == parent.subsets


async def test_eager_and_grounded_forks_verify_given_drafts(store: ChromaStore, parent: Trace) -> None:
    child = await run(made(store, eager=True, grounded=True), fork(parent, "verify"))
    assert all(draft.scores.grounded is not None for draft in child.drafts if draft.usable)
    assert child.usage.verifier.forward_passes == sum(draft.usable for draft in parent.drafts)


@pytest.mark.parametrize("name", sorted(PIPELINES))
async def test_every_pipeline_answers_from_given_passages(
    store: ChromaStore, parent: Trace, name: PipelineName
) -> None:
    """Compare retrieves once: two passages of the parent are all that the others may read."""
    given = replace(given_of(parent), passages=parent.passages[:2], note="Only two.")
    request = Request(question=QUESTION, collection="documents", given=given)
    child = await run(made(store, name, hops=1), request)
    assert child.status == "done"
    assert child.passages == parent.passages[:2]
    assert child.retrieval_note == "Only two."
    (retrieve,) = (span for span in child.spans if span.name == "retrieve")
    assert retrieve.attributes["given"] is True
    assert not [span for span in child.spans if span.name in ("embed", "search", "fuse")]


async def test_multihop_shares_what_its_first_hop_found(store: ChromaStore) -> None:
    """Later hops look for something else; another pipeline that took their passages over would have an edge."""

    def bridge(text: str) -> dict[Any, str]:
        return {"note": " a note", "query": " Who founded the firm?", "answer": " Ada"}

    hops = PIPELINES["multihop"](tools(store, ScriptedModel(bridge), retrieve=2, hops=2))
    parent = fold(await events_of(hops, QUESTION))
    assert len(parent.passages) > 2
    assert given_of(parent).passages == parent.passages[:2]


@pytest.mark.parametrize("name", ["", "../traces", "a\x00b", "x" * 5000])
async def test_a_collection_of_any_name_does_no_harm(store: ChromaStore, parent: Trace, name: str) -> None:
    """A trace from outside names whatever it likes, and a page leaves out what its visitor may not ask."""
    child = await run(made(store), replace(fork(parent, "partition"), collection=name))
    assert child.status == "done"
    assert child.subsets == parent.subsets


def test_another_question_is_asked_from_the_start_only(parent: Trace) -> None:
    assert fork(parent, "retrieve", question="How heavy is it?").question == "How heavy is it?"
    with pytest.raises(UsageError, match="Another question needs other passages"):
        fork(parent, "draft", question="How heavy is it?")
    with pytest.raises(UsageError, match="“think” is not a step"):
        fork(parent, "think")  # type: ignore[arg-type]  # from a web request


def cut(trace: Trace, **changes: Any) -> Trace:
    return replace(trace, **changes)


@pytest.mark.parametrize(
    ("changes", "step", "sentence"),
    [
        ({"config": {}}, "retrieve", "does not say which collection"),
        ({"config": {"collection": 3}}, "retrieve", "does not say which collection"),
        ({"passages": ()}, "partition", "has found no passages"),
        ({"subsets": ()}, "draft", "has not divided its passages; run it again from “partition”"),
        ({"pipeline": "standard", "subsets": ()}, "draft", "is no speculative one"),
        ({"drafts": ()}, "verify", "ended before its drafts"),
        ({"decision": None}, "decide", "ended before its decision; run it again from “verify”"),
    ],
)
def test_what_is_not_there_cannot_be_taken_over(
    parent: Trace, changes: dict[str, Any], step: StepName, sentence: str
) -> None:
    with pytest.raises(TraceError, match=sentence):
        fork(cut(parent, **changes), step)


def test_a_hostile_trace_is_refused_in_one_sentence(parent: Trace) -> None:
    """A file from outside may say anything; none of this may reach a model or end in a KeyError."""
    first = parent.subsets[0]
    good = parent.drafts[0]
    scored = replace(good, scores=replace(good.scores, self_reflection=float("nan")))
    for changes, step, sentence in [
        ({"passages": parent.passages[:1] * 2}, "partition", "each once"),
        ({"subsets": (replace(first, passage_ids=("elsewhere",)),)}, "draft", "passages that are not in it"),
        ({"subsets": (replace(first, passage_ids=()),)}, "draft", "passages that are not in it"),
        ({"subsets": (first, first)}, "draft", "each once"),
        ({"drafts": parent.drafts[::-1]}, "verify", "do not belong to its subsets"),
        ({"drafts": (scored, *parent.drafts[1:])}, "decide", r"not in \(0, 1\]"),
    ]:
        with pytest.raises(TraceError, match=sentence):
            fork(replace(parent, **changes), step)  # type: ignore[arg-type]  # a table


def test_the_settings_of_a_run_can_be_had_again(parent: Trace) -> None:
    """Names that are not settings, or belong to what is loaded, do not stop a fork of a foreign trace."""
    foreign = replace(
        parent, config={**parent.config, "partition": "by_year", "drafts": 3, "chroma_url": "x"}
    )
    settings = settings_of(foreign)
    again = for_one_run(tools_settings(), settings)
    assert again.drafts == 3
    assert "partition" not in settings
    assert "chroma_url" not in settings
    with pytest.raises(UsageError, match="SPECRAG_DRAFTS"):
        for_one_run(tools_settings(), settings_of(replace(parent, config={"drafts": 1000})))


def tools_settings() -> Any:
    store = filled_store()
    settings = tools(store, ScriptedModel(extract)).settings
    store.close()
    return settings


async def test_a_draft_instruction_of_ones_own_reaches_drafter_and_grounding(
    store: ChromaStore, parent: Trace
) -> None:
    seen: list[str] = []

    def watch(text: str) -> float:
        seen.append(text)
        return 0.5

    model = ScriptedModel(extract, judge=watch)
    told = "Answer in one number."
    pipeline = PIPELINES["speculative"](tools(store, model, draft_instruction=told, grounded=True))
    async with aclosing(pipeline.run(fork(parent, "draft"))) as events:
        log = [event async for event in events]
    prompts = [event.prompt for event in log if isinstance(event, DraftStarted)]
    assert prompts
    assert all(prompt.startswith(told) for prompt in prompts)
    assert any(text.startswith(told) for text in seen), "groundedness is read behind the drafter's own prompt"
    assert fold(log).config["draft_instruction"] == told


async def test_vectors_are_those_of_the_store_only_for_the_same_text(store: ChromaStore) -> None:
    """A trace from outside may give a passage's id to another text, which must not borrow its place."""
    retriever = tools(store, ScriptedModel(extract)).retriever
    found = retriever.retrieve(QUESTION, "documents", 3)
    changed = replace(found.passages[0], title="", text="soup soup soup")
    again = retriever.again((changed, *found.passages[1:]), QUESTION, "documents")
    assert again.question_vector.tolist() == found.question_vector.tolist()
    assert again.vectors[1:].tolist() == found.vectors[1:].tolist()
    assert again.vectors[0].tolist() == pytest.approx(WordEmbedder().embed(["soup soup soup"])[0].tolist())
