"""Uploads on their way into the store: a queue on the server, so a reload of the page loses nothing.

An upload is copied at once, because the page's temporary file may vanish, and one daemon thread works through
the copies in order. Every change of a state is a new frozen `JobState`; readers get what is true now. The
queue and the history are bounded, and copies that a killed process left behind are deleted at the start.
"""

import itertools
import logging
import shutil
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from specrag.errors import DocumentError, TransientError, UsageError
from specrag.ingest.index import Indexer, IngestResult
from specrag.ingest.loaders import check_size
from specrag.ingest.text import clean_name

State: TypeAlias = Literal["queued", "reading", "embedding", "ready", "duplicate", "failed", "cancelled"]

ENDED: frozenset[State] = frozenset(("ready", "duplicate", "failed", "cancelled"))
_KEPT = 200
_WAITING = 100
_PATIENCE_S = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Where one upload is."""

    id: str
    name: str
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


class IngestJobs:
    """A bounded queue with one worker. All methods may be called from any thread."""

    def __init__(
        self,
        indexer: Indexer,
        staging: Path,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Start the worker; `staging` belongs to this queue alone and is emptied."""
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True, exist_ok=True)
        self._indexer = indexer
        self._staging = staging
        self._clock = clock
        self._changed = threading.Condition()
        self._jobs: dict[str, JobState] = {}
        """In the order of submission."""
        self._cancelled: set[str] = set()
        self._closed = False
        self._worker = threading.Thread(target=self._work, name="specrag-ingest", daemon=True)
        self._worker.start()

    def submit(self, upload_path: Path, name: str, collection: str) -> str:
        """Copy an upload and queue it; the id of its job.

        Raises:
            DocumentError: the file is empty, too large or unreadable; nothing was copied.
            TransientError: the queue is full.
            UsageError: the queue was closed.
        """
        shown = clean_name(name)
        job = uuid.uuid4().hex[:12]
        with self._changed:
            if self._closed:
                raise UsageError(f"{shown} was not added, because the program is shutting down.")
            if sum(state.state == "queued" for state in self._jobs.values()) >= _WAITING:
                raise TransientError(f"{_WAITING} files are waiting already; add {shown} when some are done.")
        self._copy(upload_path, shown, self._staging / job)
        with self._changed:
            now = self._clock().isoformat(timespec="seconds")
            self._jobs[job] = JobState(id=job, name=shown, collection=collection, submitted_at=now)
            self._forget_oldest()
            self._changed.notify_all()
        return job

    def jobs(self, collection: str) -> tuple[JobState, ...]:
        """The jobs of a collection, newest first."""
        with self._changed:
            return tuple(state for state in reversed(self._jobs.values()) if state.collection == collection)

    def cancel(self, job: str) -> None:
        """Stop a job at its next batch; one that has ended stays as it is."""
        with self._changed:
            state = self._jobs.get(job)
            if state is None or state.state in ENDED:
                return
            self._cancelled.add(job)
            if state.state == "queued":
                sentence = f"{state.name} was cancelled; nothing of it was kept."
                self._end(job, state="cancelled", reason="cancelled", message=sentence)

    def wait(self, job: str, timeout: float | None = None) -> JobState:
        """The state of a job once it has ended, or as it is after `timeout` seconds.

        Raises:
            UsageError: there is no such job.
        """
        with self._changed:
            if job not in self._jobs:
                raise UsageError(f"There is no upload {job}; look at the list of uploads.")
            # A job that ended may be forgotten while we wait for the lock, so its last state is kept here.
            last = [self._jobs[job]]

            def ended() -> bool:
                last[0] = self._jobs.get(job, last[0])
                return last[0].state in ENDED or job not in self._jobs

            self._changed.wait_for(ended, timeout)
            return last[0]

    def close(self) -> None:
        """Cancel everything and end the worker; a second call does nothing."""
        with self._changed:
            self._closed = True
            open_jobs = [job for job, state in self._jobs.items() if state.state not in ENDED]
            self._changed.notify_all()
        for job in open_jobs:
            self.cancel(job)
        self._worker.join(_PATIENCE_S)

    def _copy(self, source: Path, shown: str, target: Path) -> None:
        try:
            check_size(source.stat().st_size, shown, self._indexer.settings)
            shutil.copyfile(source, target)
        except OSError as error:
            target.unlink(missing_ok=True)
            raise DocumentError(
                "unreadable", f"{shown} could not be copied ({error.strerror or error}); upload it again."
            ) from error

    def _forget_oldest(self) -> None:
        surplus = len(self._jobs) - _KEPT
        ended = (job for job, state in self._jobs.items() if state.state in ENDED)
        for job in list(itertools.islice(ended, max(0, surplus))):
            del self._jobs[job]

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                result = self._indexed(job)
            except Exception:  # noqa: BLE001 - the worker must outlive a bug in the path of one file
                name = self._jobs[job].name
                _log.exception("indexing %s failed unexpectedly", name)
                self._end(job, state="failed", message=f"{name} failed unexpectedly; see the server's log.")
            else:
                self._end(job, **_outcome(result))

    def _indexed(self, job: str) -> IngestResult:
        state = self._jobs[job]

        def progress(stage: str, done: int, total: int) -> None:
            self._update(job, state=stage, done=done, total=total)

        def cancelled() -> bool:
            return job in self._cancelled

        return self._indexer.ingest(self._staging / job, state.name, state.collection, progress, cancelled)

    def _next(self) -> str | None:
        """The oldest job that waits, marked as being read; None when the queue is closed."""
        with self._changed:
            while True:
                if self._closed:
                    return None
                job = next((job for job, state in self._jobs.items() if state.state == "queued"), None)
                if job is not None:
                    self._update(job, state="reading")
                    return job
                self._changed.wait()

    def _update(self, job: str, **changes: Any) -> None:
        with self._changed:
            self._jobs[job] = replace(self._jobs[job], **changes)
            self._changed.notify_all()

    def _end(self, job: str, **changes: Any) -> None:
        (self._staging / job).unlink(missing_ok=True)
        with self._changed:
            self._cancelled.discard(job)
            self._update(job, **changes)
            self._forget_oldest()


def _outcome(result: IngestResult) -> dict[str, Any]:
    if result.status == "failed":
        state = "cancelled" if result.reason == "cancelled" else "failed"
        return {"state": state, "message": result.error, "reason": result.reason}
    return {
        "state": result.status,
        "done": result.chunks,
        "total": result.chunks,
        "pages": result.pages,
        "chunks": result.chunks,
        "document_id": result.document_id,
        "message": result.warning,
    }
