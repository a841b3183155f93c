"""What a trace says, in the page's terms: numbered passages, the winner, sides of a dispute, votes, looks.

Pure, and without markup: the templates only place what stands here. Cards of drafts and hops are made in
`draft_cards.py` and `hop_cards.py`, sentences in `sentences.py`, figures in `tally.py`.
"""

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Literal, TypeAlias, assert_never

from specrag.decide import in_contest
from specrag.text import normalise_answer
from specrag.tracing.trace import Trace
from specrag.types import Draft, Hop, Passage, Role, Side
from specrag.ui.evidence import evidence_in
from specrag.ui.lanes import draft_numbers

Colour: TypeAlias = Literal["none", "drafter", "verifier"]
Look: TypeAlias = Literal[
    "running", "selected", "synthesised", "fallback", "abstained", "direct", "failed", "cancelled"
]

_QUOTE: Final = 200
"""Characters of a sentence that is quoted beside another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A passage as the page points at it."""

    number: int
    passage: Passage
    target: str
    """Id of the panel with its text, the quick look."""
    opens: str
    """What the viewer is asked to open: the run and the passage."""
    drafts: tuple[int, ...] = ()
    """Numbers of the drafts that read it; each has its hue."""
    hops: tuple[int, ...] = ()
    """Numbers of the hops that found it; each has its hue."""
    whole: Role | None = None
    """The model that reads all passages at once, where there are no drafts."""
    everywhere: bool = False
    """Whether it is a cluster of its own, and so in every draft."""

    @property
    def hues(self) -> tuple[int, ...]:
        """What its dots stand for."""
        return self.drafts or self.hops


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a side of a dispute rests on; `ref` is None where the passage is not in the trace."""

    ref: Ref | None
    text: str
    quote: str = ""
    """The sentence of the passage that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideView:
    """One of the disputed answers, with all drafts that give it."""

    answer: str
    drafts: tuple[int, ...]
    sources: tuple[Source, ...]


def id_prefix(trace: Trace, scope: str) -> str:
    """How the ids of this run begin: safe in an attribute whatever the run is called."""
    return re.sub(r"[^A-Za-z0-9_-]", "", f"sr-{scope}-{trace.run_id}")


def refs_of(trace: Trace, scope: str) -> dict[str, Ref]:
    """The passages by id, numbered as they were retrieved."""
    prefix, order = id_prefix(trace, scope), draft_numbers(trace)
    whole = writer_of(trace) if is_direct(trace) else None
    return {
        passage.id: Ref(
            number=number,
            passage=passage,
            target=f"{prefix}-p{number}",
            opens=f"{trace.run_id}:{passage.id}",
            drafts=tuple(order[subset.id] for subset in trace.subsets if passage.id in subset.passage_ids),
            hops=tuple(hop.number for hop in trace.hops if passage.id in found_by(trace, hop)),
            whole=whole,
            everywhere=passage.id in trace.singletons,
        )
        for number, passage in enumerate(trace.passages, 1)
    }


def found_by(trace: Trace, hop: Hop) -> tuple[str, ...]:
    """Passages of a hop; of one that goes on, those that no other hop had found."""
    if hop.finished or hop.passage_ids:
        return tuple(dict.fromkeys(hop.passage_ids))
    others = {found for other in trace.hops for found in other.passage_ids}
    return tuple(passage.id for passage in trace.passages if passage.id not in others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was written from a passage."""

    rationales: tuple[str, ...]
    answers: tuple[str, ...]


def told_of(trace: Trace, ref: Ref) -> Told:
    """What was written from a passage; finished texts only, so that an open panel stays as it is."""
    order = draft_numbers(trace)
    drafts = [
        draft
        for draft in trace.drafts
        if draft.finish_reason is not None and not draft.abstained and order[draft.subset_id] in ref.drafts
    ]
    notes = (hop.note for hop in trace.hops if hop.finished and hop.number in ref.hops)
    final = trace.answer if trace.status == "done" else None
    read_whole = (final.text,) if final and ref.whole is not None else ()
    cited = (final.text,) if final and ref.passage.id in final.citations else ()
    return Told(
        rationales=(*(draft.rationale for draft in drafts), *notes, *read_whole),
        answers=(*cited, *(draft.answer for draft in drafts)),
    )


def writer_of(trace: Trace) -> Role:
    """The model that writes an answer itself, where no draft is the answer."""
    return "drafter" if trace.pipeline == "drafter" else "verifier"


def is_direct(trace: Trace) -> bool:
    """Whether one model answers from all passages at once, also inside a speculative run with few of them."""
    if trace.pipeline in ("standard", "drafter"):
        return True
    few = trace.pipeline == "speculative" and not trace.subsets and not trace.drafts
    return few and (
        any(span.name == "answer" for span in trace.spans)
        or (trace.decision is not None and trace.decision.kind == "direct")
    )


def is_synthesising(trace: Trace) -> bool:
    """Whether the verifier is to write one answer from the drafts: nothing has won until it is there."""
    return trace.status == "running" and trace.config.get("decision") == "synthesise"


def winner_of(trace: Trace) -> int | None:
    """Number of the draft that is the answer; an answer that was written afresh has none."""
    decision = trace.decision
    if decision is None or decision.kind != "selected" or decision.draft_index is None:
        return None
    inside = 0 <= decision.draft_index < len(trace.drafts)
    if not inside or is_synthesising(trace):
        return None
    return draft_numbers(trace)[trace.drafts[decision.draft_index].subset_id]


def winning_draft(trace: Trace) -> Draft | None:
    """The draft that is the answer."""
    number = winner_of(trace)
    order = draft_numbers(trace)
    return next((draft for draft in trace.drafts if number and order[draft.subset_id] == number), None)


def authors_of(trace: Trace) -> tuple[int, ...]:
    """Numbers of the drafts that a synthesised answer rests on: all that they cite, it cites as well."""
    if trace.decision is None or trace.decision.kind != "synthesised" or trace.answer is None:
        return ()
    order, cited = draft_numbers(trace), set(trace.answer.citations)
    contest = [trace.drafts[index] for index in in_contest(trace.drafts)]
    return tuple(
        order[draft.subset_id] for draft in contest if draft.citations and cited.issuperset(draft.citations)
    )


def same_as(draft: Draft) -> str:
    """What makes two answers equal, as `decide` sees it."""
    return normalise_answer(draft.answer) or draft.answer


def giving(trace: Trace, answer: str) -> list[Draft]:
    """The drafts that give this answer (in the form of `same_as`)."""
    return [
        draft for draft in trace.drafts if draft.usable and not draft.abstained and same_as(draft) == answer
    ]


def sides_of(trace: Trace, refs: dict[str, Ref]) -> tuple[SideView, ...]:
    """The disputed answers, the chosen one first, with their drafts and sources."""
    sides = trace.decision.sides if trace.decision else ()
    return tuple(
        SideView(answer=side.answer, drafts=_drafts_of(trace, side.draft_index), sources=_sources(side, refs))
        for side in sides
    )


def _drafts_of(trace: Trace, index: int) -> tuple[int, ...]:
    """Numbers of a draft and of those that say the same; none if the trace does not hold it."""
    if not 0 <= index < len(trace.drafts):
        return ()
    order, speaker = draft_numbers(trace), trace.drafts[index]
    return tuple(order[draft.subset_id] for draft in giving(trace, same_as(speaker)) or [speaker])


def _sources(side: Side, refs: dict[str, Ref]) -> tuple[Source, ...]:
    """The passages of a side; what only has a name keeps it."""
    named = zip_longest(side.passage_ids, side.sources, fillvalue="")
    return tuple(
        Source(ref=refs.get(key), text=name, quote=_quote(refs[key], side) if key in refs else "")
        for key, name in named
        if key in refs or name
    )


def _quote(ref: Ref, side: Side) -> str:
    """What a passage says for a side, cut to a length that can be compared with the other side's."""
    said = " ".join(next(iter(evidence_in(ref.passage.text, (), (side.answer,))), "").split())
    return said if len(said) <= _QUOTE else f"{said[: _QUOTE - 1].rstrip()}…"


def votes_of(trace: Trace, winner: int | None) -> dict[str, list[int]]:
    """Who gave the winner's answer, who another one, who none."""
    votes: dict[str, list[int]] = {"agrees": [], "differs": [], "abstained": []}
    order = draft_numbers(trace)
    mine = next((same_as(draft) for draft in trace.drafts if order[draft.subset_id] == winner), None)
    written = trace.decision is not None and trace.decision.kind == "synthesised"
    for draft in trace.drafts if winner is not None or written else ():
        if draft.abstained:
            votes["abstained"].append(order[draft.subset_id])
        elif mine is not None and draft.usable and order[draft.subset_id] != winner:
            votes["agrees" if same_as(draft) == mine else "differs"].append(order[draft.subset_id])
    return votes


def look_of(trace: Trace) -> Look:
    """Which of its faces the answer card wears."""
    match trace.status:
        case "running" | "failed" | "cancelled":
            return trace.status
        case "done":
            return trace.decision.kind if trace.decision else "direct"
        case _:
            assert_never(trace.status)
