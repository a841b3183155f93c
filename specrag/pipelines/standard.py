"""Standard RAG: the verifier reads all passages at once and answers. The baseline of the paper."""

from collections.abc import AsyncGenerator

from specrag.events import Event
from specrag.pipelines.base import Request, Tools, as_run
from specrag.pipelines.steps import answer_at_once
from specrag.types import PipelineName


class StandardPipeline:
    """All passages, one large model, one answer."""

    name: PipelineName = "standard"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """See `Pipeline.run`."""
        tools = self._tools
        return as_run(
            lambda t, question, root: answer_at_once(
                tools, t, question, request, root, role="verifier", how=how
            ),
            tools=tools,
            request=request,
            name=self.name,
        )


def how(passages: str) -> str:
    """The reason of the decision."""
    return f"Standard RAG: the verifier answers from {passages}."
