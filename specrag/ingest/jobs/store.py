"""The queue on disk: one SQLite file with a line for each job, so that a restart loses none.

Only the process that holds the folder's lock writes. A job is one JSON object, so that a newer version may
know more of it; a killed process loses nothing that was written here. A file that is damaged is set aside,
because a queue that cannot be read must not keep the program from starting.
"""

import json
import logging
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from specrag.ingest.jobs.state import Job, JobState

_SCHEMA = "CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, job TEXT NOT NULL)"
_BUSY_S = 10.0

_log = logging.getLogger(__name__)


class JobStore:
    """Jobs in the SQLite file at `path`."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            sqlite3.Error: the place cannot be written.
        """
        self._path = path
        self._one_at_a_time = threading.Lock()
        try:
            self._connection = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            _log.warning("the queue of uploads was damaged (%s) and begins anew", error)
            _set_aside(path)
            self._connection = self._open()

    def load(self) -> list[Job]:
        """All jobs, in their order."""
        with self._one_at_a_time:
            rows = self._connection.execute("SELECT job FROM jobs").fetchall()
        return sorted((job for row in rows if (job := _from_json(row[0]))), key=lambda job: job.order)

    def write(self, jobs: Iterable[Job] = (), forget: Iterable[str] = ()) -> None:
        """Keep these jobs as they are now and forget those, all at once or not at all.

        Raises:
            sqlite3.Error: nothing was written, as when the disk is full.
        """
        with self._one_at_a_time, self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO jobs VALUES (?, ?)",
                [(job.id, json.dumps(asdict(job))) for job in jobs],
            )
            self._connection.executemany("DELETE FROM jobs WHERE id = ?", [(job,) for job in forget])

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with self._one_at_a_time:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            connection.execute("SELECT id, job FROM jobs").fetchall()
            connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection


def _set_aside(path: Path) -> None:
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.replace(path.with_name(path.name + ".damaged"))


def _from_json(text: str) -> Job | None:
    """A job, or None if it is not one of ours."""
    with suppress(ValueError, TypeError, KeyError):
        record = json.loads(text)
        return Job(**{**_known(Job, record), "state": JobState(**_known(JobState, record["state"]))})
    return None


def _known(kind: type[Job | JobState], record: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in dict(record).items() if name in names}
