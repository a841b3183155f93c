"""The list of runs: what stands in a row, how it is called, and the HTML of one page of it. Pure.

A row says in words what has come of a run, never by colour alone. Questions and answers are hostile and pass
the autoescape of `markup.render`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from specrag.tracing.search import RunFilter, RunSummary
from specrag.tracing.trace import Trace
from specrag.ui.listing import SHOWN, Leaf
from specrag.ui.markup import render
from specrag.ui.options import PIPELINES
from specrag.ui.sentences import counted, status_text
from specrag.ui.trace_filter import DECISIONS, RATINGS, is_empty, mark_of

SIGNS: Final = {
    "selected": "●",
    "synthesised": "◆",
    "disputed": "⚡",
    "direct": "→",
    "fallback": "↺",
    "abstained": "○",
    "failed": "✕",
    "cancelled": "■",
}
"""A sign beside the word, so that a glance tells them apart without colour."""
_MINUTE_S, _HOUR_S, _DAY_S, _WEEK_S = 60, 3600, 86_400, 7 * 86_400
_DATE_LENGTH: Final = len("2026-01-31")
_MINUTES: Final = len("2026-01-31T10:20")


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The runs beside one in the list; None where the list ends, or does not hold it."""

    newer: str | None = None
    older: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A run that goes on."""

    run_id: str
    question: str
    state: str


def outcome_of(run: RunSummary) -> str:
    """What has come of a run, by the keys of `DECISIONS`."""
    if run.status in ("failed", "cancelled"):
        return run.status
    return "disputed" if run.disputed else run.decision if run.decision in DECISIONS else "direct"


def live_of(trace: Trace) -> Live:
    """A run that goes on, in one line."""
    return Live(run_id=trace.run_id, question=trace.question, state=status_text(trace))


def leaf_of(rows: Sequence[RunSummary], found: int, page: int) -> Leaf[RunSummary]:
    """One page of the list, of which the store has read only these rows."""
    return Leaf(rows=tuple(rows), found=found, page=page, pages=pages_of(found))


def pages_of(found: int) -> int:
    """How many pages so many rows take; an empty list has one."""
    return max(1, -(-found // SHOWN))


def neighbours(rows: Sequence[str], run_id: str) -> Neighbours:
    """The runs beside this one; `rows` are ids, newest first."""
    if run_id not in rows:
        return Neighbours()
    at = rows.index(run_id)
    return Neighbours(newer=rows[at - 1] if at else None, older=rows[at + 1] if at + 1 < len(rows) else None)


def ago(written: str, now: datetime) -> str:
    """When something was, as people say it; the date where it is long ago or cannot be told."""
    try:
        then = datetime.fromisoformat(written)
    except ValueError:
        return written[:_DATE_LENGTH]
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = (now - then).total_seconds()
    if not 0 <= seconds < _WEEK_S:
        return "just now" if -_MINUTE_S <= seconds < 0 else then.date().isoformat()
    if seconds < _MINUTE_S:
        return "just now"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S:.0f} min ago"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S:.0f} h ago"
    return f"{counted(int(seconds // _DAY_S), 'day')} ago"


def moment_text(written: str) -> str:
    """A time in full, in UTC, for where no script turns it into the visitor's own."""
    return f"{written[:_MINUTES].replace('T', ' ')} UTC" if len(written) > _DATE_LENGTH else written


def count_text(total: int, page: Leaf[RunSummary], wanted: RunFilter) -> str:
    """How many runs there are, and how many of them are seen."""
    match = "" if is_empty(wanted) else f", {page.found:,} {'matches' if page.found == 1 else 'match'}"
    return f"{counted(total, 'run')}{match}, {len(page.rows):,} shown"


def runs_list(
    page: Leaf[RunSummary],
    *,
    total: int,
    wanted: RunFilter,
    live: Sequence[Live] = (),
    now: datetime,
    focus: str = "",
    focus_on: str = "",
    forget: str = "",
) -> str:
    """One page of the list with what can be done; `total` counts all runs that this visitor may see.

    `focus` is a word that is new whenever the list wants the focus of the keyboard, which goes to the run
    `focus_on` if that is in it; `forget` is new whenever what was ticked is gone.
    """
    return render(
        "traces_list",
        page=page,
        total=total,
        searched=not is_empty(wanted),
        mark=mark_of(wanted),
        count=count_text(total, page, wanted),
        live=live,
        focus=focus,
        focus_on=focus_on if focus_on in {run.run_id for run in page.rows} else "",
        forget=forget,
        now=now,
        ago=ago,
        moment=moment_text,
        pipelines=PIPELINES,
        decisions=DECISIONS,
        signs=SIGNS,
        ratings=RATINGS,
        outcome=outcome_of,
        counted=counted,
    )
