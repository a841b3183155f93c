"""The tables of the file of traces, and how a file of an older version becomes one of this version.

What lists and searches read stands in `runs`, the long documents in `recordings`: a search through thousands
of runs then never turns over the pages of their documents.
"""

import json
import re
import sqlite3
import unicodedata
import zlib
from collections.abc import Mapping
from typing import Any, Final

from specrag.errors import TraceError
from specrag.text import printable
from specrag.tracing.database import Database

VERSION: Final = 2
SHOWN: Final = 200
"""Characters of an answer that a list shows."""
LONGEST_ID: Final = 200
"""Characters of an id; those that are made here have twelve."""
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no id holds."""
_SEARCHED: Final = 10_000
"""Characters of an answer that a search looks at."""

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS runs (
        run_id     TEXT PRIMARY KEY,
        created_at TEXT NOT NULL,
        pipeline   TEXT NOT NULL,
        question   TEXT NOT NULL,
        status     TEXT NOT NULL,
        decision   TEXT,
        elapsed_ms REAL NOT NULL,
        rewritten  TEXT,
        answer     TEXT NOT NULL DEFAULT '',
        disputed   INTEGER NOT NULL DEFAULT 0,
        parent     TEXT,
        words      TEXT NOT NULL,
        owner      TEXT NOT NULL DEFAULT '',
        feedback   TEXT,
        comment    TEXT NOT NULL DEFAULT '',
        shared     INTEGER NOT NULL DEFAULT 0,
        imported   INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE IF NOT EXISTS recordings (
        run_id TEXT PRIMARY KEY,
        trace  BLOB NOT NULL,
        events BLOB NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS runs_by_time ON runs (created_at DESC)",
    "CREATE INDEX IF NOT EXISTS runs_by_owner ON runs (owner, created_at DESC)",
    "CREATE INDEX IF NOT EXISTS runs_by_parent ON runs (parent)",
)
TOLD: Final = (
    "run_id",
    "created_at",
    "pipeline",
    "question",
    "status",
    "decision",
    "elapsed_ms",
    "rewritten",
    "answer",
    "disputed",
    "parent",
    "words",
)
"""Columns that follow from the trace; the others are what people have done with it."""


def prepare(database: Database) -> None:
    """Make the tables, or bring those of an older version to this one.

    Raises:
        TraceError: the file cannot be used, or a newer version has made it.
    """
    database.prepare()
    with database.reading() as connection:
        if _version(connection) == VERSION:
            return
    with database.writing() as connection:
        version = _version(connection)  # somebody else may have been quicker
        if version > VERSION:
            raise TraceError(
                f"The traces at {database.path.name} are of a newer version of specrag; install that version."
            )
        if version < VERSION:
            _migrate(connection)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection) -> None:
    old = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'runs'").fetchone()
    if old:
        connection.execute("DROP INDEX IF EXISTS runs_by_time")
        connection.execute("ALTER TABLE runs RENAME TO runs_1")
    for statement in _TABLES:
        connection.execute(statement)
    if old:
        _copy(connection)
        connection.execute("DROP TABLE runs_1")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _copy(connection: sqlite3.Connection) -> None:
    """Take the runs of version 1 over. What a run said of itself stands; the rest is read from its trace."""
    kept = ("run_id", "created_at", "pipeline", "question", "status", "decision", "elapsed_ms")
    rows = connection.execute(f"SELECT {', '.join(kept)}, trace FROM runs_1 ORDER BY rowid")  # noqa: S608 - our own names
    for *values, blob in rows:
        listed = told(_document(bytes(blob)) | dict(zip(kept, values, strict=True)))
        listed["decision"] = values[5]
        insert(connection, listed)
    connection.execute("INSERT INTO recordings SELECT run_id, trace, events FROM runs_1")


def _document(blob: bytes) -> dict[str, Any]:
    """The document in an old row; one that is damaged lists as what its row says."""
    try:
        document = json.loads(unpack(blob))
    except (zlib.error, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def told(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a list tells of a run, by column, from its `specrag.trace/1` document."""
    decision, answer, parent = (_part(document, name) for name in ("decision", "answer", "parent"))
    text, rewritten = str(answer.get("text", "")), document.get("rewritten")
    searched = (document["question"], rewritten or "", text[:_SEARCHED], document["run_id"])
    return {
        "run_id": document["run_id"],
        "created_at": document["created_at"],
        "pipeline": document["pipeline"],
        "question": plain(document["question"]),
        "status": document["status"],
        "decision": decision.get("kind"),
        "elapsed_ms": document["elapsed_ms"],
        "rewritten": plain(rewritten) if rewritten else None,
        "answer": plain(text[:SHOWN]),
        "disputed": int(bool(decision.get("conflict"))),
        "parent": parent.get("run_id"),
        "words": plain("\n".join(folded(part) for part in searched)),
    }


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, Mapping) else {}


def insert(connection: sqlite3.Connection, values: Mapping[str, Any], otherwise: str = "") -> bool:
    """Put a row into `runs`; `otherwise` is what happens where the id is taken. Whether a row was written."""
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    statement = f"INSERT INTO runs ({names}) VALUES ({marks}) {otherwise}"  # noqa: S608 - our own names
    return connection.execute(statement, dict(values)).rowcount > 0


def folded(text: str) -> str:
    """What two texts have in common that differ only in case or in the form of their letters."""
    return unicodedata.normalize("NFKC", text).casefold()


def plain(text: str) -> str:
    """Text that SQLite takes: without lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def is_id(text: str) -> bool:
    """Whether anything kept can have this id; callers send whatever they like, also what SQLite refuses."""
    return len(text) <= LONGEST_ID and CONTROL.search(text) is None


def shown_id(text: str) -> str:
    """An id as a sentence says it."""
    return printable(text[:LONGEST_ID])[:40]


def pack(text: str) -> bytes:
    """A document as it is kept."""
    return zlib.compress(text.encode("utf-8", "replace"))


def unpack(blob: bytes) -> str:
    """The document again."""
    return zlib.decompress(blob).decode("utf-8")
