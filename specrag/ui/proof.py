"""Which sentences of the passages a draft rests on, and the ids by which the page points at them. Pure.

The panel of a passage marks its evidence (`evidence.py`); each mark has an id, and a sentence of a rationale
names the marks that it repeats, so that the one shows and opens the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from specrag.tracing.trace import Trace
from specrag.types import Draft
from specrag.ui.evidence import nearest, pieces, split_evidence
from specrag.ui.readout import Ref, told_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a passage, as its panel shows it."""

    text: str
    mark: str | None = None
    """Id of the mark, if it is evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A stretch of a rationale."""

    text: str
    marks: tuple[str, ...] = ()
    """Ids of the evidence that it repeats, the nearest first."""


def pieces_of(trace: Trace, ref: Ref) -> tuple[Piece, ...]:
    """The passage in pieces that join to it; evidence is marked."""
    told = told_of(trace, ref)
    split = split_evidence(ref.passage.text, told.rationales, told.answers)
    return tuple(
        Piece(text=text, mark=f"{ref.target}-e{place}" if marked else None)
        for place, (text, marked) in enumerate(split)
    )


def said_of(trace: Trace, draft: Draft | None, refs: Sequence[Ref]) -> tuple[Said, ...]:
    """The rationale of a finished draft in pieces that join to it; empty if there is nothing to point at."""
    if draft is None or draft.finish_reason is None or not draft.rationale:
        return ()
    marks = {piece.mark: piece.text for ref in refs for piece in pieces_of(trace, ref) if piece.mark}
    return tuple(Said(text=text, marks=nearest(text, marks)) for text in pieces(draft.rationale))
