"""The Compare tab's HTML, piece by piece: pure functions from values to a string, markup in `templates/`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from specrag.prices import Prices, cost_text
from specrag.race import Race
from specrag.tracing.comparisons import Comparison
from specrag.tracing.trace import Trace
from specrag.ui import compare_words as words
from specrag.ui.compare_numbers import Measured
from specrag.ui.compare_phases import WORDS, Phase, own_ms, phases, sums
from specrag.ui.compare_reel import Frame, said
from specrag.ui.compare_words import absent
from specrag.ui.lanes import ticks
from specrag.ui.markup import render

_LIVE_AXIS_MS: Final = 2000.0
"""A live axis begins no shorter, or it would change its scale with every event."""
_LONGEST: Final = 400
"""Characters of a lane's line, of which only the first fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceLane:
    """One run in the race. Times count from the question."""

    name: str
    phases: tuple[Phase, ...]
    total_ms: float | None
    """None before it has begun."""
    ended: bool
    said: str
    reel: str
    """What it said from when on, as JSON; empty while nothing can be watched again."""


def status_line(text: str) -> str:
    """The one line that a screen reader is told of."""
    return render("status", text=text)


def how_note(summary: str) -> str:
    """Which settings hold; those of speculative RAG are chosen on the Ask tab."""
    return render("compare_how", text=summary.removeprefix("How: "))


def race_card(race: Race, reels: Sequence[Sequence[Frame]] = ()) -> str:
    """All runs on one clock; with `reels` they can be watched again."""
    made = race.comparison
    before = made.retrieve_ms or 0.0
    rows = [
        _lane(race, column, trace, before, reels[column] if reels else ())
        for column, trace in enumerate(race.traces)
    ]
    least = _LIVE_AXIS_MS if made.status == "running" else 0.0
    axis = ticks(max([least, before, *(row.total_ms or 0.0 for row in rows)]))
    kinds = {phase.kind for row in rows for phase in row.phases}
    return render(
        "compare_race",
        lanes=rows,
        before=before,
        ticks=axis,
        end=axis[-1],
        key=[(kind, word) for kind, word in WORDS.items() if kind in kinds and kind != "find"],
        watchable=bool(reels) and made.status != "running",
        fairness=words.fairness(race),
        id=made.id,
        question=made.question,
        words=WORDS,
    )


def table(race: Race, rows: Sequence[Measured | None], prices: Prices | None, *, example: bool) -> str:
    """The numbers beside each other; nothing while no run has ended with an answer."""
    if not any(rows):
        return ""
    return render(
        "compare_table",
        rows=[row for row in rows if row is not None],
        names={row.pipeline: words.name_of(row.pipeline) for row in rows if row is not None},
        ratio=words.ratio_text,
        cost=cost_text,
        agreement=words.agreement(rows),
        priced=prices is not None,
        price_note=words.price_note(prices, example=example),
        before=race.comparison.retrieve_ms or 0.0,
    )


def steps(race: Race) -> str:
    """The numbers of the stacked bars as a table, for whoever cannot see them or wants them exactly."""
    rows = {
        words.name_of(name): sums(phases(trace))
        for name, trace in zip(race.comparison.pipelines, race.traces, strict=True)
        if trace is not None and trace.status != "running"
    }
    if not rows:
        return ""
    before = race.comparison.retrieve_ms or 0.0
    kinds = [kind for kind in WORDS if any(kind in taken for taken in rows.values())]
    return render("compare_steps", rows=rows, kinds=kinds, words=WORDS, before=before)


def recent(comparisons: Sequence[Comparison], shown: str, *, everybody: bool = False, focus: str = "") -> str:
    """The visitor's newest comparisons, to open and to delete.

    Args:
        comparisons: newest first.
        shown: id of the one on the page.
        everybody: whether whoever can open the page sees every comparison.
        focus: what asks for the focus of the keyboard, once; its button went away with a line.
    """
    rows = [(one, ", ".join(map(words.name_of, one.pipelines))) for one in comparisons]
    return render("compare_list", rows=rows, shown=shown, everybody=everybody, focus=focus)


def idle() -> str:
    """Nothing compared yet."""
    return render(
        "empty",
        title="Let them race",
        text="Ask one question of two to four pipelines. All read the same passages and run one after the "
        "other, so that none slows another down; afterwards you see them on one clock, with tokens and cost.",
        hints=(),
    )


def _lane(race: Race, column: int, trace: Trace | None, before: float, reel: Sequence[Frame]) -> RaceLane:
    made = race.comparison
    name = words.name_of(made.pipelines[column])
    if trace is None:
        return RaceLane(name=name, phases=(), total_ms=None, ended=False, said=absent(race, column), reel="")
    moved = tuple(
        Phase(kind=phase.kind, start_ms=before + phase.start_ms, end_ms=before + phase.end_ms)
        for phase in phases(trace)
    )
    return RaceLane(
        name=name,
        phases=moved,
        total_ms=before + own_ms(trace),
        ended=trace.status != "running",
        said=said(trace)[:_LONGEST],
        reel=json.dumps([(at, text[:_LONGEST]) for at, text in reel], ensure_ascii=False) if reel else "",
    )
