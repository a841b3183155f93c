"""One model answers from all passages at once: the fallback of a run, and what standard RAG does."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from specrag.decide import NO_ANSWER, begun
from specrag.draft import cite
from specrag.errors import ModelError
from specrag.events import Answered, AnswerToken, Event, UsageCounted
from specrag.models.base import Begin, End, LanguageModel, Line, Piece
from specrag.prompts import ANSWER_LABEL, direct_conversation
from specrag.text import is_abstention
from specrag.timeline import Timeline
from specrag.types import Answer, Passage, Role


async def write_answer(
    model: LanguageModel,
    question: str,
    passages: Sequence[Passage],
    *,
    role: Role,
    max_tokens: int,
    timeline: Timeline,
) -> AsyncGenerator[Event]:
    """Stream an answer written from all passages; the last event is `Answered`.

    Raises:
        ModelError: the model cannot write it.
    """
    lines = (Line(part="answer", max_tokens=max_tokens, label=ANSWER_LABEL),)
    text = ""
    prompt_tokens = 0
    async with aclosing(model.generate([direct_conversation(question, passages)], lines)) as outputs:
        async for _, output in outputs:
            if isinstance(output, Begin):
                prompt_tokens = output.prompt_tokens
            elif isinstance(output, Piece):
                text += output.text
                yield AnswerToken(at_ms=timeline.now(), text=output.text)
            elif isinstance(output, End):
                if output.error:
                    raise ModelError(output.error)
                yield UsageCounted(
                    at_ms=timeline.now(),
                    role=role,
                    prompt_tokens=prompt_tokens,
                    completion_tokens=output.completion_tokens,
                )
    text = text.strip()
    text = begun(text)
    if not text or is_abstention(text):
        yield Answered(at_ms=timeline.now(), answer=Answer(text=text or NO_ANSWER))
        return
    yield Answered(at_ms=timeline.now(), answer=Answer(text=text, citations=cite("", text, passages)))
