"""Eager verification: each draft is read when it is finished, and nothing else changes."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from specrag.errors import ModelError
from specrag.events import DraftFinished, DraftsVerified, Event, SpanStarted
from specrag.models.base import Conversation, Line, Output, ScoreRequest, TokenScores
from specrag.models.scripted import ScriptedModel, Written
from specrag.pipelines.base import Request
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.trace import fold
from tests.toys import events_of, filled_store, pipeline

QUESTION = "How many watt-hours does the battery hold?"


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


def write(text: str) -> Written:
    """Drafts of different lengths, so that some are finished while others are still written."""
    if "640 watt-hours" in text:
        return {"rationale": " The battery holds 640 watt-hours.", "answer": " 640 watt-hours"}
    return {"rationale": f" {'Nothing is said of it. ' * (len(text) % 7 + 2)}", "answer": " About 5 hours"}


def judge(text: str) -> float:
    return 0.9 if "640 watt-hours" in text else 0.2


class Drafter(ScriptedModel):
    """Lets other tasks work between two tokens, as a server does."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for output in outputs:
                yield output
                await asyncio.sleep(0)


class Verifier(ScriptedModel):
    """Counts how many drafts each pass reads; the passes with these numbers fail."""

    def __init__(self, *, failing: Sequence[int] = ()) -> None:
        super().__init__(write, judge=judge)
        self.passes: list[int] = []
        self.cancelled = 0
        self._failing = failing
        self.patience_s = 0.0

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        self.passes.append(len(requests))
        number = len(self.passes)
        try:
            await asyncio.sleep(self.patience_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if number in self._failing:
            raise ModelError("The verifier was away.")
        return await super().score(requests)


async def run(store: ChromaStore, verifier: Verifier, *, eager: bool = True) -> list[Event]:
    return await events_of(pipeline(store, Drafter(write), verifier, eager=eager), QUESTION)


async def test_a_draft_is_read_while_others_are_written(store: ChromaStore) -> None:
    verifier = Verifier()
    events = await run(store, verifier)
    finished = [place for place, event in enumerate(events) if isinstance(event, DraftFinished)]
    verified = [place for place, event in enumerate(events) if isinstance(event, DraftsVerified)]
    assert verified[0] < finished[-1]
    assert verifier.passes == [1] * len(finished)


async def test_scores_decision_and_answer_are_those_of_one_pass(store: ChromaStore) -> None:
    verifier = Verifier()
    eager, usual = fold(await run(store, Verifier())), fold(await run(store, verifier, eager=False))
    assert verifier.passes == [len(usual.drafts)]
    assert eager.decision == usual.decision
    assert eager.answer == usual.answer
    assert [draft.scores for draft in eager.drafts] == [draft.scores for draft in usual.drafts]
    assert [draft.log_sums for draft in eager.drafts] == [draft.log_sums for draft in usual.drafts]


async def test_tokens_are_counted_alike_and_passes_as_they_were(store: ChromaStore) -> None:
    eager, usual = fold(await run(store, Verifier())), fold(await run(store, Verifier(), eager=False))
    assert eager.usage.verifier.prompt_tokens == usual.usage.verifier.prompt_tokens
    assert (eager.usage.verifier.forward_passes, usual.usage.verifier.forward_passes) == (
        len(eager.drafts),
        1,
    )


async def test_every_reading_has_its_span_within_the_run(store: ChromaStore) -> None:
    trace = fold(await run(store, Verifier()))
    root = next(span for span in trace.spans if span.parent_id is None)
    readings = [span for span in trace.spans if span.name == "verify"]
    assert {span.attributes["draft"] for span in readings} == {subset.id for subset in trace.subsets}
    assert all(span.parent_id == root.id and span.end_ms is not None for span in readings)


async def test_after_one_failed_reading_all_drafts_are_read_in_one_pass(store: ChromaStore) -> None:
    """A draft without the verifier's scores cannot be compared with those that have them."""
    verifier = Verifier(failing=[2])
    trace = fold(await run(store, verifier))
    assert verifier.passes[-1] == len(trace.drafts)
    assert all(draft.scores.self_reflection is not None for draft in trace.drafts)
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    assert "not verified" not in (trace.decision.reason if trace.decision else "")


async def test_a_verifier_that_stays_away_is_said_once(store: ChromaStore) -> None:
    trace = fold(await run(store, Verifier(failing=range(1, 20))))
    assert trace.status == "done"
    assert trace.decision is not None
    assert trace.decision.reason.count("The verifier was away.") == 1


async def test_leaving_the_run_stops_what_is_being_read(store: ChromaStore) -> None:
    verifier = Verifier()
    verifier.patience_s = 60
    made = pipeline(store, Drafter(write), verifier, eager=True)
    async with aclosing(made.run(Request(question=QUESTION, collection="documents"))) as events:
        async for event in events:
            if isinstance(event, SpanStarted) and event.name == "verify":
                await asyncio.sleep(0.01)
                assert verifier.passes
                break
    assert verifier.cancelled == len(verifier.passes)


class Partial(Verifier):
    """Knows less of a draft that it reads alone, the first time: a pool whose servers differ, a long draft."""

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        scores = await super().score(requests)
        if len(self.passes) == 1 and len(requests) == 1:
            return [replace(scores[0], spans={}, notes=("This server knows less.",))]
        return scores


async def test_drafts_of_which_not_the_same_is_known_are_read_again_together(store: ChromaStore) -> None:
    """A draft without its low component would win by what is not known of it."""
    verifier = Partial()
    eager, usual = fold(await run(store, verifier)), fold(await run(store, Verifier(), eager=False))
    assert verifier.passes[-1] == len(eager.drafts)
    assert [draft.scores for draft in eager.drafts] == [draft.scores for draft in usual.drafts]
    assert eager.decision == usual.decision  # whose reason says nothing of the server that knows less
