"""What becomes of an upload when the program starts again.

One that waited goes on waiting. One that was at work when the program stopped waits again, but not for ever:
a file that stops the program each time it is read would never let it run.
"""

from typing import Any

from specrag.ingest.jobs.state import Job, failed, waiting

ATTEMPTS = 3
"""Stops of the program during one file after which the file is no longer tried by itself."""


def recovered(job: Job, *, copied: bool) -> Job:
    """An open job after a start; `copied` says whether its copy is here in full."""
    stopped = job.state.state != "queued"
    attempts = job.state.attempts + stopped
    if not copied:
        return job.now(**_lost(job.state.name))
    if attempts >= ATTEMPTS:
        return job.now(attempts=attempts, retryable=True, **_given_up(job))
    if job.locked:
        return job.now(attempts=attempts, retryable=True, **_locked(job.state.name))
    return job.now(**{**waiting(), "attempts": attempts})


def _lost(name: str) -> dict[str, Any]:
    return failed("lost", f"{name} was on its way when the program stopped, and is lost; upload it again.")


def _given_up(job: Job) -> dict[str, Any]:
    doing = "embedded" if job.state.state == "embedding" else "read"
    return failed(
        "interrupted",
        f"{job.state.name} was being {doing} when the program stopped, three times; it may be what stops it,"
        " so it is tried again only if you say so.",
    )


def _locked(name: str) -> dict[str, Any]:
    return failed(
        "encrypted",
        f"{name} came with a password, which is not kept while the program is stopped; try it again with the"
        " password.",
    )
