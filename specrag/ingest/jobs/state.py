"""What an upload is on its way: a frozen state that everybody may see, and what only the queue knows of it.

The two are apart because the page must never learn where a file came from or where its copy lies, and because
a password is in neither of them: it is not to reach the disk.
"""

import uuid
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from specrag.ingest.index import IngestResult

State: TypeAlias = Literal["queued", "reading", "embedding", "ready", "duplicate", "failed", "cancelled"]

ENDED: frozenset[State] = frozenset(("ready", "duplicate", "failed", "cancelled"))
REPEATABLE: frozenset[State] = frozenset(("failed", "cancelled"))
"""Ends after which a file may be tried again, and so its copy is kept."""
GONE: Final = "collection_deleted"
"""The reason of a failure after which nobody can try again, and nobody's copy is to stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Where one upload is."""

    id: str
    name: str
    """As the visitor knows it; that of a file in an archive is "archive.zip/inner.pdf"."""
    collection: str
    submitted_at: str
    state: State = "queued"
    done: int = 0
    """Pages while reading, chunks while embedding."""
    total: int = 0
    pages: int = 0
    chunks: int = 0
    document_id: str | None = None
    message: str | None = None
    """A sentence: why it failed, or what is missing of it."""
    reason: str | None = None
    owner: str = ""
    """Whoever brought it, by an opaque id; owners take turns."""
    attempts: int = 0
    """How often the program stopped while it was at work on this file."""
    replaced: bool = False
    """Whether older documents of this name made way for it."""
    retryable: bool = False
    """Whether its copy is still here, so that it can be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One upload as the queue keeps it."""

    state: JobState
    place: int
    """In the order of arrival."""
    part: int = 0
    """Among the files of one archive, which share its place."""
    archive: str | None = None
    """The job of the archive that it came out of."""
    unpacked: bool = False
    """An archive whose files have jobs of their own; it is no longer listed."""
    replace: bool = False
    locked: bool = False
    """Whether it came with a password, which is never written down."""
    size: int = 0
    """Bytes of its copy."""
    ended_at: float = 0.0
    """Seconds since 1970."""

    @property
    def id(self) -> str:
        """Of the job, for its whole life."""
        return self.state.id

    @property
    def order(self) -> tuple[int, int]:
        """Where it stands among all jobs."""
        return self.place, self.part

    @property
    def open(self) -> bool:
        """Whether something is still to be done."""
        return self.state.state not in ENDED and not self.unpacked

    @property
    def has_copy(self) -> bool:
        """Whether the file is to lie among the copies."""
        return self.open or self.state.retryable

    def now(self, **changes: Any) -> "Job":
        """This job in another state."""
        return replace(self, state=replace(self.state, **changes))


def new_id() -> str:
    """Of a job; nothing follows from it."""
    return uuid.uuid4().hex[:12]


def outcome(result: IngestResult, name: str) -> dict[str, Any]:
    """What a result changes in the state of its job."""
    if result.status == "failed":
        if result.reason == "cancelled":
            return cancelled(name)
        return failed(result.reason, result.error or f"{name} was not indexed.")
    return {
        "state": result.status,
        "done": result.chunks,
        "total": result.chunks,
        "pages": result.pages,
        "chunks": result.chunks,
        "document_id": result.document_id,
        "message": result.warning,
        "reason": None,
        "replaced": bool(result.replaced),
    }


def cancelled(name: str) -> dict[str, Any]:
    """The end of a job that somebody stopped."""
    sentence = f"{name} was cancelled; nothing of it is in the collection."
    return {"state": "cancelled", "reason": "cancelled", "message": sentence}


def failed(reason: str | None, message: str) -> dict[str, Any]:
    """The end of a job that went wrong."""
    return {"state": "failed", "reason": reason, "message": message}


def waiting() -> dict[str, Any]:
    """A state as it was before anything was done."""
    return {
        "state": "queued",
        "done": 0,
        "total": 0,
        "message": None,
        "reason": None,
        "retryable": False,
    }
