"""Speculative RAG: retrieve, partition, draft, verify, decide (Wang et al. 2024, arXiv 2407.08223).

Read `_steps` top to bottom: it is the paper's algorithm, and every line of it shows up as a span.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from specrag.config import Settings
from specrag.decide import decide, with_verdicts
from specrag.direct import write_answer
from specrag.draft import write_drafts
from specrag.errors import UsageError
from specrag.events import (
    Answered,
    Decided,
    DraftFinished,
    DraftsVerified,
    Event,
    PassagesRetrieved,
    SpanStarted,
    SubsetsFormed,
    UsageCounted,
)
from specrag.models.base import LanguageModel
from specrag.partition import Partition, condition_on_question, multi_perspective
from specrag.pipelines.base import Request, as_run
from specrag.retrieval.evidence import EvidenceScorer
from specrag.retrieval.retriever import Retrieved, Retriever
from specrag.timeline import Clock, Timeline
from specrag.types import Draft, Passage, PipelineName, Subset, Verdict
from specrag.verify import verify_drafts


class SpeculativePipeline:
    """m drafts from m subsets, one verifying pass, one decision."""

    name: PipelineName = "speculative"

    def __init__(
        self,
        *,
        retriever: Retriever,
        evidence: EvidenceScorer,
        drafter: LanguageModel,
        verifier: LanguageModel,
        settings: Settings,
        environment: Mapping[str, Any],
        clock: Clock = time.perf_counter,
    ) -> None:
        self._retriever = retriever
        self._evidence = evidence
        self._drafter = drafter
        self._verifier = verifier
        self._settings = settings
        self._environment = environment
        self._clock = clock

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """See `Pipeline.run`."""
        return as_run(
            lambda timeline, question: self._steps(timeline, question, request.collection),
            request=request,
            name=self.name,
            clock=self._clock,
            question_limit=self._settings.max_question_characters,
            config=self._settings.public(),
            environment=self._environment,
        )

    async def _steps(  # noqa: PLR0915 - the algorithm in one place, step by step
        self, t: Timeline, question: str, collection: str
    ) -> AsyncGenerator[Event]:
        root = t.start("run")
        yield root

        span = t.start("retrieve", root)
        yield span
        step = t.start("embed", span)
        yield step
        vector = await asyncio.to_thread(self._retriever.embed, question, collection)
        yield t.end(step)
        step = t.start("search", span)
        yield step
        found = await asyncio.to_thread(self._retriever.search, vector, collection, self._settings.retrieve)
        if not found.passages:
            raise UsageError(f"The collection “{collection}” has no documents yet; add one and ask again.")
        yield PassagesRetrieved(at_ms=t.now(), passages=found.passages)
        yield t.end(step)
        step = t.start("evidence", span)
        yield step
        relevance = await asyncio.to_thread(self._evidence.relevance, found)
        yield t.end(step)
        yield t.end(span, passages=len(found.passages))

        span = t.start("partition", root)
        yield span
        partition = self._partition(found)
        yield SubsetsFormed(at_ms=t.now(), subsets=partition.subsets, note=partition.note)
        yield t.end(span, subsets=len(partition.subsets))

        drafts: list[Draft] = []
        span = t.start("draft", root)
        yield span
        async with aclosing(self._write(t, question, partition.subsets, found.passages, span)) as writing:
            async for event in writing:
                if isinstance(event, DraftFinished):
                    drafts.append(event.draft)
                yield event
        yield t.end(span, drafts=len(drafts))
        drafts = _in_order(drafts, partition.subsets)

        span = t.start("verify", root)
        yield span
        verdicts, usage = await verify_drafts(self._verifier, question, drafts)
        verdicts = _with_relevance(verdicts, partition.subsets, relevance)
        yield DraftsVerified(at_ms=t.now(), verdicts=verdicts)
        yield UsageCounted(
            at_ms=t.now(),
            role="verifier",
            prompt_tokens=usage.prompt_tokens,
            forward_passes=usage.forward_passes,
        )
        yield t.end(span, drafts=len(verdicts))

        span = t.start("decide", root)
        yield span
        ruling = decide(
            with_verdicts(drafts, verdicts),
            weights=self._settings.weights,
            threshold=self._settings.threshold,
        )
        combined = tuple(
            replace(verdict, scores=draft.scores)
            for verdict in verdicts
            for draft in ruling.drafts
            if draft.subset_id == verdict.subset_id
        )
        yield DraftsVerified(at_ms=t.now(), verdicts=combined)
        yield Decided(at_ms=t.now(), decision=ruling.decision)
        yield t.end(span, kind=ruling.decision.kind)

        if ruling.answer is not None:
            yield Answered(at_ms=t.now(), answer=ruling.answer)
        else:
            async with aclosing(self._fall_back(t, question, found.passages, root)) as answering:
                async for event in answering:
                    yield event
        yield t.end(root)

    def _partition(self, found: Retrieved) -> Partition:
        settings = self._settings
        return multi_perspective(
            found.passages,
            condition_on_question(found.vectors, found.question_vector),
            m=settings.drafts,
            k=settings.passages_per_draft,
            seed=settings.seed,
        )

    def _write(
        self,
        t: Timeline,
        question: str,
        subsets: tuple[Subset, ...],
        passages: tuple[Passage, ...],
        parent: SpanStarted,
    ) -> AsyncGenerator[Event]:
        return write_drafts(
            self._drafter,
            question,
            subsets,
            passages,
            rationale_tokens=self._settings.rationale_tokens,
            answer_tokens=self._settings.answer_tokens,
            timeline=t,
            parent=parent,
        )

    async def _fall_back(
        self, t: Timeline, question: str, passages: tuple[Passage, ...], root: SpanStarted
    ) -> AsyncGenerator[Event]:
        span = t.start("fallback", root)
        yield span
        async with aclosing(
            write_answer(
                self._verifier,
                question,
                passages,
                role="verifier",
                max_tokens=self._settings.fallback_tokens,
                timeline=t,
            )
        ) as answering:
            async for event in answering:
                yield event
        yield t.end(span)


def _in_order(drafts: Sequence[Draft], subsets: Sequence[Subset]) -> list[Draft]:
    """Drafts finish in any order; their index is that of their subset."""
    place = {subset.id: number for number, subset in enumerate(subsets)}
    return sorted(drafts, key=lambda draft: place[draft.subset_id])


def _with_relevance(
    verdicts: Sequence[Verdict], subsets: Sequence[Subset], relevance: Mapping[str, float]
) -> tuple[Verdict, ...]:
    """Give every verdict the retriever's view: the best evidence sentence of its subset."""
    best = {subset.id: max(relevance[passage] for passage in subset.passage_ids) for subset in subsets}
    return tuple(
        replace(verdict, scores=replace(verdict.scores, relevance=best[verdict.subset_id]))
        for verdict in verdicts
    )
