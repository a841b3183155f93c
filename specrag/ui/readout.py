"""What a trace says, in the terms of the page: numbered passages, cards, sides of a dispute, votes, figures.

Pure, and without markup: the templates only place what stands here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from specrag.text import normalise_answer
from specrag.tracing.trace import Trace
from specrag.types import Draft, Part, Passage, Subset
from specrag.ui import figures
from specrag.ui.figures import draft_numbers
from specrag.ui.markup import UNKNOWN, probability, time_text

Colour: TypeAlias = Literal["none", "drafter", "verifier"]
CardState: TypeAlias = Literal["waiting", "reading", "writing", "done", "failed", "cancelled"]
Look: TypeAlias = Literal[
    "running", "selected", "synthesised", "fallback", "abstained", "direct", "failed", "cancelled"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A passage as the page points at it."""

    number: int
    passage: Passage
    target: str
    drafts: tuple[int, ...]
    """Numbers of the drafts that read it; each has its hue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the different answers that the drafts gave."""

    answer: str
    drafts: tuple[int, ...]
    refs: tuple[Ref, ...]


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
    rationale: tuple[tuple[str, float], ...]
    """Tokens with their probability; empty where the text is shown without colours."""
    answer: tuple[tuple[str, float], ...]


def id_prefix(trace: Trace, scope: str) -> str:
    """How the ids of this run begin: safe in an attribute whatever the run is called."""
    return re.sub(r"[^A-Za-z0-9_-]", "", f"sr-{scope}-{trace.run_id}")


def refs_of(trace: Trace, scope: str) -> dict[str, Ref]:
    """The passages by id, numbered as they were retrieved."""
    prefix, order = id_prefix(trace, scope), draft_numbers(trace)
    return {
        passage.id: Ref(
            number=number,
            passage=passage,
            target=f"{prefix}-p{number}",
            drafts=tuple(order[subset.id] for subset in trace.subsets if passage.id in subset.passage_ids),
        )
        for number, passage in enumerate(trace.passages, 1)
    }


def rationales(trace: Trace, ref: Ref) -> tuple[str, ...]:
    """Of finished drafts only: a panel that is being read must not change with every token."""
    order = draft_numbers(trace)
    return tuple(
        draft.rationale
        for draft in trace.drafts
        if draft.finish_reason is not None and not draft.abstained and order[draft.subset_id] in ref.drafts
    )


def winner_of(trace: Trace) -> int | None:
    """Number of the draft that gave the answer; a fallback has none."""
    decision = trace.decision
    if decision is None or decision.kind not in ("selected", "synthesised") or decision.draft_index is None:
        return None
    inside = 0 <= decision.draft_index < len(trace.drafts)
    return draft_numbers(trace)[trace.drafts[decision.draft_index].subset_id] if inside else None


def _same(draft: Draft) -> str:
    """What makes two answers equal, as `decide` sees it."""
    return normalise_answer(draft.answer) or draft.answer


def _groups(trace: Trace) -> dict[str, list[Draft]]:
    """Drafts that give an answer, by what they answer."""
    groups: dict[str, list[Draft]] = {}
    for draft in trace.drafts:
        if draft.usable and not draft.abstained:
            groups.setdefault(_same(draft), []).append(draft)
    return groups


def sides_of(trace: Trace, refs: dict[str, Ref]) -> tuple[Side, ...]:
    """The disputed answers with their drafts and what they cite; all answers if the dispute names none."""
    order = draft_numbers(trace)
    groups = list(_groups(trace).values())
    dispute = (trace.decision.conflict if trace.decision else None) or ""
    named = [drafts for drafts in groups if f"“{drafts[0].answer}”" in dispute]
    return tuple(
        Side(
            answer=drafts[0].answer,
            drafts=tuple(order[draft.subset_id] for draft in drafts),
            refs=tuple(refs[cited] for cited in dict.fromkeys(_cited(drafts)) if cited in refs),
        )
        for drafts in named or groups
    )


def _cited(drafts: Sequence[Draft]) -> list[str]:
    return [cited for draft in drafts for cited in draft.citations]


def votes_of(trace: Trace, winner: int | None) -> dict[str, list[int]]:
    """Who gave the winner's answer, who another one, who none."""
    votes: dict[str, list[int]] = {"agrees": [], "differs": [], "abstained": []}
    if winner is None:
        return votes
    order = draft_numbers(trace)
    mine = next(_same(draft) for draft in trace.drafts if order[draft.subset_id] == winner)
    for draft in trace.drafts:
        if draft.abstained:
            votes["abstained"].append(order[draft.subset_id])
        elif draft.usable and order[draft.subset_id] != winner:
            votes["agrees" if _same(draft) == mine else "differs"].append(order[draft.subset_id])
    return votes


def figures_of(trace: Trace) -> list[tuple[str, str]]:
    """What the run took; a running one keeps the places of what will come."""
    verifier = trace.usage.verifier
    read, wrote = _drafter_tokens(trace)
    share = figures.models_share(trace)
    rows = [
        ("first draft token", time_text(figures.first_token_ms(trace))),
        ("verdict", time_text(figures.verdict_ms(trace))),
        ("so far" if trace.status == "running" else "total", time_text(trace.elapsed_ms)),
        ("drafter read / wrote", _read_wrote(read, wrote)),
        ("verifier read / wrote", _read_wrote(verifier.prompt_tokens, verifier.completion_tokens)),
        ("verifier scoring passes", f"{verifier.forward_passes:,}" if verifier.forward_passes else UNKNOWN),
        ("models' share of the run", UNKNOWN if share is None else f"{100 * share:.0f} %"),
    ]
    return [row for row in rows if trace.status == "running" or row[1] != UNKNOWN]


def _drafter_tokens(trace: Trace) -> tuple[int, int]:
    """Read and written; counted by ourselves as long as the run has not told."""
    told = trace.usage.drafter
    read = sum(draft.prompt_tokens for draft in trace.drafts)
    wrote = sum(len(draft.tokens) for draft in trace.drafts)
    if trace.status == "running":
        return max(read, told.prompt_tokens), max(wrote, told.completion_tokens)
    return told.prompt_tokens, told.completion_tokens


def _read_wrote(read: int, wrote: int) -> str:
    return f"{read:,} / {wrote:,} tok" if read or wrote else UNKNOWN


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
    return Card(
        number=number,
        perspective=subset.perspective if subset else "all passages",
        refs=tuple(refs[passage_id] for passage_id in ids if passage_id in refs),
        draft=draft,
        state=_card_state(trace, draft),
        rate=_rate(draft),
        note=_note(trace, draft),
        winner=number == winner_of(trace),
        rationale=_tokens(draft, "rationale", colour),
        answer=_tokens(draft, "answer", colour),
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
    others = [order[other.subset_id] for other in _groups(trace).get(_same(draft), []) if other is not draft]
    return f"agrees with {', '.join(map(str, others)) or 'none'}"


def _tokens(draft: Draft | None, part: Part, colour: Colour) -> tuple[tuple[str, float], ...]:
    if draft is None or colour == "none":
        return ()
    tokens = draft.tokens if colour == "drafter" else draft.verifier_tokens
    return tuple((token.text, probability(token.logprob)) for token in tokens if token.part == part)


def look_of(trace: Trace) -> Look:
    """Which of its faces the answer card wears."""
    match trace.status:
        case "running" | "failed" | "cancelled":
            return trace.status
        case "done":
            return trace.decision.kind if trace.decision else "direct"
        case _:
            assert_never(trace.status)


def status_text(trace: Trace) -> str:
    """Where the run stands, in one sentence without a running clock."""
    match trace.status:
        case "failed":
            return f"Failed: {trace.error.message if trace.error else 'the run gave no reason.'}"
        case "cancelled":
            return f"Stopped: {trace.error.message}" if trace.error else "Stopped."
        case "done":
            return f"Done in {time_text(trace.elapsed_ms)}: {_outcome(trace)}."
        case "running":
            return _progress(trace)
        case _:
            assert_never(trace.status)


def _progress(trace: Trace) -> str:
    open_steps = {span.name for span in trace.spans if span.end_ms is None}
    total = max(len(trace.subsets), len(trace.drafts))
    done = sum(draft.finish_reason is not None for draft in trace.drafts)
    if "fallback" in open_steps:
        return "No draft was good enough: the verifier answers afresh from all passages"
    if "verify" in open_steps:
        usable = sum(draft.usable for draft in trace.drafts)
        return f"Verifying {usable} {'draft' if usable == 1 else 'drafts'} in one pass"
    if trace.answer:
        return "Writing the answer"
    if total:
        return f"Drafting: {done} of {total} drafts done"
    return f"{len(trace.passages)} passages found" if trace.passages else "Looking for passages"


def _outcome(trace: Trace) -> str:
    total = len(trace.drafts)
    match trace.decision.kind if trace.decision else "direct":
        case "selected":
            return f"draft {winner_of(trace)} of {total} was selected"
        case "synthesised":
            return f"one answer was written from {total} drafts"
        case "fallback":
            return "no draft was good enough, the verifier answered from all passages"
        case "abstained":
            return "the documents do not hold an answer"
        case "direct":
            return "answered from all passages"
