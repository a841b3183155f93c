"""A hop of multi-hop RAG as the page shows it: what was looked for, found and noted, and what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from specrag.tracing.trace import Trace
from specrag.types import Hop
from specrag.ui.readout import Ref, found_by

HopState: TypeAlias = Literal["searching", "reading", "noting", "asking", "done", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HopCard:
    """One hop."""

    number: int
    query: str
    refs: tuple[Ref, ...]
    note: str
    next_query: str
    state: HopState
    new: int
    """Passages that no earlier hop had found."""
    last: bool
    """Whether it ended without asking for more."""


def hops_of(trace: Trace, refs: dict[str, Ref]) -> list[HopCard]:
    """The hops in order."""
    seen: set[str] = set()
    cards = []
    for hop in trace.hops:
        found = found_by(trace, hop)
        cards.append(_card(trace, hop, refs, found=found, new=len(set(found) - seen)))
        seen |= set(found)
    return cards


def _card(trace: Trace, hop: Hop, refs: dict[str, Ref], *, found: Sequence[str], new: int) -> HopCard:
    return HopCard(
        number=hop.number,
        query=hop.query,
        refs=tuple(refs[key] for key in found if key in refs),
        note=hop.note,
        next_query=hop.next_query or "",
        state=state_of(trace, hop),
        new=new,
        last=hop.finished and not hop.next_query,
    )


def state_of(trace: Trace, hop: Hop) -> HopState:
    """How far a hop is."""
    if hop.finished:
        return "done"
    if trace.status != "running":
        return "stopped"
    if hop.next_query:
        return "asking"
    if hop.note:
        return "noting"
    reading = any(span.name in ("note", "query") and span.end_ms is None for span in trace.spans)
    return "reading" if reading else "searching"
