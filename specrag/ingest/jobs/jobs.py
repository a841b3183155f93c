"""Uploads on their way into the store: a queue on the server, so that no reload and no restart loses one.

An upload is copied at once, because the page's temporary file may vanish, and written down beside its copy.
One daemon thread works through them, the owners taking turns; every change of a state is a new frozen
`JobState`, and readers get what is true now. An archive makes way for the files in it.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from specrag.errors import SpecragError, UsageError
from specrag.ingest.index import Indexer
from specrag.ingest.jobs.folder import not_copied, take
from specrag.ingest.jobs.ledger import Ledger
from specrag.ingest.jobs.line import JobQueue
from specrag.ingest.jobs.room import Limits, Room
from specrag.ingest.jobs.state import ENDED, Job, JobState, State, new_id
from specrag.ingest.jobs.worker import QueueWorker
from specrag.ingest.loaders import check_size
from specrag.ingest.text import clean_name

__all__ = ["ENDED", "IngestJobs", "JobState", "State"]

_PATIENCE_S = 30.0


class IngestJobs:
    """A bounded queue with one worker. All methods may be called from any thread."""

    def __init__(
        self,
        indexer: Indexer,
        staging: Path,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Go on where the last process stopped.

        Args:
            indexer: what makes documents of files.
            staging: of the queue alone; whatever else lies in it is deleted. While another process has it, a
                neighbour of it is taken.
            clock: for the times that people see, and for how long jobs are remembered.

        Raises:
            StoreError: the folder cannot be written.
        """
        limits = Limits.of(indexer.settings)
        self._indexer = indexer
        self._folder = take(staging)
        ledger = Ledger(self._folder, kept_bytes=limits.kept_bytes, now=clock().timestamp())
        self._queue = JobQueue(ledger, Room(limits, self._folder.root), clock)
        self._changed = threading.Condition()
        self._worker = QueueWorker(indexer, self._folder, self._queue, self._changed)
        self._worker.start()

    def submit(
        self,
        upload_path: Path,
        name: str,
        collection: str,
        *,
        owner: str = "",
        replace: bool = False,
        password: str | None = None,
    ) -> str:
        """Copy an upload and queue it; the id of its job.

        Args:
            upload_path: where the file is now; it may vanish afterwards.
            name: what the visitor calls it.
            collection: where it goes.
            owner: an opaque id of the visitor; owners take turns.
            replace: whether older documents of this name make way.
            password: opens an encrypted file; it is never written to disk.

        Raises:
            DocumentError: the file is empty, too large or unreadable; nothing was copied.
            TransientError: there is no room for it now.
            UsageError: the queue was closed.
        """
        shown, job = clean_name(name), new_id()
        size = self._size(upload_path, shown)
        with self._changed:
            self._check_open(shown)
            self._queue.room.enter(job, shown, (owner, size), self._queue.ledger)
        try:
            size = self._folder.copy(upload_path, job, shown)
            with self._changed:
                self._check_open(shown)
                state = JobState(
                    id=job, name=shown, collection=collection, submitted_at=self._queue.time(), owner=owner
                )
                place, locked = self._queue.ledger.next_place(), password is not None
                made = Job(state=state, place=place, replace=replace, locked=locked, size=size)
                self._queue.enter(made, password)
                self._changed.notify_all()
        except SpecragError:
            self._folder.remove(job)
            raise
        finally:
            with self._changed:
                self._queue.room.arrived(job)
        return job

    def jobs(self, collection: str) -> tuple[JobState, ...]:
        """The jobs of a collection, newest first."""
        with self._changed:
            return tuple(job.state for job in self._queue.of(collection) if not job.unpacked)

    def waiting_before(self, job: str) -> int:
        """How many files go before this one, the one at work among them; 0 if it does not wait."""
        with self._changed:
            return self._queue.before(job)

    def cancel(self, job: str) -> None:
        """Stop a job, or all files of an archive; what has ended stays as it is."""
        with self._changed:
            self._queue.cancel(self._queue.meant(job))
            self._changed.notify_all()

    def cancel_all(self, collection: str) -> None:
        """Stop all jobs of a collection."""
        with self._changed:
            self._queue.cancel(self._queue.of(collection))
            self._changed.notify_all()

    def retry(self, job: str, *, password: str | None = None) -> None:
        """Queue a job anew that has failed or was cancelled, at the end of its owner's line.

        Raises:
            UsageError: there is no such job, or its copy is no longer here.
            TransientError: there is no room for it now.
        """
        with self._changed:
            self._check_open("The file")
            self._queue.retry(job, password)
            self._changed.notify_all()

    def dismiss(self, job: str) -> None:
        """Forget a job that has ended, and its copy; one that has not ended stays."""
        with self._changed:
            self._queue.forget(self._queue.meant(job))
            self._changed.notify_all()

    def drop_collection(self, collection: str) -> None:
        """Cancel and forget all jobs of a collection; when it returns, none of them is at work any more."""
        self.cancel_all(collection)
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work_on(collection), _PATIENCE_S)
            self._queue.forget(self._queue.of(collection))
            self._changed.notify_all()

    def wait(self, job: str, timeout: float | None = None) -> JobState:
        """The state of a job once it has ended, or as it is after `timeout` seconds or when the queue closes.

        That of an archive which was unpacked is what its files come to.

        Raises:
            UsageError: there is no such job.
        """
        with self._changed:
            state = self._queue.seen(job)
            if state is None:
                raise UsageError(f"There is no upload {job}; look at the list of uploads.")
            # A job that ended may be forgotten while we wait for the lock, so its last state is kept here.
            last = [state]

            def ended() -> bool:
                seen = self._queue.seen(job)
                last[0] = seen or last[0]
                return last[0].state in ENDED or seen is None or not self._worker.is_alive()

            self._changed.wait_for(ended, timeout)
            return last[0]

    def close(self) -> None:
        """Stop at the next batch and leave the rest to the next start; a second call does nothing."""
        with self._changed:
            self._queue.closed = True
            self._changed.notify_all()
        self._worker.join(_PATIENCE_S)
        with self._changed:
            self._changed.notify_all()
            if not self._worker.is_alive():
                self._folder.close()

    def _size(self, upload: Path, shown: str) -> int:
        try:
            size = upload.stat().st_size
        except OSError as error:
            raise not_copied(shown, error) from error
        check_size(size, shown, self._indexer.settings)
        return size

    def _check_open(self, shown: str) -> None:
        if self._queue.closed:
            raise UsageError(f"{shown} was not added, because the program is shutting down.")

    def _at_work_on(self, collection: str) -> bool:
        at_work = self._queue.ledger.get(self._queue.at_work or "")
        return at_work is not None and at_work.state.collection == collection
