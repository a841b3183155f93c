"""Drafter only: the small model reads all passages at once and answers, and nobody checks it.

The cheapest way to an answer, and what the verifier's work has to be measured against.
"""

from collections.abc import AsyncGenerator

from specrag.events import Event
from specrag.pipelines.base import Request, Tools, as_run
from specrag.pipelines.steps import answer_at_once
from specrag.types import PipelineName


class DrafterOnlyPipeline:
    """All passages, one small model, one answer."""

    name: PipelineName = "drafter"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """See `Pipeline.run`."""
        tools = self._tools
        return as_run(
            lambda t, question, root: answer_at_once(
                tools, t, question, request, root, role="drafter", how=how
            ),
            tools=tools,
            request=request,
            name=self.name,
        )


def how(passages: str) -> str:
    """The reason of the decision."""
    return f"Drafter only: the drafter answers from {passages} and nobody checks it."
