"""Steps that several pipelines take: retrieve passages, and let one model answer from all of them.

A step yields the events of what it does. What it found is read off afterwards, or off its last event.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial

from specrag.background import detached
from specrag.direct import write_answer
from specrag.errors import ModelError, UsageError
from specrag.events import Decided, Event, PassagesRetrieved, SpanStarted
from specrag.pipelines.base import Given, Request, Tools
from specrag.retrieval.evidence import Evidence
from specrag.retrieval.retriever import Retrieved
from specrag.timeline import Timeline
from specrag.types import Decision, Passage, Role


class Retrieval:
    """One retrieval; what it found is there once its events are through."""

    def __init__(
        self, tools: Tools, timeline: Timeline, request: Request, *, given: Given | None = None
    ) -> None:
        """Passages that are `given` are not looked for again."""
        self._tools = tools
        self._t = timeline
        self._request = request
        self._given = given
        self.passages: tuple[Passage, ...] = ()
        self.found: Retrieved | None = None
        """With the vectors; None if passages were taken over and no step needs those."""
        self.evidence: Evidence | None = None
        """Set only if sentences were compared."""

    async def events(
        self,
        query: str,
        parent: SpanStarted,
        *,
        known: Sequence[Passage] = (),
        compare_above: int | None = None,
    ) -> AsyncGenerator[Event]:
        """Find the passages for `query`, or take over those given; `known` are those of earlier hops.

        With more passages than `compare_above` their sentences are compared with the query as well.

        Raises:
            UsageError: the collection is empty, or nothing in it can match.
            StoreError: the collection is missing, or its vectors come from another embedder.
            ModelError: the embedder or the cross-encoder cannot compute.
        """
        t, given = self._t, self._given
        span = t.start("retrieve", parent, **taken_over(given))
        yield span
        if given is None:
            async with aclosing(self._find(query, known, span)) as finding:
                async for event in finding:
                    yield event
        else:
            self.passages = given.passages
            yield PassagesRetrieved(at_ms=t.now(), passages=joined(known, given.passages), note=given.note)
        compared = compare_above is not None and len(self.passages) > compare_above
        if given is not None and compared:
            async with aclosing(self._embed_again(query, given, span)) as embedding:
                async for event in embedding:
                    yield event
        if self.found is not None and compared:
            step = t.start("evidence", span)
            yield step
            self.evidence = await asyncio.to_thread(self._tools.evidence.compare, self.found)
            yield t.end(step)
        duplicates = self.found.duplicates if self.found else 0
        yield t.end(span, passages=len(self.passages), duplicates=duplicates)

    async def _embed_again(self, query: str, given: Given, parent: SpanStarted) -> AsyncGenerator[Event]:
        """The vectors of what was taken over, as far as the steps after need them."""
        step = self._t.start("embed", parent)
        yield step
        embedding = partial(self._tools.retriever.again, given.passages, query, self._request.collection)
        self.found = await detached(partial(embedding, vectors=not given.subsets))
        yield self._t.end(step)

    async def _find(self, query: str, known: Sequence[Passage], parent: SpanStarted) -> AsyncGenerator[Event]:
        """Embed, search and choose, detached: a silent store must hold no thread that others need."""
        t, retriever, settings = self._t, self._tools.retriever, self._tools.settings
        where, chosen = self._request.collection, self._request.documents or None
        step = t.start("embed", parent)
        yield step
        vector = await detached(partial(retriever.embed, query, where))
        yield t.end(step)
        step = t.start("search", parent)
        yield step
        looking = partial(retriever.candidates, vector, where, settings.retrieve, settings=settings)
        candidates = await detached(partial(looking, question=query, documents=chosen))
        if not candidates.passages:
            raise UsageError(await detached(partial(self._nothing, where)))
        yield t.end(step, dense=candidates.dense, bm25=candidates.bm25)
        chooses = "rerank" if retriever.reranks else "fuse" if candidates.mixed else None
        choosing = t.start(chooses, parent) if chooses else None
        if choosing:
            yield choosing
        found = self.found = await detached(partial(retriever.choose, candidates, settings.retrieve))
        if choosing:
            yield t.end(choosing, candidates=len(candidates.passages))
        self.passages = found.passages
        yield PassagesRetrieved(at_ms=t.now(), passages=joined(known, found.passages), note=found.note)

    def _nothing(self, where: str) -> str:
        """Why there is no passage at all."""
        if not self._tools.retriever.holds(where):
            return f"The collection “{where}” has no documents yet; add one and ask again."
        if self._request.documents:
            return "Nothing is found in the chosen documents; choose others, or ask all of them."
        return f"No passage of “{where}” holds a word of the question; ask it in other words."


async def answer_at_once(
    tools: Tools,
    timeline: Timeline,
    question: str,
    request: Request,
    root: SpanStarted,
    *,
    role: Role,
    how: Callable[[str], str],
) -> AsyncGenerator[Event]:
    """Retrieve, and let one model answer from all passages; `how` says so, given how many they are.

    Raises:
        ModelError: the model cannot write it.
    """
    retrieval = Retrieval(tools, timeline, request, given=request.given)
    async with aclosing(retrieval.events(question, root)) as retrieving:
        async for event in retrieving:
            yield event
    passages = retrieval.passages
    decision = Decision(kind="direct", draft_index=None, reason=how(counted(len(passages))))
    yield Decided(at_ms=timeline.now(), decision=decision)
    answering = answer_from_all(tools, timeline, question, passages, root, decision=decision, role=role)
    async with aclosing(answering):
        async for event in answering:
            yield event


async def answer_from_all(
    tools: Tools,
    timeline: Timeline,
    question: str,
    passages: Sequence[Passage],
    parent: SpanStarted,
    *,
    decision: Decision,
    role: Role = "verifier",
    notes: Sequence[str] = (),
) -> AsyncGenerator[Event]:
    """One model writes the answer from all passages, in a span named after why it does.

    Raises:
        ModelError: the model cannot write it.
    """
    settings = tools.settings
    span = timeline.start("fallback" if decision.kind == "fallback" else "answer", parent, role=role)
    yield span
    answering = write_answer(
        tools.verifier if role == "verifier" else tools.drafter,
        question,
        passages,
        decision=decision,
        role=role,
        max_tokens=settings.fallback_tokens,
        timeline=timeline,
        notes=notes,
    )
    try:
        async with aclosing(answering):
            async for event in answering:
                yield event
    except ModelError:
        yield timeline.end(span, unfinished=True)  # the run may go on without it
        raise
    yield timeline.end(span)


def taken_over(given: object) -> dict[str, bool]:
    """The attribute of a span that took over what is `given` and did nothing anew, if there is anything."""
    return {"given": True} if given else {}


def joined(known: Sequence[Passage], found: Sequence[Passage]) -> tuple[Passage, ...]:
    """All passages, each once, as and in the order in which they were first found."""
    unique: dict[str, Passage] = {}
    for passage in (*known, *found):
        unique.setdefault(passage.id, passage)
    return tuple(unique.values())


def counted(passages: int) -> str:
    """How a reason speaks of all passages."""
    return "the only passage" if passages == 1 else f"all {passages} passages"
