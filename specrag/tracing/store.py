"""Where traces are kept: one SQLite file, readable by any SQLite tool.

A row holds what lists are made from, the trace as its public JSON document, and the events it was folded
from, so that a run can be replayed at its own pace. Connections are opened per call: SQLite is quick at that,
and no connection is ever shared between threads.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from specrag.errors import TraceError
from specrag.events import Event
from specrag.tracing.codec import events_from_json, events_to_json, from_json, to_json
from specrag.tracing.trace import Trace
from specrag.types import PipelineName, RunStatus

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    run_id     TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    pipeline   TEXT NOT NULL,
    question   TEXT NOT NULL,
    status     TEXT NOT NULL,
    decision   TEXT,
    elapsed_ms REAL NOT NULL,
    trace      BLOB NOT NULL,
    events     BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_by_time ON runs (created_at DESC);
"""


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


class TraceStore:
    """Traces in the SQLite file at `path`.

    Raises:
        TraceError: the file cannot be opened or is not a database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)

    def save(self, trace: Trace, events: Sequence[Event]) -> None:
        """Keep a run; a run with the same id is replaced."""
        row = (
            trace.run_id,
            trace.created_at,
            trace.pipeline,
            trace.question,
            trace.status,
            trace.decision.kind if trace.decision else None,
            trace.elapsed_ms,
            _pack(to_json(trace)),
            _pack(events_to_json(events)),
        )
        with self._connection() as connection:
            connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def load(self, run_id: str) -> Trace:
        """The trace of a run.

        Raises:
            TraceError: there is no such run.
        """
        return from_json(_unpack(self._blob("trace", run_id)))

    def events(self, run_id: str) -> list[Event]:
        """The events of a run, in their order.

        Raises:
            TraceError: there is no such run.
        """
        return events_from_json(_unpack(self._blob("events", run_id)))

    def recent(self, limit: int = 50) -> list[RunSummary]:
        """The newest runs first."""
        query = (
            "SELECT run_id, created_at, pipeline, question, status, decision, elapsed_ms FROM runs "
            "ORDER BY created_at DESC, rowid DESC LIMIT ?"
        )
        with self._connection() as connection:
            rows = connection.execute(query, (limit,)).fetchall()
        names = ("run_id", "created_at", "pipeline", "question", "status", "decision", "elapsed_ms")
        return [RunSummary(**dict(zip(names, row, strict=True))) for row in rows]

    def _blob(self, column: str, run_id: str) -> bytes:
        query = {
            "trace": "SELECT trace FROM runs WHERE run_id = ?",
            "events": "SELECT events FROM runs WHERE run_id = ?",
        }[column]
        with self._connection() as connection:
            row = connection.execute(query, (run_id,)).fetchone()
        if row is None:
            raise TraceError(f"There is no run “{run_id[:40]}” here; it may belong to another machine.")
        return bytes(row[0])

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            raise TraceError(f"The traces at {self._path.name} cannot be used: {error}.") from error


def _pack(text: str) -> bytes:
    return zlib.compress(text.encode())


def _unpack(blob: bytes) -> str:
    return zlib.decompress(blob).decode()
