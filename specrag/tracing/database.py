"""One SQLite file that several threads and processes use at once: the page, the command line, programs.

Connections are opened per call: SQLite is quick at that, and none is ever shared between threads. Who writes
says so at the beginning, since a reader that turns into a writer is refused at once instead of waiting.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from specrag.errors import TraceError

BUSY_S: Final = 30.0
"""Longest wait for another writer."""


class Database:
    """Reading and writing the file at `path`, in transactions.

    Raises:
        TraceError: its folder cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceError(f"The traces at {path.name} cannot be used: {error.strerror}.") from error

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file.

        Raises:
            TraceError: the file cannot be used.
        """
        with self._connection() as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else writes beside; an error undoes everything.

        Raises:
            TraceError: the file cannot be used, or others have written to it for too long.
        """
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def prepare(self) -> None:
        """Let readers read while somebody writes; the file remembers it.

        Raises:
            TraceError: the file cannot be used.
        """
        with self._connection() as connection:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)) as connection:
                connection.execute("PRAGMA secure_delete = ON")  # what is deleted is not left in the file
                yield connection
        except sqlite3.Error as error:
            raise TraceError(f"The traces at {self.path.name} cannot be used: {error}.") from error
        except (
            OverflowError,
            UnicodeEncodeError,
        ) as error:  # what somebody has sent, and the file cannot hold
            raise TraceError(
                f"The traces at {self.path.name} cannot hold this: {str(error)[:200]}."
            ) from error
