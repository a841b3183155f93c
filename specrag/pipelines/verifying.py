"""The verifying step of a run: all drafts in one pass, or each as soon as it is finished.

One pass over all is the method of the paper and the default. *Eager* verification reads a finished draft
while others are still being written, which hides the verifier's time behind the drafter's where each has a
machine of its own; it costs one pass for each draft. If one of those passes fails, or knows less of its draft
than the others do, all drafts are read again in one, so that their scores stay comparable.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace

from specrag.events import DraftFinished, DraftsVerified, Event, PromptSent, SpanStarted, UsageCounted
from specrag.models.base import LanguageModel
from specrag.pipelines.steps import taken_over
from specrag.retrieval.evidence import Evidence
from specrag.timeline import Timeline
from specrag.types import Draft, Passage, Subset, Verdict
from specrag.verify import Verification, joined, verify_drafts


class Verifying:
    """One run's verification; `drafts`, `verdicts` and `verified` are there once `events` is through."""

    def __init__(
        self,
        verifier: LanguageModel,
        question: str,
        *,
        timeline: Timeline,
        parent: SpanStarted,
        evidence: Evidence | None,
        subsets: Sequence[Subset],
        passages_of: Mapping[str, Sequence[Passage]] | None,
        eager: bool,
        instruction: str = "",
        given: Verification | None = None,
    ) -> None:
        """`passages_of` and `instruction` as for `verify_drafts`; the evidence gives the retriever's view.

        Verdicts that are `given` are taken as they are, and then nothing is read and no evidence needed.
        """
        self._verifier = verifier
        self._question = question
        self._t = timeline
        self._parent = parent
        self._relevance = {
            subset.id: max(evidence.relevance(id_) for id_ in subset.passage_ids)
            for subset in subsets
            if evidence is not None
        }
        self._passages_of = passages_of
        self._instruction = instruction
        self._given = given if given is not None and given.verdicts else None
        self._eager = eager and self._given is None
        self._reading: dict[str, tuple[SpanStarted, asyncio.Task[Verification]]] = {}
        self._read: dict[str, Verification] = {}
        self.drafts: tuple[Draft, ...] = ()
        self.verdicts: tuple[Verdict, ...] = ()
        self.verified = Verification()

    async def aclose(self) -> None:
        """Stop what is still being read."""
        tasks = [task for _, task in self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def meanwhile(self, event: Event) -> list[Event]:
        """What there is to tell while drafts are written: reading that begins, and verdicts that are in."""
        if not self._eager:
            return []
        begun: list[Event] = []
        if isinstance(event, DraftFinished) and event.draft.usable:
            span = self._t.start("verify", self._parent, draft=event.draft.subset_id)
            self._reading[event.draft.subset_id] = (span, asyncio.create_task(self._verify([event.draft])))
            begun.append(span)
        return [*begun, *self._news()]

    async def events(self, drafts: Sequence[Draft]) -> AsyncGenerator[Event]:
        """Verify what is not verified yet, and tell what became of every draft."""
        if self._given:
            span = self._t.start("verify", self._parent, **taken_over(self._given))
            yield span
            self.drafts, self.verified = tuple(drafts), self._given
            self.verdicts = self._given.verdicts
            yield DraftsVerified(at_ms=self._t.now(), verdicts=self.verdicts)
            yield self._t.end(span, drafts=len(self.verdicts), **_said(self.verified))
            return
        while self._reading:
            await asyncio.wait(
                [task for _, task in self._reading.values()], return_when=asyncio.FIRST_COMPLETED
            )
            for event in self._news():
                yield event
        if self._read and self._comparable():
            self.verified = joined([self._read[draft.subset_id] for draft in drafts if draft.usable])
            self.verdicts = self._with_relevance(self.verified.verdicts)
        else:
            async for event in self._in_one_pass(drafts):
                yield event
        self.drafts = tuple(self._left_out(draft) for draft in drafts)
        for draft in self.drafts:
            if draft.subset_id in self.verified.unread:
                yield DraftFinished(at_ms=self._t.now(), draft=draft)

    def _comparable(self) -> bool:
        """Whether every draft was read, and the same is known of each."""
        known = {
            (scores.self_containment is None, scores.self_reflection is None, scores.grounded is None)
            for one in self._read.values()
            for scores in (verdict.scores for verdict in one.verdicts)
        }
        return len(known) <= 1 and not any(one.failed for one in self._read.values())

    async def _in_one_pass(self, drafts: Sequence[Draft]) -> AsyncGenerator[Event]:
        span = self._t.start("verify", self._parent)
        yield span
        self.verified = await self._verify(drafts)
        self.verdicts = self._with_relevance(self.verified.verdicts)
        for event in self._told(self.verified):
            yield event
        yield self._t.end(span, drafts=len(self.verdicts), **_said(self.verified))

    async def _verify(self, drafts: Sequence[Draft]) -> Verification:
        return await verify_drafts(
            self._verifier,
            self._question,
            drafts,
            passages_of=self._passages_of,
            instruction=self._instruction,
        )

    def _news(self) -> list[Event]:
        """The events of the drafts that have been read since the last look."""
        events: list[Event] = []
        for subset_id, (span, task) in list(self._reading.items()):
            if not task.done():
                continue
            del self._reading[subset_id]
            self._read[subset_id] = verified = task.result()
            events += self._told(verified)
            events.append(self._t.end(span, drafts=len(verified.verdicts), **_said(verified)))
        return events

    def _told(self, verified: Verification) -> list[Event]:
        return [
            *(PromptSent(at_ms=self._t.now(), prompt=prompt) for prompt in verified.prompts),
            DraftsVerified(at_ms=self._t.now(), verdicts=self._with_relevance(verified.verdicts)),
            UsageCounted(
                at_ms=self._t.now(),
                role="verifier",
                prompt_tokens=verified.usage.prompt_tokens,
                forward_passes=verified.usage.forward_passes,
            ),
        ]

    def _with_relevance(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """The verdicts with the retriever's view: the best evidence sentence of each subset."""
        return tuple(
            replace(verdict, scores=replace(verdict.scores, relevance=self._relevance[verdict.subset_id]))
            for verdict in verdicts
        )

    def _left_out(self, draft: Draft) -> Draft:
        """A draft that the verifier alone cannot read has failed: without scores it cannot be compared."""
        why = self.verified.unread.get(draft.subset_id)
        return draft if why is None else replace(draft, finish_reason="error", error=why)


def _said(verified: Verification) -> dict[str, str]:
    """The note as an attribute of the span, so that a fork can take it over with the verdicts."""
    return {"note": verified.note} if verified.note else {}
