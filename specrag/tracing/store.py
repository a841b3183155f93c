"""Where traces are kept: one SQLite file, readable by any SQLite tool.

A run is a row that lists and searches are made from, the trace as its public JSON document, and the events it
was folded from, so that it can be replayed at its own pace. Who may see which run is not decided here but in
`history.py`.
"""

import json
import sqlite3
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from specrag.errors import TraceError, UsageError
from specrag.events import Event
from specrag.library.visitors import PASSING
from specrag.text import printable
from specrag.tracing import imports
from specrag.tracing.codec import events_from_json, events_to_json, from_json, to_dict
from specrag.tracing.database import Database
from specrag.tracing.schema import TOLD, insert, is_id, pack, prepare, shown_id, told, unpack
from specrag.tracing.search import COLUMNS, RunFilter, RunSummary, conditions, stamp, summary
from specrag.tracing.trace import Trace
from specrag.types import Rating

__all__ = ["RunFilter", "RunSummary", "TraceStore", "missing"]

_REPLACED: Final = "ON CONFLICT (run_id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in (*TOLD, "owner", "imported")
)
_SURPLUS: Final = """run_id IN (
    SELECT run_id FROM (
        SELECT run_id, rowid AS age, shared OR feedback IS NOT NULL AS held,
        substr(owner, 1, ?) = ? AS passing, row_number() OVER (
            PARTITION BY owner ORDER BY shared OR feedback IS NOT NULL DESC, rowid DESC
        ) AS place FROM runs
    ) WHERE run_id <> ? ORDER BY held, passing DESC, place DESC, age LIMIT ?
)"""
_MOST: Final = 500
"""Values of one statement; SQLite has a limit."""
_FARTHEST: Final = 1_000_000_000
"""Runs of a page, and before it; SQLite has a limit here as well."""


class TraceStore:
    """Traces in the SQLite file at `path`; the oldest beyond `max_runs` make room for new ones.

    What one owner has imported takes `max_imported_mb` megabytes there at most, packed as it is kept and with
    what was forked from it.

    Raises:
        TraceError: the file cannot be opened, is not a database, or is one of a newer version.
    """

    def __init__(
        self, path: Path, *, max_runs: int | None = None, max_imported_mb: int | None = None
    ) -> None:
        self._database = Database(path)
        self._max_runs = max_runs
        self._max_imported_mb = max_imported_mb
        prepare(self._database)

    def save(self, trace: Trace, events: Sequence[Event], *, owner: str = "", imported: bool = False) -> None:
        """Keep a run. One with the same id is replaced; what people have said of it stays.

        Raises:
            TraceError: it was forked from an imported run, and those would take more than they may.
        """
        try:
            self._put(trace, events, {"owner": owner, "imported": int(imported)}, _REPLACED)
        except UsageError as error:  # callers let an answer stand whose run cannot be kept
            raise TraceError(str(error)) from error

    def add(self, trace: Trace, events: Sequence[Event], *, owner: str) -> bool:
        """Keep a run that was imported; returns False, and does nothing, if its id is taken.

        Raises:
            UsageError: what the owner has imported would take more than it may.
        """
        given = {"owner": owner, "imported": imports.IMPORTED}
        return self._put(trace, events, given, "ON CONFLICT DO NOTHING")

    def load(self, run_id: str) -> Trace:
        """The trace of a run.

        Raises:
            TraceError: there is no such run, or it is damaged.
        """
        return from_json(self._document("trace", run_id))

    def events(self, run_id: str) -> list[Event]:
        """The events of a run, in their order.

        Raises:
            TraceError: there is no such run, or they are damaged.
        """
        return events_from_json(self._document("events", run_id))

    def summary(self, run_id: str) -> RunSummary:
        """What a list shows of a run.

        Raises:
            TraceError: there is no such run.
        """
        if not is_id(run_id):
            raise missing(run_id)
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT {COLUMNS} FROM runs WHERE run_id = ?", (run_id,)).fetchone()  # noqa: S608 - our own names
        if row is None:
            raise missing(run_id)
        return summary(row)

    def recent(self, limit: int = 50) -> list[RunSummary]:
        """The newest runs first, whosever they are."""
        return self.find(None, RunFilter(), limit=limit)[0]

    def find(
        self, owner: str | None, wanted: RunFilter, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[RunSummary], int]:
        """A page of what is wanted, newest first, and how many there are; `owner` None means everybody's.

        Raises:
            UsageError: a date cannot be read, or a number is out of range.
        """
        if not (0 <= limit <= _FARTHEST and 0 <= offset <= _FARTHEST):
            raise UsageError(f"The limit and the offset of a list of runs lie between 0 and {_FARTHEST:,}.")
        condition, values = conditions(owner, wanted)
        query = (
            f"SELECT {COLUMNS} FROM runs WHERE {condition} "  # noqa: S608 - our own names
            "ORDER BY created_at DESC, rowid DESC LIMIT ? OFFSET ?"
        )
        with self._database.reading() as connection:
            rows = connection.execute(query, (*values, limit, offset)).fetchall()
            count = connection.execute(f"SELECT count(*) FROM runs WHERE {condition}", values).fetchone()[0]  # noqa: S608 - our own names
        return [summary(row) for row in rows], int(count)

    def children(self, run_id: str) -> list[RunSummary]:
        """The runs that were forked from a run, oldest first."""
        query = f"SELECT {COLUMNS} FROM runs WHERE parent = ? ORDER BY created_at, rowid"  # noqa: S608 - our own names
        if not is_id(run_id):
            return []
        with self._database.reading() as connection:
            rows = connection.execute(query, (run_id,)).fetchall()
        return [summary(row) for row in rows]

    def delete(self, run_ids: Sequence[str], owner: str | None) -> int:
        """Delete runs of an owner (None: of anybody); returns how many there were."""
        known = list(filter(is_id, dict.fromkeys(run_ids)))
        with self._database.writing() as connection:
            return sum(
                _delete(connection, f"run_id IN ({', '.join('?' * len(some))})", some, owner)
                for some in _batches(known)
            )

    def clear(self, owner: str | None, wanted: RunFilter) -> int:
        """Delete what is wanted; returns how many there were.

        Raises:
            UsageError: a date cannot be read.
        """
        condition, values = conditions(owner, wanted)
        with self._database.writing() as connection:
            return _delete(connection, condition, values, None)

    def expire(self, before: datetime, owners: str) -> int:
        """Delete what was kept before a time by owners whose names begin so, unless they share it; how many.

        An imported run may be older than the file, so it counts as old as the runs that were kept before it.
        """
        old = (
            "rowid <= (SELECT max(rowid) FROM runs WHERE created_at < ? AND imported <> ?) "
            "AND substr(owner, 1, ?) = ? AND NOT shared"
        )
        with self._database.writing() as connection:
            return _delete(connection, old, (stamp(before), imports.IMPORTED, len(owners), owners), None)

    def rate(self, run_id: str, rating: Rating | None, comment: str = "") -> None:
        """Note what somebody thought of a run; None takes it back.

        Raises:
            TraceError: there is no such run.
        """
        self._change(run_id, "feedback = ?, comment = ?", (rating, comment))

    def share(self, run_id: str, shared: bool) -> None:
        """Let anybody see a run who has its link, or nobody else any more.

        Raises:
            TraceError: there is no such run.
        """
        self._change(run_id, "shared = ?", (int(shared),))

    def _put(self, trace: Trace, events: Sequence[Event], given: dict[str, Any], taken: str) -> bool:
        document = to_dict(trace)
        row = told(document) | {"created_at": _moment(trace.created_at), **given}
        blobs = pack(json.dumps(document, ensure_ascii=False)), pack(events_to_json(events))
        with self._database.writing() as connection:
            row["imported"] = row["imported"] or imports.carried(connection, trace)
            if not insert(connection, row, taken):
                return False
            connection.execute("INSERT OR REPLACE INTO recordings VALUES (?, ?, ?)", (trace.run_id, *blobs))
            if row["imported"] and self._max_imported_mb is not None:
                imports.check(connection, row["owner"], self._max_imported_mb)
            if self._max_runs is not None:
                _make_room(connection, self._max_runs, trace.run_id)
        return True

    def _change(self, run_id: str, change: str, values: tuple[Any, ...]) -> None:
        if not is_id(run_id):
            raise missing(run_id)
        with self._database.writing() as connection:
            done = connection.execute(f"UPDATE runs SET {change} WHERE run_id = ?", (*values, run_id))  # noqa: S608 - our own names
        if not done.rowcount:
            raise missing(run_id)

    def _document(self, column: Literal["trace", "events"], run_id: str) -> str:
        if not is_id(run_id):
            raise missing(run_id)
        with self._database.reading() as connection:
            query = f"SELECT {column} FROM recordings WHERE run_id = ?"  # noqa: S608 - our own names
            row = connection.execute(query, (run_id,)).fetchone()
        if row is None:
            raise missing(run_id)
        try:
            return unpack(bytes(row[0]))
        except (zlib.error, ValueError, TypeError) as error:
            raise TraceError(
                f"The run “{shown_id(run_id)}” is damaged and cannot be read; delete it."
            ) from error


def missing(run_id: str) -> TraceError:
    """The refusal of a run that is not here, and in the same words of one that is somebody else's."""
    return TraceError(
        f"There is no run “{shown_id(run_id)}” here; it may have been deleted or belong to another machine."
    )


def _moment(created_at: str) -> str:
    """When a run was made; an imported one may say it in another way, and is listed all the same."""
    try:
        return stamp(datetime.fromisoformat(created_at))
    except (ValueError, OverflowError):
        return printable(created_at)[:40]


def _batches(values: list[str]) -> list[list[str]]:
    return [values[start : start + _MOST] for start in range(0, len(values), _MOST)]


def _delete(connection: sqlite3.Connection, condition: str, values: Sequence[Any], owner: str | None) -> int:
    """Delete the runs for which a condition holds, with their recordings."""
    if owner is not None:
        condition, values = f"{condition} AND owner = ?", (*values, owner)
    chosen = f"SELECT run_id FROM runs WHERE {condition}"  # noqa: S608 - our own names
    connection.execute(f"DELETE FROM recordings WHERE run_id IN ({chosen})", values)  # noqa: S608 - our own names
    return connection.execute(f"DELETE FROM runs WHERE {condition}", values).rowcount  # noqa: S608 - our own names


def _make_room(connection: sqlite3.Connection, most: int, newest: str) -> None:
    """Delete what was kept longest of those who have most, so that nobody's many runs cost another theirs.

    What somebody has shared or rated goes only when nothing else is left.
    """
    surplus = connection.execute("SELECT count(*) FROM runs").fetchone()[0] - most
    if surplus <= 0:
        return
    # what nobody can open again goes before anything else
    _delete(connection, _SURPLUS, (len(PASSING), PASSING, newest, surplus), None)
