"""The runs of a comparison side by side: answer, decision, times, and drafts or hops in short. Pure."""

from dataclasses import dataclass
from typing import Final

from specrag.race import Race
from specrag.tracing.trace import Trace
from specrag.types import Draft
from specrag.ui import compare_words as words
from specrag.ui.compare_phases import own_ms
from specrag.ui.lanes import draft_numbers
from specrag.ui.markup import render
from specrag.ui.readout import look_of, winner_of
from specrag.ui.sentences import headline, status_text
from specrag.ui.written import answer_text

_LONGEST: Final = 4000
"""Characters of an answer that are shown; the run itself has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one draft or hop came to, in short."""

    number: int
    label: str
    text: str
    won: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One run beside the others."""

    name: str
    look: str
    headline: str
    answer: str = ""
    doing: str = ""
    """What stands there while there is no answer, and where none came."""
    reason: str = ""
    total_ms: float | None = None
    parts: tuple[Part, ...] = ()
    run_id: str = ""
    """Empty where there is nothing to open."""
    busy: bool = False


def columns(race: Race) -> str:
    """The runs side by side; one that has not begun keeps its place."""
    shown = tuple(_column(race, place, trace) for place, trace in enumerate(race.traces))
    return render("compare_columns", columns=shown)


def _column(race: Race, place: int, trace: Trace | None) -> Column:
    made = race.comparison
    name = words.name_of(made.pipelines[place])
    if trace is None:
        return Column(name=name, look="waiting", headline=words.absent(race, place))
    running = trace.status == "running"
    return Column(
        name=name,
        look=look_of(trace),
        headline=headline(trace),
        answer=answer_text(trace)[:_LONGEST],
        doing="" if trace.answer and trace.status in ("running", "done") else status_text(trace),
        reason=trace.decision.reason if trace.decision and not running else "",
        total_ms=None if running else (made.retrieve_ms or 0.0) + own_ms(trace),
        parts=(*_drafts(trace), *_hops(trace, made.passages)),
        run_id="" if running else trace.run_id,
        busy=running,
    )


def _drafts(trace: Trace) -> tuple[Part, ...]:
    numbers, won = draft_numbers(trace), winner_of(trace)
    return tuple(
        Part(
            number=numbers[draft.subset_id],
            label=f"Draft {numbers[draft.subset_id]}",
            text=_in_short(draft)[:_LONGEST],
            won=numbers[draft.subset_id] == won,
        )
        for draft in trace.drafts
    )


def _in_short(draft: Draft) -> str:
    if draft.abstained:
        return "no answer in its passages"
    if draft.finish_reason == "error":
        return "failed"
    return draft.answer or (f"{len(draft.tokens):,} tokens written" if draft.tokens else "waits")


def _hops(trace: Trace, given: int) -> tuple[Part, ...]:
    parts = [
        Part(number=hop.number, label=f"Hop {hop.number}", text=(hop.note or hop.query)[:_LONGEST])
        for hop in trace.hops
    ]
    more = len(trace.passages) - given
    if trace.hops and more > 0 and trace.status == "done":
        text = f"{more:,} {'passage' if more == 1 else 'passages'} that the others did not read"
        parts.append(Part(number=0, label="Found", text=text))
    return tuple(parts)
