"""One model answers from all passages at once: standard RAG, the fallback of a run, the end of multi-hop RAG.

A prompt that is longer than the model's context loses its last passages, and the decision says how many: an
answer from most of the evidence is worth more than an error. Tokens are counted as they are spent: a prompt
once it is read, so one that is refused costs nothing.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from specrag.decide import NO_ANSWER, begun
from specrag.draft import cite
from specrag.errors import ContextTooLong, ModelError
from specrag.events import Answered, AnswerToken, Decided, Event, UsageCounted
from specrag.models.base import Begin, Conversation, End, LanguageModel, Line, Output, Piece, Read
from specrag.prompts import ANSWER_LABEL, direct_conversation
from specrag.scoring import geometric_mean
from specrag.sent import read_events
from specrag.text import asking_words, is_abstention, is_hollow, without_citations
from specrag.timeline import Timeline
from specrag.types import Answer, Decision, Passage, Role

LABEL_ROOM = 16
"""Tokens that a model keeps free for the label of each line, beside those that it may write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """The prompt did not fit, and only the first `kept` passages are read."""

    kept: int


async def write_answer(
    model: LanguageModel,
    question: str,
    passages: Sequence[Passage],
    *,
    decision: Decision,
    role: Role,
    max_tokens: int,
    timeline: Timeline,
    notes: Sequence[str] = (),
) -> AsyncGenerator[Event]:
    """Stream an answer written from all passages; the last event is `Answered`.

    `passages` come best first. `decision` is the one that led here. It is sent again when the writing adds to
    its reason: passages that were left out, or an answer that says there is none.

    Raises:
        ContextTooLong: not even one passage fits the context.
        ModelError: the model cannot write it.
    """
    again = asking_words(question)
    lines = (Line(part="answer", max_tokens=max_tokens, label=ANSWER_LABEL, not_first=again),)
    pieces: list[Piece] = []
    sent: Begin | None = None
    step = "fallback" if decision.kind == "fallback" else "answer"
    why, read = decision.reason, passages
    async with aclosing(
        fitting(model, lambda kept: direct_conversation(question, kept, notes), passages, lines)
    ) as outputs:
        async for output in outputs:
            match output:
                case Shortened():
                    left_out = _left_out(len(passages) - output.kept, model)
                    decision = replace(decision, reason=f"{why} {left_out}")
                    read = passages[: output.kept]
                    yield Decided(at_ms=timeline.now(), decision=decision)
                case Begin():
                    sent = output
                case Read() if sent is not None:
                    for event in read_events(sent, timeline, role=role, step=step):
                        yield event
                case Piece():
                    pieces.append(output)
                    yield AnswerToken(at_ms=timeline.now(), text=output.text, logprob=output.logprob)
                case End() if output.completion_tokens:
                    written = output.completion_tokens
                    yield UsageCounted(at_ms=timeline.now(), role=role, completion_tokens=written)
    answer = _answer(pieces, read)
    if answer.confidence is None:
        yield Decided(at_ms=timeline.now(), decision=_without_answer(decision))
    yield Answered(at_ms=timeline.now(), answer=answer)


async def fitting(
    model: LanguageModel,
    conversation: Callable[[Sequence[Passage]], Conversation],
    passages: Sequence[Passage],
    lines: Sequence[Line],
) -> AsyncGenerator[Output | Shortened]:
    """What the model writes after `conversation(passages)`, with as many passages as its context holds.

    Every try ends with its `End`, that of a refused or failed one included, so that what it cost is known.

    Raises:
        ContextTooLong: not even one passage fits the context.
        ModelError: the model cannot write.
    """
    room = model.info.context - sum(line.max_tokens + LABEL_ROOM for line in lines)
    kept = len(passages)
    prompt_tokens = 0
    while True:
        error: str | None = None
        async with aclosing(_ended(model.generate([conversation(passages[:kept])], lines))) as outputs:
            async for output in outputs:
                if isinstance(output, Begin):
                    prompt_tokens = output.prompt_tokens
                if isinstance(output, End):
                    error = output.error
                yield output
        if not error:
            return
        kept = _fewer(kept, prompt_tokens, room=room, error=error)
        yield Shortened(kept=kept)


async def _ended(outputs: AsyncGenerator[tuple[int, Output]]) -> AsyncGenerator[Output]:
    """The outputs of one conversation; a model that breaks off has spent what it wrote until then."""
    written = 0
    try:
        async with aclosing(outputs):
            async for _, output in outputs:
                written += isinstance(output, Piece)
                yield output
    except ModelError as error:
        yield End(finish_reason="error", completion_tokens=written, error=str(error))
        raise


def _fewer(kept: int, prompt_tokens: int, *, room: int, error: str) -> int:
    """How many passages to try next, at least one less; passages are taken to be of equal length."""
    if prompt_tokens <= room:
        raise ModelError(error)
    if kept <= 1:
        raise ContextTooLong(error)
    return min(kept - 1, max(1, kept * max(room, 0) // max(prompt_tokens, 1)))


def _left_out(passages: int, model: LanguageModel) -> str:
    what = "the one ranked lowest does" if passages == 1 else f"the {passages} ranked lowest do"
    was = "was" if passages == 1 else "were"
    return f"Of these, {what} not fit its context of {model.info.context:,} tokens and {was} left out."


def _without_answer(decision: Decision) -> Decision:
    """A fallback stays one, since its kind tells why all passages were read; its reason has to say it."""
    kind = "abstained" if decision.kind == "direct" else decision.kind
    return replace(decision, kind=kind, reason=f"{decision.reason} It says that they do not hold the answer.")


def _answer(pieces: Sequence[Piece], passages: Sequence[Passage]) -> Answer:
    """The answer of these tokens; without confidence if it says that there is none."""
    raw = "".join(piece.text for piece in pieces)
    text = begun(without_citations(raw).strip())  # on the page, numbers are of its own passages
    if is_hollow(text):
        return Answer(text=NO_ANSWER)
    if is_abstention(text):
        return Answer(text=text)
    confidence = geometric_mean([piece.logprob for piece in pieces])
    return Answer(text=text, citations=cite("", raw, passages), confidence=confidence)
