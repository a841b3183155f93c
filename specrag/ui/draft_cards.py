"""A draft as the board shows it: its state, its pace, its note, and its tokens with their probabilities."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, assert_never

from specrag.tracing.trace import Trace
from specrag.types import Draft, Part, Subset
from specrag.ui.lanes import draft_numbers
from specrag.ui.markup import known_probability
from specrag.ui.proof import Said, said_of
from specrag.ui.readout import Colour, Ref, authors_of, giving, same_as, winner_of
from specrag.ui.written import Token

_LONG: Final = 400
"""Characters that still fit the narrowest card."""
CardState: TypeAlias = Literal["waiting", "reading", "writing", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A draft as the board shows it."""

    number: int
    perspective: str
    refs: tuple[Ref, ...]
    draft: Draft | None
    state: CardState
    rate: str
    note: str
    winner: bool
    author: bool
    """Whether a synthesised answer was written from it, among others."""
    rationale: tuple[Token, ...]
    """Tokens with their probability; empty where the text is shown without colours."""
    answer: tuple[Token, ...]
    said: tuple[Said, ...] = ()
    """The rationale with what each of its sentences rests on, where it is shown without colours."""

    @property
    def untold(self) -> bool:
        """Whether there is text of which the chosen model gave no values."""
        wrote = self.draft is not None and bool(self.draft.rationale or self.draft.answer)
        return wrote and not (self.rationale or self.answer)


def scrolls(card: Card) -> bool:
    """Whether a rationale may be taller than its place, and holds nothing that the keyboard stops at."""
    stops = bool(card.rationale) or any(one.marks for one in card.said)
    return card.draft is not None and len(card.draft.rationale) > _LONG and not stops


def cards_of(trace: Trace, refs: dict[str, Ref], colour: Colour) -> list[Card]:
    """A card per subset, in order, and one per draft that has no subset of its own."""
    subsets = {subset.id: subset for subset in trace.subsets}
    drafts = {draft.subset_id: draft for draft in trace.drafts}
    return [
        _card(trace, number, refs, subset=subsets.get(key), draft=drafts.get(key), colour=colour)
        for key, number in draft_numbers(trace).items()
    ]


def _card(
    trace: Trace,
    number: int,
    refs: dict[str, Ref],
    *,
    subset: Subset | None,
    draft: Draft | None,
    colour: Colour,
) -> Card:
    ids = subset.passage_ids if subset else tuple(refs)
    own = tuple(refs[passage_id] for passage_id in ids if passage_id in refs)
    return Card(
        number=number,
        perspective=subset.perspective if subset else "all passages",
        refs=own,
        draft=draft,
        state=_card_state(trace, draft),
        rate=_rate(draft),
        note=_note(trace, draft),
        winner=number == winner_of(trace),
        author=number in authors_of(trace),
        rationale=_tokens(draft, "rationale", colour),
        answer=_tokens(draft, "answer", colour),
        said=said_of(trace, draft, own) if colour == "none" else (),
    )


def _card_state(trace: Trace, draft: Draft | None) -> CardState:
    if draft is None or draft.finish_reason is None:
        if trace.status != "running":
            return "cancelled"
        if draft is None or not (draft.prompt_tokens or draft.tokens or draft.rationale or draft.answer):
            return "waiting"
        return "writing" if draft.tokens or draft.rationale or draft.answer else "reading"
    match draft.finish_reason:
        case "error":
            return "failed"
        case "cancelled":
            return "cancelled"
        case "stop" | "length":
            return "done"
        case _:
            assert_never(draft.finish_reason)


def _rate(draft: Draft | None) -> str:
    if draft is None or not (draft.tokens or draft.prompt_tokens):
        return ""
    if not draft.tokens:
        return f"{'reading' if draft.finish_reason is None else 'read'} {draft.prompt_tokens:,} tok"
    times = [token.at_ms for token in draft.tokens if token.at_ms is not None]
    count = f"{len(draft.tokens):,} tok"
    taken = times[-1] - times[0] if len(times) > 1 else 0.0
    return f"{count}, {(len(times) - 1) / taken * 1000:.0f} tok/s" if taken > 0 else count


def _note(trace: Trace, draft: Draft | None) -> str:
    match _card_state(trace, draft):
        case "failed":
            return f"failed: {draft.error if draft and draft.error else 'no answer came'}"
        case "cancelled":
            return "stopped"
        case "waiting" | "reading" | "writing":
            return ""
        case "done":
            return _agreement(trace, draft) if draft else ""


def _agreement(trace: Trace, draft: Draft) -> str:
    if draft.abstained:
        return "abstained"
    finished = all(other.finish_reason is not None for other in trace.drafts)
    if not finished or not draft.usable or len(trace.drafts) == 1:
        return "" if draft.usable else "no answer"
    order = draft_numbers(trace)
    others = [order[other.subset_id] for other in giving(trace, same_as(draft)) if other is not draft]
    return f"agrees with {', '.join(map(str, others)) or 'none'}"


def _tokens(draft: Draft | None, part: Part, colour: Colour) -> tuple[Token, ...]:
    if draft is None or colour == "none":
        return ()
    tokens = draft.tokens if colour == "drafter" else draft.verifier_tokens
    return tuple((token.text, known_probability(token.logprob)) for token in tokens if token.part == part)
