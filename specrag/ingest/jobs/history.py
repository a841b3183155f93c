"""How long uploads that have ended are remembered, and their copies kept.

A failure is to be read the next morning, after a restart too; a file that is ready is in the list of
documents anyway. Both are bounded, as are the copies of failed files, which serve to try again.
"""

from collections import Counter
from collections.abc import Iterable

from specrag.ingest.jobs.state import Job

KEPT = 200
"""Ended jobs of one collection."""
_DAY_S = 86_400.0
_SEEN_S = 60.0
_DAYS = {"ready": 1.0, "duplicate": 1.0}
_OTHER_DAYS = 30.0


def outdated(jobs: Iterable[Job], now: float) -> list[str]:
    """The jobs to forget at `now` (seconds since 1970): too old, or too many in their collection.

    The files of an archive stay together until all have ended and whoever waits for it has seen that; the
    archive itself is kept as long as one of them is.
    """
    jobs = list(jobs)
    together = {job.archive for job in jobs if job.archive and (job.open or now - job.ended_at < _SEEN_S)}
    newest_first = sorted(jobs, key=lambda job: job.order, reverse=True)
    of_collection: Counter[str] = Counter()
    gone: set[str] = set()
    for job in newest_first:
        if not job.open and not job.unpacked:
            of_collection[job.state.collection] += 1
            surplus = of_collection[job.state.collection] > KEPT
            if (surplus or _old(job, now)) and job.archive not in together:
                gone.add(job.id)
    alive = {job.archive for job in newest_first if job.id not in gone}
    gone |= {job.id for job in newest_first if job.unpacked and job.id not in alive}
    return [job.id for job in newest_first if job.id in gone]


def surplus_copies(jobs: Iterable[Job], limit: int) -> list[Job]:
    """The jobs whose copies go, the oldest first, so that those of ended jobs take `limit` bytes at most."""
    kept = 0
    surplus = []
    for job in sorted(jobs, key=lambda job: (job.ended_at, job.order), reverse=True):
        if job.state.retryable:
            kept += job.size
            if kept > limit:
                surplus.append(job)
    return surplus


def _old(job: Job, now: float) -> bool:
    return now - job.ended_at > _DAYS.get(job.state.state, _OTHER_DAYS) * _DAY_S
