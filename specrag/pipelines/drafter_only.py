"""Drafter only: the small model reads all passages at once and answers, and nobody checks it.

The cheapest way to an answer, and what the verifier's work has to be measured against.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from specrag.events import Decided, Event, SpanStarted
from specrag.pipelines.base import Request, Tools, as_run
from specrag.pipelines.steps import Retrieval, answer_from_all, counted
from specrag.timeline import Timeline
from specrag.types import Decision, PipelineName


class DrafterOnlyPipeline:
    """All passages, one small model, one answer."""

    name: PipelineName = "drafter"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """See `Pipeline.run`."""
        return as_run(
            lambda t, question, root: self._steps(t, question, request.collection, root),
            tools=self._tools,
            request=request,
            name=self.name,
        )

    async def _steps(
        self, t: Timeline, question: str, collection: str, root: SpanStarted
    ) -> AsyncGenerator[Event]:
        retrieval = Retrieval(self._tools, t, collection)
        async with aclosing(retrieval.events(question, root)) as retrieving:
            async for event in retrieving:
                yield event

        passages = retrieval.found.passages
        reason = f"Drafter only: the drafter answers from {counted(len(passages))} and nobody checks it."
        decision = Decision(kind="direct", draft_index=None, reason=reason)
        yield Decided(at_ms=t.now(), decision=decision)
        async with aclosing(
            answer_from_all(self._tools, t, question, passages, root, decision=decision, role="drafter")
        ) as answering:
            async for event in answering:
                yield event
