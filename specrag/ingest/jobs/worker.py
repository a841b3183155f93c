"""The thread that works the queue of uploads off, one job after the other.

Reading happens in a process of its own and embedding on the thread of the models, so one thread is enough;
it outlives whatever a file does to it.
"""

import logging
import threading
from dataclasses import replace as changed
from typing import Any

from specrag.errors import DocumentError, SpecragError
from specrag.ingest.index import Indexer, IngestResult
from specrag.ingest.jobs.archive import is_one, members_of
from specrag.ingest.jobs.folder import JobFolder
from specrag.ingest.jobs.line import JobQueue
from specrag.ingest.jobs.state import GONE, Job, cancelled, failed, outcome
from specrag.library.shelves import comes_into_being

_log = logging.getLogger(__name__)


class QueueWorker(threading.Thread):
    """Takes jobs until the queue is closed. `changed` guards the queue and is told of every step."""

    def __init__(
        self, indexer: Indexer, folder: JobFolder, queue: JobQueue, changed: threading.Condition
    ) -> None:
        super().__init__(name="specrag-ingest", daemon=True)
        self._indexer = indexer
        self._folder = folder
        self._queue = queue
        self._changed = changed

    def run(self) -> None:
        """Work until the queue is closed."""
        while (turn := self._next()) is not None:
            job, password = turn
            try:
                self._check_collection(job)
                if is_one(job, self._folder):
                    self._unpack(job)
                else:
                    self._index(job, password)
            except SpecragError as failure:
                reason = failure.reason if isinstance(failure, DocumentError) else failure.kind
                self._end(job, failed(reason, str(failure)))
            except Exception:  # noqa: BLE001 - the worker must outlive a bug in the path of one file
                _log.exception("indexing %s failed unexpectedly", job.state.name)
                sentence = f"{job.state.name} failed unexpectedly; try it again, or see the server's log."
                self._end(job, failed("unexpected", sentence))

    def _next(self) -> tuple[Job, str | None] | None:
        """The job whose turn it is, marked as being read; None when the queue is closed."""
        with self._changed:
            while not self._queue.closed:
                if (turn := self._queue.begin()) is not None:
                    self._changed.notify_all()
                    return turn
                self._changed.wait()
            return None

    def _check_collection(self, job: Job) -> None:
        """Refuse a file whose collection was deleted while it waited, or while the program was stopped."""
        where = job.state.collection
        if not comes_into_being(where) and where not in self._indexer.store.collections():
            shown = job.state.name
            raise DocumentError(
                GONE,
                f"{shown} was not added, because its collection has been deleted; add it to another one.",
            )

    def _unpack(self, job: Job) -> None:
        members = members_of(job, self._folder, self._indexer.settings)
        with self._changed:
            try:
                if not self._queue.stop.is_set():
                    self._queue.unpacked(job.id, members)
                    self._changed.notify_all()
                    return
            except SpecragError:
                self._folder.remove(*(member.id for member in members))
                raise
        self._folder.remove(*(member.id for member in members))
        self._end(job, cancelled(job.state.name))

    def _index(self, job: Job, password: str | None) -> None:
        def progress(stage: Any, done: int, total: int) -> None:
            with self._changed:
                self._queue.report(job.id, stage, done, total)
                self._changed.notify_all()

        state = job.state
        result = self._indexer.ingest(
            self._folder.path(job.id),
            state.name,
            state.collection,
            progress,
            lambda: self._queue.closed or self._queue.stop.is_set(),
            password=password,
            replace=job.replace,
        )
        if result.reason == "cancelled" and not self._queue.stop.is_set():
            self._give_back(job)
        else:
            self._end(job, outcome(self._first_time(job, result), state.name))

    def _first_time(self, job: Job, result: IngestResult) -> IngestResult:
        """A document that a killed process had just stored is no duplicate of its own upload."""
        if result.status == "duplicate" and job.state.attempts and result.document_id:
            stored = self._indexer.store.find(job.state.collection, result.document_id)
            if stored is not None and stored.added_at >= job.state.submitted_at:
                return changed(result, status="ready")
        return result

    def _end(self, job: Job, changes: dict[str, Any]) -> None:
        with self._changed:
            self._queue.end(job.id, changes)
            self._changed.notify_all()

    def _give_back(self, job: Job) -> None:
        with self._changed:
            self._queue.give_back(job.id)
            self._changed.notify_all()
