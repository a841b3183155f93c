"""Comparisons: which runs belong together, in which order they ran, and what was common to them.

The runs themselves are ordinary ones and kept where all runs are; a comparison only names them. Its row
stands in the same SQLite file, in a table of its own. The order in which pipelines run rotates from one
comparison of the same pipelines to the next, so that over several none of them always has the cold start.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from specrag.errors import TraceError
from specrag.tracing.database import Database
from specrag.tracing.schema import is_id, shown_id
from specrag.types import PipelineName, RunStatus

_log = logging.getLogger(__name__)
_TABLE: Final = """CREATE TABLE IF NOT EXISTS comparisons (
    id         TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    owner      TEXT NOT NULL,
    lineup     TEXT NOT NULL,
    turn       INTEGER NOT NULL,
    document   TEXT NOT NULL
)"""
_INDEX: Final = "CREATE INDEX IF NOT EXISTS comparisons_by_owner ON comparisons (owner, created_at DESC)"

_SURPLUS: Final = """DELETE FROM comparisons WHERE id IN (
    SELECT id FROM (
        SELECT id, created_at, rowid AS age, row_number() OVER (
            PARTITION BY owner ORDER BY created_at DESC, rowid DESC
        ) AS place FROM comparisons
    ) WHERE id <> ? ORDER BY place DESC, created_at, age LIMIT max(0, (SELECT count(*) FROM comparisons) - ?)
)"""
"""Whoever has most loses their oldest first; the newest stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One question through several pipelines; everything that stands in columns is in the same order."""

    id: str
    created_at: str
    question: str
    collection: str
    owner: str = ""
    """Whose it is; empty belongs to nobody in particular."""
    pipelines: tuple[PipelineName, ...]
    run_ids: tuple[str, ...]
    """Known from the beginning; a run that has not begun is nowhere yet."""
    turn: int = 0
    """How many comparisons of the same pipelines came before; it gives the order."""
    order_note: str = ""
    """Why they run one after the other, in a sentence."""
    status: RunStatus = "running"
    begun: int = 0
    """How many runs have begun, in their order."""
    retrieve_ms: float | None = None
    """What finding the passages took, once for all; None until they are found."""
    passages: int = 0
    others: int = 0
    """Most other runs that used the models at the same time."""
    error: str = ""
    """Why it ended early, in a sentence."""

    @property
    def order(self) -> tuple[int, ...]:
        """The columns in the order in which they run."""
        return order_of(len(self.pipelines), self.turn)

    def has_begun(self, column: int) -> bool:
        """Whether the run of this column was ever started."""
        return column in self.order[: self.begun]


def order_of(count: int, turn: int) -> tuple[int, ...]:
    """The order of `count` runs in this turn.

    Everyone is at every place equally often in `count` turns in a row; the next `count` turns go backwards,
    so that it is not always the same one that comes before another.
    """
    places = list(range(count)) if (turn // max(count, 1)) % 2 == 0 else list(range(count))[::-1]
    first = turn % max(count, 1)
    return (*places[first:], *places[:first])


class ComparisonStore:
    """The comparisons in the SQLite file at `path`; beyond `most`, whoever has most loses their oldest.

    Raises:
        TraceError: the file cannot be used.
    """

    def __init__(self, path: Path, *, most: int) -> None:
        self._database = Database(path)
        self._most = most
        with self._database.writing() as connection:
            connection.execute(_TABLE)
            connection.execute(_INDEX)

    def add(self, comparison: Comparison) -> Comparison:
        """Keep a new one. Returns it with its turn."""
        lineup = _lineup(comparison.pipelines)
        with self._database.writing() as connection:
            query = "SELECT COALESCE(MAX(turn) + 1, 0) FROM comparisons WHERE lineup = ?"
            turn = int(connection.execute(query, (lineup,)).fetchone()[0])
            made = replace(comparison, turn=turn)
            _write(connection, made)
            connection.execute(_SURPLUS, (made.id, self._most))
        return made

    def save(self, comparison: Comparison) -> None:
        """Keep its newest state; does nothing for one that was deleted meanwhile."""
        with self._database.writing() as connection:
            known = connection.execute("SELECT 1 FROM comparisons WHERE id = ?", (comparison.id,))
            if known.fetchone():
                _write(connection, comparison)

    def load(self, identity: str) -> Comparison:
        """One comparison.

        Raises:
            TraceError: there is none, or its row cannot be read.
        """
        return _read(self._row(identity)[0])

    def owner(self, identity: str) -> str:
        """Whose it is, also of one that cannot be read.

        Raises:
            TraceError: there is none.
        """
        return self._row(identity)[1]

    def _row(self, identity: str) -> tuple[str, str]:
        """Its document and its owner."""
        query = "SELECT document, owner FROM comparisons WHERE id = ?"
        row: tuple[str, str] | None = None
        if is_id(identity):
            with self._database.reading() as connection:
                row = connection.execute(query, (identity,)).fetchone()
        if row is None:
            raise TraceError(missing(identity))
        return row

    def recent(self, owner: str | None, limit: int) -> list[Comparison]:
        """The newest ones of an owner first; None: of everybody. One that cannot be read is left out."""
        query = (
            "SELECT document FROM comparisons WHERE ?1 IS NULL OR owner = ?1 "
            "ORDER BY created_at DESC, rowid DESC LIMIT ?2"
        )
        with self._database.reading() as connection:
            rows = connection.execute(query, (owner, limit)).fetchall()
        return list(_readable(row[0] for row in rows))

    def expire(self, before: datetime, owners: str) -> int:
        """Delete those from before a time of owners whose names begin so; how many."""
        old = "julianday(created_at) < julianday(?) AND substr(owner, 1, ?) = ?"
        query = f"DELETE FROM comparisons WHERE {old}"  # noqa: S608 - our own words
        with self._database.writing() as connection:
            return connection.execute(query, (before.isoformat(), len(owners), owners)).rowcount

    def delete(self, identity: str) -> None:
        """Forget one; its runs stay."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM comparisons WHERE id = ?", (identity,))


def missing(identity: str) -> str:
    """What is said of a comparison that is not there, and of one that belongs to somebody else."""
    shown = shown_id(identity)
    return f"There is no comparison “{shown}” here; it may have been deleted, or be somebody else's."


def _lineup(pipelines: Sequence[PipelineName]) -> str:
    return ",".join(sorted(pipelines))


def _write(connection: sqlite3.Connection, comparison: Comparison) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO comparisons VALUES (?, ?, ?, ?, ?, ?)",
        (
            comparison.id,
            comparison.created_at,
            comparison.owner,
            _lineup(comparison.pipelines),
            comparison.turn,
            _adapter().dump_json(comparison).decode(),
        ),
    )


def _readable(documents: Iterable[str]) -> Iterator[Comparison]:
    for document in documents:
        try:
            yield _read(document)
        except TraceError as error:
            _log.warning("a comparison is left out of the list: %s", error)


def _read(document: str) -> Comparison:
    try:
        return _adapter().validate_json(document)
    except ValidationError as error:
        raise TraceError("A kept comparison is damaged and cannot be read; delete it.") from error


@cache
def _adapter() -> TypeAdapter[Comparison]:
    return TypeAdapter(Comparison)
