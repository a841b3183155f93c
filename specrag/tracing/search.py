"""What a list of runs shows, and which of them somebody wants to see."""

import sqlite3
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from specrag.errors import UsageError
from specrag.tracing.imports import IMPORTED
from specrag.tracing.schema import folded, plain
from specrag.types import PipelineName, Rating, RunStatus

_WORDS: Final = 20
"""Words of a search that are looked for."""
_LONGEST: Final = 1000
"""Characters of a search that are read."""
_DATE_LENGTH: Final = len("2026-01-31")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A line of the history."""

    run_id: str
    created_at: str
    pipeline: PipelineName
    question: str
    status: RunStatus
    decision: str | None
    elapsed_ms: float
    feedback: Rating | None = None
    comment: str = ""
    parent: str | None = None
    """Id of the run that it was forked from."""
    owner: str = ""
    """Empty for what is the operator's."""
    shared: bool = False
    """Whether its owner lets anybody see it who has its link."""
    answer: str = ""
    """How the answer begins."""
    imported: bool = False
    rewritten: str | None = None
    """The question that stands alone, where a follow-up was rewritten."""
    disputed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted; what is left empty does not matter."""

    text: str = ""
    """Words that all occur in question, answer or id; case does not matter, and no sign means anything."""
    pipelines: tuple[PipelineName, ...] = ()
    decisions: tuple[str, ...] = ()
    """Kinds of decisions; also "disputed", "failed" and "cancelled"."""
    rating: Rating | Literal["none"] | None = None
    since: str = ""
    """ISO date or time, in UTC unless it says otherwise."""
    until: str = ""
    """ISO date, which is meant with all of its day, or time."""
    min_ms: float | None = None
    max_ms: float | None = None


COLUMNS: Final = ", ".join(field.name for field in fields(RunSummary))


def summary(row: sqlite3.Row | tuple[Any, ...]) -> RunSummary:
    """A line from the columns of `COLUMNS`."""
    values = dict(zip((field.name for field in fields(RunSummary)), row, strict=True))
    for name in ("shared", "disputed"):
        values[name] = bool(values[name])
    values["imported"] = values["imported"] == IMPORTED
    return RunSummary(**values)


def conditions(owner: str | None, wanted: RunFilter) -> tuple[str, list[Any]]:
    """The condition in SQL and its values; `owner` None means everybody's.

    Raises:
        UsageError: a date cannot be read.
    """
    tests: list[tuple[str, tuple[Any, ...]]] = []
    if owner is not None:
        tests.append(("owner = ?", (owner,)))
    tests += [
        ("instr(words, ?) > 0", (word,)) for word in plain(folded(wanted.text[:_LONGEST])).split()[:_WORDS]
    ]
    if wanted.pipelines:
        tests.append((f"pipeline IN ({_marks(wanted.pipelines)})", wanted.pipelines))
    if wanted.decisions:
        tests.append(_decided(wanted.decisions))
    tests += _rated(wanted.rating)
    if wanted.since.strip():
        tests.append(("created_at >= ?", (_moment(wanted.since),)))
    if wanted.until.strip():
        tests.append(("created_at < ?", (_moment(wanted.until, after=True),)))
    if wanted.min_ms is not None:
        tests.append(("elapsed_ms >= ?", (wanted.min_ms,)))
    if wanted.max_ms is not None:
        tests.append(("elapsed_ms <= ?", (wanted.max_ms,)))
    condition = " AND ".join(test for test, _ in tests) or "1"
    return condition, [value for _, values in tests for value in values]


def _decided(decisions: tuple[str, ...]) -> tuple[str, tuple[Any, ...]]:
    """A run that failed or was stopped may have decided before; it counts as what became of it."""
    marks = _marks(decisions)
    test = (
        f"(status IN ('failed', 'cancelled') AND status IN ({marks})"
        f" OR status = 'done' AND (decision IN ({marks}) OR disputed AND 'disputed' IN ({marks})))"
    )
    return test, decisions * 3


def _rated(rating: Rating | Literal["none"] | None) -> list[tuple[str, tuple[Any, ...]]]:
    if rating is None:
        return []
    return [("feedback IS NULL", ())] if rating == "none" else [("feedback = ?", (rating,))]


def _marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))


def _moment(text: str, *, after: bool = False) -> str:
    """A date as rows have it; `after` gives the first moment behind it.

    Raises:
        UsageError: it is no date.
    """
    written = text.strip()
    try:
        moment = datetime.fromisoformat(written)
        if after:
            moment += timedelta(days=1) if len(written) <= _DATE_LENGTH else timedelta(milliseconds=1)
        return stamp(moment)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"“{plain(written)[:40]}” is no date; write it like 2026-01-31.") from error


def stamp(moment: datetime) -> str:
    """A time as `created_at` has it, so that its order as text is the order in time."""
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="milliseconds")
