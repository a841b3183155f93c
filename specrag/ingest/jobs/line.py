"""What happens to jobs, step by step, with neither threads nor files of its own.

Each method is one step from one true state to the next: what a person would see is on disk before it returns.
`jobs` holds the lock and the thread that makes the steps.
"""

import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from specrag.errors import UsageError
from specrag.ingest.jobs.ledger import Ledger
from specrag.ingest.jobs.order import FairLine
from specrag.ingest.jobs.room import Room
from specrag.ingest.jobs.state import ENDED, GONE, REPEATABLE, Job, JobState, State, cancelled, waiting
from specrag.ingest.jobs.summary import summary


class JobQueue:
    """The caller sees to it that one thread is here at a time."""

    def __init__(self, ledger: Ledger, room: Room, clock: Callable[[], datetime]) -> None:
        """Let everything wait that is open."""
        self.ledger = ledger
        self.room = room
        self.stop = threading.Event()
        """Set while the job at work is to stop."""
        self.at_work: str | None = None
        self.closed = False
        """Whether nothing new is begun or taken in."""
        self._clock = clock
        self._line = FairLine()
        self._passwords: dict[str, str] = {}
        for job in sorted(ledger, key=lambda job: job.order):
            self._let_wait(job)

    def time(self) -> str:
        """Now, as people read it."""
        return self._clock().isoformat(timespec="seconds")

    def enter(self, job: Job, password: str | None) -> None:
        """Let a new job wait.

        Raises:
            TransientError: it cannot be written down.
        """
        self.ledger.accept(job)
        if password is not None:
            self._passwords[job.id] = password
        self._let_wait(job)

    def begin(self) -> tuple[Job, str | None] | None:
        """The job whose turn it is, with its password; None if none waits."""
        identity = self._line.take()
        if identity is None:
            return None
        self.at_work = identity
        job = self.ledger[identity].now(state="reading")
        self.ledger.write(job)
        return job, self._passwords.get(identity)

    def report(self, identity: str, stage: State, done: int, total: int) -> None:
        """How far the job at work is."""
        before = self.ledger[identity]
        job = before.now(state=stage, done=done, total=total)
        if stage == before.state.state:
            self.ledger.show(job)
        else:
            self.ledger.write(job)

    def end(self, identity: str, changes: dict[str, Any]) -> None:
        """A job has come to its end."""
        now = self._clock().timestamp()
        job = self._ended(self.ledger[identity], changes, now)
        self._left_work(identity)
        self.ledger.write(job)
        self.ledger.prune(now)

    def give_back(self, identity: str) -> None:
        """The program ends: the job at work waits for the next start."""
        job = self.ledger[identity].now(**waiting())
        self._left_work(identity)
        self.ledger.write(job)
        self._let_wait(job)

    def unpacked(self, identity: str, members: Collection[Job]) -> None:
        """The files of an archive wait in its place.

        Raises:
            TransientError: they cannot be written down.
        """
        archive = replace(self.ledger[identity], unpacked=True)
        self.ledger.accept(archive, *members)
        self._left_work(identity)
        password = self._passwords.pop(identity, None)
        for job in members:
            if password is not None:
                self._passwords[job.id] = password
            self._let_wait(job)

    def cancel(self, jobs: Collection[Job]) -> None:
        """Stop jobs; those that have ended stay as they are."""
        now = self._clock().timestamp()
        idle = [job for job in jobs if job.open and job.id != self.at_work]
        if any(job.id == self.at_work for job in jobs):
            self.stop.set()
        for job in idle:
            self._line.remove(job.id)
        self.ledger.write(*(self._ended(job, cancelled(job.state.name), now) for job in idle))
        self.ledger.prune(now)

    def retry(self, identity: str, password: str | None) -> None:
        """Let a job that has failed or was cancelled wait at the end of its owner's line."""
        job = self.ledger.get(identity)
        if job is None or not job.state.retryable:
            name = "This file" if job is None else job.state.name
            raise UsageError(f"{name} cannot be tried again, because its copy is gone; upload it again.")
        self.room.enter(identity, job.state.name, (job.state.owner, job.size), self.ledger)
        self.room.arrived(identity)
        again = replace(job.now(**waiting(), attempts=0), locked=password is not None, ended_at=0.0)
        self.enter(replace(again, place=self.ledger.next_place(), part=0), password)

    def forget(self, jobs: Collection[Job]) -> None:
        """Remove jobs that have ended, with their copies."""
        self.ledger.forget([job.id for job in jobs if not job.open])
        self.ledger.prune(self._clock().timestamp())

    def meant(self, identity: str) -> list[Job]:
        """The job of this id, or those of the files of this archive; none if it is unknown."""
        job = self.ledger.get(identity)
        if job is None:
            return []
        return self._members(job) if job.unpacked else [job]

    def seen(self, identity: str) -> JobState | None:
        """The state of a job; of an unpacked archive, what its files come to."""
        job = self.ledger.get(identity)
        if job is None:
            return None
        if not job.unpacked:
            return job.state
        return summary(job.state, [member.state for member in self._members(job)])

    def of(self, collection: str) -> list[Job]:
        """The jobs of a collection, newest first."""
        found = [job for job in self.ledger if job.state.collection == collection]
        return sorted(found, key=lambda job: job.order, reverse=True)

    def before(self, identity: str) -> int:
        """How many files go before a job that waits, the one at work among them."""
        before = self._line.before(identity)
        return 0 if before is None else before + (self.at_work is not None)

    def _ended(self, job: Job, changes: dict[str, Any], now: float) -> Job:
        self._passwords.pop(job.id, None)
        again = changes["state"] in REPEATABLE and changes.get("reason") != GONE
        return replace(job.now(**changes, retryable=again), ended_at=now)

    def _members(self, archive: Job) -> list[Job]:
        return [job for job in self.ledger if job.archive == archive.id]

    def _let_wait(self, job: Job) -> None:
        if job.state.state not in ENDED and not job.unpacked:
            self._line.add(job.id, job.state.owner, job.order)

    def _left_work(self, identity: str) -> None:
        if self.at_work == identity:
            self.at_work = None
            self.stop.clear()
