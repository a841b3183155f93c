"""The control: a model answers from what it knows, with no passage before it.

Public questions may have been part of what a model has read. What it gets right without any passage is no
merit of retrieval, so every table has this row beside the others.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from specrag.decide import NO_ANSWER, begun
from specrag.errors import ModelError
from specrag.events import Answered, AnswerToken, Decided, Event, SpanStarted, UsageCounted
from specrag.models.base import Begin, Conversation, End, Line, Piece, Read, Segment, Turn
from specrag.pipelines.base import Request, Tools, as_run
from specrag.scoring import geometric_mean
from specrag.sent import read_events
from specrag.text import is_abstention, is_hollow
from specrag.timeline import Timeline
from specrag.types import Answer, Decision, PipelineName, Role

INSTRUCTION: Final = "Answer the question with a short answer."
_LABEL: Final = "Answer:"


class ClosedBookPipeline:
    """One model, no passages, one answer."""

    def __init__(self, tools: Tools, *, role: Role = "verifier") -> None:
        self._tools = tools
        self._role: Role = role
        self.name: PipelineName = "standard" if role == "verifier" else "drafter"

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """See `Pipeline.run`."""
        return as_run(self._steps, tools=self._tools, request=request, name=self.name)

    async def _steps(self, t: Timeline, question: str, root: SpanStarted) -> AsyncGenerator[Event]:
        reason = f"Closed book: the {self._role} answers from what it knows, without any passage."
        yield Decided(at_ms=t.now(), decision=Decision(kind="direct", draft_index=None, reason=reason))
        span = t.start("answer", root, role=self._role)
        yield span
        model = self._tools.verifier if self._role == "verifier" else self._tools.drafter
        lines = (Line(part="answer", max_tokens=self._tools.settings.fallback_tokens, label=_LABEL),)
        pieces: list[Piece] = []
        async with aclosing(model.generate([_conversation(question)], lines)) as outputs:
            sent: Begin | None = None
            async for _, output in outputs:
                match output:
                    case Begin():
                        sent = output
                    case Read() if sent is not None:
                        for event in read_events(sent, t, role=self._role, step="answer"):
                            yield event
                    case Piece():
                        pieces.append(output)
                        yield AnswerToken(at_ms=t.now(), text=output.text, logprob=output.logprob)
                    case End():
                        yield self._spent(t, output)
        yield Answered(at_ms=t.now(), answer=_answer(pieces))
        yield t.end(span)

    def _spent(self, t: Timeline, end: End) -> UsageCounted:
        """What the writing cost.

        Raises:
            ModelError: the model could not write.
        """
        if end.error:
            raise ModelError(end.error)
        return UsageCounted(at_ms=t.now(), role=self._role, completion_tokens=end.completion_tokens)


def _conversation(question: str) -> Conversation:
    asked = (Segment(text=f"{INSTRUCTION}\n\nQuestion:"), Segment(text=f" {question}"))
    return Conversation(
        turns=(
            Turn(role="user", segments=asked),
            Turn(role="assistant", segments=(Segment(text=_LABEL),)),
        )
    )


def _answer(pieces: list[Piece]) -> Answer:
    text = begun("".join(piece.text for piece in pieces).strip())
    if is_hollow(text) or is_abstention(text):
        return Answer(text=text if is_abstention(text) else NO_ANSWER)
    return Answer(text=text, confidence=geometric_mean([piece.logprob for piece in pieces]))
