"""Synthesis: the verifier writes one answer from the drafts in the contest, instead of taking the best one.

It reads what each draft says, why, and from which sources of which date; not the passages. The drafts keep
their numbers of the draft board and stand best first. What the verifier writes is not verified again: when it
writes nothing, or that there is no answer, the selected draft stands.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from specrag.claims import agree
from specrag.decide import Ruling, begun, in_contest
from specrag.dispute import source_of
from specrag.draft import cite
from specrag.errors import ModelError
from specrag.events import Answered, AnswerToken, Decided, Event, UsageCounted
from specrag.models.base import Begin, Conversation, End, LanguageModel, Line, Piece, Read
from specrag.prompts import SYNTHESIS_LABEL, synthesis_conversation
from specrag.sent import read_events
from specrag.text import cited_numbers, is_abstention, is_hollow, normalise_answer, without_citations
from specrag.timeline import Timeline
from specrag.types import Answer, Decision, Draft, Passage


async def synthesise(
    model: LanguageModel,
    question: str,
    drafts: Sequence[Draft],
    ruling: Ruling,
    passages: Sequence[Passage],
    *,
    max_tokens: int,
    timeline: Timeline,
) -> AsyncGenerator[Event]:
    """Stream one answer that `model` writes from the drafts in the contest of a "selected" `ruling`.

    The final `Decided` comes when it is written, and `Answered` last. A model that cannot write it does not
    sink a run that has an answer: the selected draft's.
    """
    conversation = synthesis_prompt(question, drafts, ruling, passages)
    lines = (Line(part="answer", max_tokens=max_tokens, label=SYNTHESIS_LABEL),)
    pieces: list[str] = []
    sent: Begin | None = None
    written, error = 0, None
    try:
        async with aclosing(model.generate([conversation], lines)) as outputs:
            async for _, output in outputs:
                match output:
                    case Begin():
                        sent = output
                    case Read() if sent is not None:
                        for event in read_events(sent, timeline, role="verifier", step="synthesise"):
                            yield event
                    case Piece():
                        pieces.append(output.text)
                        yield AnswerToken(at_ms=timeline.now(), text=output.text, logprob=output.logprob)
                    case End():
                        written, error = output.completion_tokens, output.error
    except ModelError as failure:
        written, error = len(pieces), str(failure)
    if written:
        yield UsageCounted(at_ms=timeline.now(), role="verifier", completion_tokens=written)
    text = "".join(pieces)
    final = unwritten(ruling, error) if error or _says_nothing(text) else synthesised(ruling, text, passages)
    yield Decided(at_ms=timeline.now(), decision=final.decision)
    if final.answer is not None:
        yield Answered(at_ms=timeline.now(), answer=final.answer)


def synthesis_prompt(
    question: str, drafts: Sequence[Draft], ruling: Ruling, passages: Sequence[Passage]
) -> Conversation:
    """What the verifier reads: only drafts that may give the answer, the best first, and the dispute."""
    by_id = {passage.id: passage for passage in passages}
    shown = [
        (
            index + 1,
            drafts[index],
            list(dict.fromkeys(source_of(by_id[one]) for one in drafts[index].citations if one in by_id)),
        )
        for index in _best_first(ruling)
    ]
    return synthesis_conversation(question, shown, ruling.decision.conflict)


def synthesised(ruling: Ruling, text: str, passages: Sequence[Passage]) -> Ruling:
    """A "selected" ruling whose answer is `text`, which the verifier wrote from the drafts.

    The numbers in brackets become citations: on the page numbers in brackets are passages, not drafts. The
    share of the score mass belongs to the chosen answer, so it is kept only where the text says the same.
    """
    plain = begun(without_citations(text))
    chosen = ruling.answer
    agrees = chosen is not None and agree(plain, chosen.text)
    answer = Answer(
        text=plain,
        citations=_citations(ruling, text, passages, agrees=agrees),
        confidence=chosen.confidence if chosen is not None and agrees else None,
    )
    return replace(ruling, decision=written_decision(ruling), answer=answer)


def written_decision(ruling: Ruling) -> Decision:
    """The decision of a "selected" ruling when the verifier writes the answer."""
    count = len(in_contest(ruling.drafts))
    reason = f"The verifier wrote one answer from {count} {'draft' if count == 1 else 'drafts'}"
    sides = ruling.decision.sides
    if sides:
        numbers = " and ".join(str(side.draft_index + 1) for side in sides)
        reason += f"; drafts {numbers} contradict each other, so it was asked to show both sides"
    return replace(ruling.decision, kind="synthesised", reason=f"{reason}. {ruling.decision.reason}")


def unwritten(ruling: Ruling, error: str | None = None) -> Ruling:
    """A "selected" ruling that stands because the verifier's text cannot."""
    why = f"could not write one answer from the drafts ({error.rstrip('.')})" if error else "wrote no answer"
    reason = f"{ruling.decision.reason} The verifier {why}, so this draft stands."
    return replace(ruling, decision=replace(ruling.decision, reason=reason))


def _says_nothing(text: str) -> bool:
    plain = without_citations(text)
    return is_hollow(plain) or is_abstention(plain)


def _best_first(ruling: Ruling) -> list[int]:
    """The contest with the chosen draft first: it speaks for its pool, though another may score higher."""
    drafts, chosen = ruling.drafts, ruling.decision.draft_index
    return sorted(
        in_contest(drafts),
        key=lambda index: (index != chosen, -(drafts[index].scores.combined or 0.0), index),
    )


def _citations(ruling: Ruling, text: str, passages: Sequence[Passage], *, agrees: bool) -> tuple[str, ...]:
    """Passages of the drafts that the text cites; else of the chosen answer, if it says the same.

    A text that says something else and cites nothing rests on the drafts' passages that hold its words.
    """
    contest, numbers = _best_first(ruling), cited_numbers(text)
    used = [index for index in contest if index + 1 in numbers]
    if not used and agrees:
        said = normalise_answer(ruling.drafts[contest[0]].answer)
        used = [index for index in contest if normalise_answer(ruling.drafts[index].answer) == said]
    if used:
        return _sources(ruling, used)
    read = _sources(ruling, contest)
    return cite("", without_citations(text), [passage for passage in passages if passage.id in read])


def _sources(ruling: Ruling, indices: Sequence[int]) -> tuple[str, ...]:
    """Ids of the passages that these drafts cite, each once."""
    return tuple(dict.fromkeys(one for index in indices for one in ruling.drafts[index].citations))
