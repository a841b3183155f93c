"""Speculative RAG: retrieve, partition, draft, verify, decide (Wang et al. 2024, arXiv 2407.08223).

Read `_steps` top to bottom: it is the paper's algorithm, and every line of it shows up as a span.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias

from specrag.decide import Ruling, decide, with_verdicts
from specrag.draft import told_again, write_drafts
from specrag.events import (
    Answered,
    Decided,
    DraftFinished,
    DraftsVerified,
    Event,
    SpanStarted,
)
from specrag.pipelines.base import Given, Request, Tools, as_run
from specrag.pipelines.dividing import Dividing
from specrag.pipelines.fallback import fall_back
from specrag.pipelines.steps import Retrieval, answer_from_all, counted, taken_over
from specrag.pipelines.verifying import Verifying
from specrag.retrieval.evidence import Evidence
from specrag.synthesise import synthesise
from specrag.timeline import Timeline
from specrag.types import Decision, Draft, Passage, PipelineName, Subset, Verdict
from specrag.verify import Verification

Reading: TypeAlias = Mapping[str, tuple[Passage, ...]]
"""Subset id to its passages as they are read: whole, or cut to their nearest sentences."""


_NOTHING = Given(passages=())


class SpeculativePipeline:
    """m drafts from m subsets, one verifying pass, one decision."""

    name: PipelineName = "speculative"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._settings = tools.settings

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """See `Pipeline.run`."""
        return as_run(
            lambda t, question, root: self._steps(t, question, request, root),
            tools=self._tools,
            request=request,
            name=self.name,
        )

    async def _steps(
        self, t: Timeline, question: str, request: Request, root: SpanStarted
    ) -> AsyncGenerator[Event]:
        given = request.given or _NOTHING
        few = 0 if given.subsets else self._settings.direct_passages
        retrieval = Retrieval(self._tools, t, request, given=request.given)
        retrieving = retrieval.events(question, root, compare_above=None if given.verdicts else few)
        async with aclosing(retrieving):
            async for event in retrieving:
                yield event
        passages = retrieval.passages
        if len(passages) <= few:
            async with aclosing(self._directly(t, question, passages, root)) as answering:
                async for event in answering:
                    yield event
            return

        dividing = Dividing(self._tools, t, question, given)
        async with aclosing(dividing.events(retrieval.found, root)) as parting:
            async for event in parting:
                yield event
        subsets = dividing.subsets

        drafts: list[Draft] = []
        span = t.start("draft", root, **taken_over(given.drafts))
        yield span
        reading = self._reading(subsets, passages, retrieval.evidence)
        verifying = Verifying(
            self._tools.verifier,
            question,
            timeline=t,
            parent=root,
            evidence=retrieval.evidence,
            subsets=subsets,
            passages_of=reading if self._grounded else None,
            eager=self._settings.eager,
            instruction=self._settings.draft_instruction,
            given=Verification(verdicts=given.verdicts, note=given.verdict_note),
        )
        again = told_again(given.drafts, t) if given.drafts else None
        async with (
            aclosing(verifying),
            aclosing(again or self._write(t, question, subsets, reading, span)) as writing,
        ):
            async for event in writing:
                if isinstance(event, DraftFinished):
                    drafts.append(event.draft)
                yield event
                for other in verifying.meanwhile(event):
                    yield other
            yield t.end(span, drafts=len(drafts))
            async with aclosing(verifying.events(_in_order(drafts, subsets))) as reading_drafts:
                async for event in reading_drafts:
                    yield event

        span = t.start("decide", root)
        yield span
        judged = with_verdicts(verifying.drafts, verifying.verdicts)
        ruling = _noted(self._decide(judged, passages), verifying.verified)
        yield DraftsVerified(at_ms=t.now(), verdicts=_combined(verifying.verdicts, ruling))
        yield Decided(at_ms=t.now(), decision=ruling.decision)
        yield t.end(span, kind=ruling.decision.kind)

        async with aclosing(self._answer(t, question, ruling, passages, root)) as answering:
            async for event in answering:
                yield event

    @property
    def _grounded(self) -> bool:
        return self._settings.grounded or self._settings.weights.grounded > 0

    async def _directly(
        self, t: Timeline, question: str, passages: Sequence[Passage], root: SpanStarted
    ) -> AsyncGenerator[Event]:
        """Standard RAG within the run: so few passages leave nothing to divide."""
        found = "1 passage was found" if len(passages) == 1 else f"{len(passages)} passages were found"
        reason = (
            f"Only {found}, too few to divide among drafts, so this is standard RAG: the verifier answers "
            f"from {counted(len(passages))}."
        )
        decision = Decision(kind="direct", draft_index=None, reason=reason)
        yield Decided(at_ms=t.now(), decision=decision)
        answering = answer_from_all(self._tools, t, question, passages, root, decision=decision)
        async with aclosing(answering):
            async for event in answering:
                yield event

    def _reading(
        self, subsets: Sequence[Subset], passages: Sequence[Passage], evidence: Evidence | None
    ) -> Reading:
        by_id = {passage.id: passage for passage in passages}
        whole = {subset.id: tuple(by_id[id_] for id_ in subset.passage_ids) for subset in subsets}
        n = self._settings.focus_sentences
        if not n or evidence is None:
            return whole
        return {subset_id: evidence.focus(read, n) for subset_id, read in whole.items()}

    def _write(
        self, t: Timeline, question: str, subsets: Sequence[Subset], reading: Reading, parent: SpanStarted
    ) -> AsyncGenerator[Event]:
        return write_drafts(
            self._tools.drafter,
            question,
            subsets,
            reading,
            rationale_tokens=self._settings.rationale_tokens,
            answer_tokens=self._settings.answer_tokens,
            timeline=t,
            parent=parent,
            instruction=self._settings.draft_instruction,
        )

    def _decide(self, drafts: Sequence[Draft], passages: Sequence[Passage]) -> Ruling:
        return decide(
            drafts,
            weights=self._settings.weights,
            threshold=self._settings.threshold,
            pool=self._settings.pool,
            passages=passages,
            newer_within=self._settings.newer_within,
        )

    async def _answer(
        self,
        t: Timeline,
        question: str,
        ruling: Ruling,
        passages: Sequence[Passage],
        root: SpanStarted,
    ) -> AsyncGenerator[Event]:
        """The best draft is the answer, or the verifier writes one: from the drafts, or from scratch."""
        if ruling.answer is None:
            writing = fall_back(self._tools, t, ruling, question=question, passages=passages, parent=root)
        elif ruling.decision.kind == "selected" and self._settings.decision == "synthesise":
            writing = self._synthesise(t, question, ruling, passages, root)
        else:
            yield Answered(at_ms=t.now(), answer=ruling.answer)
            return
        async with aclosing(writing):
            async for event in writing:
                yield event

    async def _synthesise(
        self,
        t: Timeline,
        question: str,
        ruling: Ruling,
        passages: Sequence[Passage],
        root: SpanStarted,
    ) -> AsyncGenerator[Event]:
        span = t.start("synthesise", root)
        yield span
        writing = synthesise(
            self._tools.verifier,
            question,
            ruling.drafts,
            ruling,
            passages,
            max_tokens=self._settings.synthesis_tokens,
            timeline=t,
        )
        async with aclosing(writing):
            async for event in writing:
                yield event
        yield t.end(span)


def _in_order(drafts: Sequence[Draft], subsets: Sequence[Subset]) -> list[Draft]:
    """Drafts finish in any order; their index is that of their subset."""
    place = {subset.id: number for number, subset in enumerate(subsets)}
    return sorted(drafts, key=lambda draft: place[draft.subset_id])


def _noted(ruling: Ruling, verified: Verification) -> Ruling:
    """The ruling with what its reader should know of the verification."""
    if verified.note is None:
        return ruling
    reason = f"{ruling.decision.reason} {verified.note}"
    return replace(ruling, decision=replace(ruling.decision, reason=reason))


def _combined(verdicts: Sequence[Verdict], ruling: Ruling) -> tuple[Verdict, ...]:
    """The verdicts with the combined scores that the decision gave them."""
    scores = {draft.subset_id: draft.scores for draft in ruling.drafts}
    return tuple(replace(verdict, scores=scores[verdict.subset_id]) for verdict in verdicts)
