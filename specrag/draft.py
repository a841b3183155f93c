"""One draft per subset, all at once: a rationale line, then an answer line.

The drafter's own log-probabilities are collected while it decodes, under the very prompt it decodes from, so
rho_draft costs nothing and cannot be taken under another prompt. A draft that fails, stays empty or is never
ended is an event like any other. The numbers in brackets by which a draft cites its passages count in its own
prompt only: they become ids, and are left out of its answer. Tokens are counted as they are spent: a prompt
once it is read, so one that is refused costs nothing.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import assert_never

from specrag.errors import ModelError
from specrag.events import DraftFinished, DraftStarted, DraftToken, Event, SpanStarted, UsageCounted
from specrag.models.base import Begin, End, LanguageModel, Line, Output, Piece, Read
from specrag.prompts import ANSWER_LABEL, RATIONALE_LABEL, draft_conversation
from specrag.scoring import draft_score
from specrag.text import (
    asking_words,
    cited_numbers,
    content_words,
    is_abstention,
    is_hollow,
    overlap,
    without_citations,
)
from specrag.timeline import Timeline
from specrag.types import Draft, LogSums, Part, Passage, Scores, Subset, TokenLogprob

_MIN_OVERLAP = 0.3
"""A passage that holds less of the draft's words than this is not its source."""


@dataclass(slots=True, kw_only=True)
class _Writing:
    """A draft while it is written."""

    subset: Subset
    passages: tuple[Passage, ...]
    span: SpanStarted
    decode: SpanStarted | None = None
    prompt: str = ""
    prompt_tokens: int = 0
    tokens: list[TokenLogprob] = field(default_factory=list)
    finished: bool = False


async def write_drafts(
    model: LanguageModel,
    question: str,
    subsets: Sequence[Subset],
    passages_of: Mapping[str, Sequence[Passage]],
    *,
    rationale_tokens: int,
    answer_tokens: int,
    timeline: Timeline,
    parent: SpanStarted,
    instruction: str = "",
) -> AsyncGenerator[Event]:
    """Write all drafts, streaming their tokens. Every subset gets exactly one `DraftFinished`.

    `passages_of` holds the passages of each subset by its id, whole or cut to their nearest sentences;
    `instruction` as for `draft_conversation`. A drafter that breaks off leaves the drafts that it had
    finished; the others fail.

    Raises:
        ModelError: the drafter breaks off before any draft is finished.
    """
    writings = []
    for subset in subsets:
        span = timeline.start("draft", parent, subset_id=subset.id)
        yield span
        writings.append(_Writing(subset=subset, passages=tuple(passages_of[subset.id]), span=span))
    again = asking_words(question)
    lines = (
        Line(
            part="rationale", max_tokens=rationale_tokens, label=RATIONALE_LABEL, sentences=1, not_first=again
        ),
        Line(part="answer", max_tokens=answer_tokens, label=ANSWER_LABEL, sentences=1, not_first=again),
    )
    conversations = [draft_conversation(question, writing.passages, instruction) for writing in writings]
    error = "The drafter ended before this draft was finished."
    try:
        async with aclosing(model.generate(conversations, lines)) as outputs:
            async for index, output in outputs:
                for event in _events(writings[index], output, timeline):
                    yield event
    except ModelError as failure:
        if not any(writing.finished for writing in writings):
            raise
        error = str(failure)
    for writing in writings:
        if not writing.finished:
            broken_off = End(finish_reason="error", completion_tokens=len(writing.tokens), error=error)
            for event in _finish(writing, broken_off, timeline):
                yield event


async def told_again(drafts: Sequence[Draft], timeline: Timeline) -> AsyncGenerator[Event]:
    """Drafts that another run has written, as this one tells of them; they cost it nothing."""
    for draft in drafts:
        yield DraftFinished(at_ms=timeline.now(), draft=draft)


def _events(writing: _Writing, output: Output, timeline: Timeline) -> list[Event]:
    """What one output of the model adds to the story of its draft."""
    match output:
        case Begin():
            writing.prompt, writing.prompt_tokens = output.prompt, output.prompt_tokens
            started = DraftStarted(
                at_ms=timeline.now(),
                subset_id=writing.subset.id,
                prompt=output.prompt,
                prompt_tokens=output.prompt_tokens,
            )
            return [started]
        case Read():
            prompt_tokens = writing.prompt_tokens
            counted = UsageCounted(at_ms=timeline.now(), role="drafter", prompt_tokens=prompt_tokens)
            writing.decode = timeline.start("decode", writing.span)
            return [counted, writing.decode]
        case Piece():
            return [_token(writing, output, timeline)]
        case End():
            return _finish(writing, output, timeline)
        case _:
            assert_never(output)


def _token(writing: _Writing, piece: Piece, timeline: Timeline) -> DraftToken:
    now = timeline.now()
    writing.tokens.append(TokenLogprob(text=piece.text, logprob=piece.logprob, part=piece.part, at_ms=now))
    return DraftToken(
        at_ms=now,
        subset_id=writing.subset.id,
        part=piece.part,
        text=piece.text,
        logprob=piece.logprob,
    )


def _finish(writing: _Writing, end: End, timeline: Timeline) -> list[Event]:
    writing.finished = True
    draft = _draft(writing, end)
    events: list[Event] = []
    if writing.decode is not None:
        events.append(timeline.end(writing.decode, tokens=len(writing.tokens)))
    events.append(timeline.end(writing.span, finish_reason=draft.finish_reason or ""))
    if end.completion_tokens:
        written = end.completion_tokens
        events.append(UsageCounted(at_ms=timeline.now(), role="drafter", completion_tokens=written))
    events.append(DraftFinished(at_ms=timeline.now(), draft=draft))
    return events


def _draft(writing: _Writing, end: End) -> Draft:
    rationale, written = _text(writing.tokens, "rationale"), _text(writing.tokens, "answer")
    answer = without_citations(written)
    error = end.error
    if error is None and is_hollow(answer):
        error = "The drafter wrote no answer."
        answer = ""
    reasoned = [token.logprob for token in writing.tokens if token.part == "rationale"]
    answered = [token.logprob for token in writing.tokens if token.part == "answer"]
    return Draft(
        subset_id=writing.subset.id,
        rationale=rationale,
        answer=answer,
        citations=cite(rationale, written, writing.passages),
        abstained=is_abstention(answer),
        finish_reason=end.finish_reason,
        error=error,
        tokens=tuple(writing.tokens),
        scores=Scores(draft=draft_score(reasoned, answered)),
        log_sums=LogSums(
            rationale=sum(reasoned) if reasoned else None,
            rationale_tokens=len(reasoned),
            answer=sum(answered) if answered else None,
            answer_tokens=len(answered),
        ),
        prompt=writing.prompt,
        prompt_tokens=writing.prompt_tokens,
    )


def _text(tokens: Sequence[TokenLogprob], part: Part) -> str:
    return "".join(token.text for token in tokens if token.part == part).strip()


def cite(rationale: str, answer: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """Ids of the passages that a draft rests on.

    A number in brackets counts as the draft's own citation if its passage holds enough of the draft's words:
    it may be a footnote that was copied from a passage. Without any, the passages that hold most of the words
    are cited, and none if no passage holds enough of them.
    """
    if is_abstention(answer):
        return ()
    text = f"{rationale} {answer}"
    words = content_words(without_citations(text))
    shares = [overlap(words, f"{passage.title} {passage.text}") for passage in passages]
    enough = [place for place, share in enumerate(shares) if share >= _MIN_OVERLAP]
    numbers = cited_numbers(text)
    named = [place for place in enough if place + 1 in numbers]
    near = [place for place in enough if shares[place] >= 0.9 * max(shares)]
    return tuple(passages[place].id for place in named or near)
