"""Standard RAG: the verifier reads all passages at once and answers. The baseline of the paper."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from specrag.events import Decided, Event, SpanStarted
from specrag.pipelines.base import Request, Tools, as_run
from specrag.pipelines.steps import Retrieval, answer_from_all, counted
from specrag.timeline import Timeline
from specrag.types import Decision, PipelineName


class StandardPipeline:
    """All passages, one large model, one answer."""

    name: PipelineName = "standard"

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
        reason = f"Standard RAG: the verifier answers from {counted(len(passages))}."
        decision = Decision(kind="direct", draft_index=None, reason=reason)
        yield Decided(at_ms=t.now(), decision=decision)
        async with aclosing(
            answer_from_all(self._tools, t, question, passages, root, decision=decision)
        ) as answering:
            async for event in answering:
                yield event
