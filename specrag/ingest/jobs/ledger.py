"""All jobs, in memory for whoever asks and on disk for the next start, with the copies of their files.

The order of writing is what makes a kill harmless: a copy is there before its job is written, and goes only
after its job was written without it. What is left over either way is swept at the start.
"""

import logging
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import replace

from specrag.errors import TransientError
from specrag.ingest.jobs.folder import JobFolder
from specrag.ingest.jobs.history import outdated, surplus_copies
from specrag.ingest.jobs.recovery import recovered
from specrag.ingest.jobs.state import Job

_log = logging.getLogger(__name__)


class Ledger:
    """The caller sees to it that one thread is here at a time."""

    def __init__(self, folder: JobFolder, *, kept_bytes: int, now: float) -> None:
        """Read what is on disk, and bring it to what is true after a start at `now`."""
        self._folder = folder
        self._kept_bytes = kept_bytes
        self._jobs = {job.id: self._after_start(job, now) for job in folder.store.load()}
        self.write(*self._jobs.values())
        self.prune(now)
        folder.sweep({job.id for job in self if job.has_copy})
        self._last = max((job.place for job in self), default=0)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def __contains__(self, job: str) -> bool:
        return job in self._jobs

    def __getitem__(self, job: str) -> Job:
        return self._jobs[job]

    def get(self, job: str) -> Job | None:
        """A job, or None if it was forgotten or never was."""
        return self._jobs.get(job)

    def next_place(self) -> int:
        """The place of a job that arrives now."""
        self._last += 1
        return self._last

    def accept(self, *jobs: Job) -> None:
        """Take jobs in.

        Raises:
            TransientError: they cannot be written, and so would not survive a restart.
        """
        try:
            self._folder.store.write(jobs)
        except sqlite3.Error as error:
            raise TransientError(
                f"{jobs[0].state.name} cannot be queued on the server's disk ({error}); add it later."
            ) from error
        self._jobs.update((job.id, job) for job in jobs)
        self._folder.remove(*(job.id for job in jobs if not job.has_copy))

    def write(self, *jobs: Job) -> None:
        """Keep jobs as they are now. A full disk costs their memory of a restart only."""
        self._jobs.update((job.id, job) for job in jobs)
        self._on_disk(jobs, ())
        self._folder.remove(*(job.id for job in jobs if not job.has_copy))

    def show(self, job: Job) -> None:
        """Keep a job as it is now, in memory only: for progress, which a restart begins anew."""
        self._jobs[job.id] = job

    def forget(self, jobs: Collection[str]) -> None:
        """Remove jobs and their copies."""
        for job in jobs:
            self._jobs.pop(job, None)
        self._on_disk((), jobs)
        self._folder.remove(*jobs)

    def prune(self, now: float) -> None:
        """Forget what has been kept long enough."""
        if gone := outdated(self, now):
            self.forget(gone)
        if surplus := surplus_copies(self, self._kept_bytes):
            self.write(*(job.now(retryable=False) for job in surplus))

    def _after_start(self, job: Job, now: float) -> Job:
        if job.open:
            after = recovered(job, copied=self._folder.holds(job))
            return after if after.open else replace(after, ended_at=now)
        if job.state.retryable and not self._folder.holds(job):
            return job.now(retryable=False)
        return job

    def _on_disk(self, jobs: Collection[Job], forget: Collection[str]) -> None:
        try:
            self._folder.store.write(jobs, forget)
        except sqlite3.Error as error:
            _log.warning("the queue of uploads cannot be written: %s", error)
