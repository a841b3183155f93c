"""What is remembered of uploads that have ended, and for how long."""

from dataclasses import replace

from specrag.ingest.jobs.history import KEPT, outdated, surplus_copies
from specrag.ingest.jobs.state import Job, JobState, State

DAY = 86_400.0


def job(number: int, state: State = "failed", *, collection: str = "docs", ended: float = 0.0) -> Job:
    made = JobState(
        id=f"j{number}",
        name=f"{number}.pdf",
        collection=collection,
        submitted_at="2026-01-01",
        state=state,
        retryable=state == "failed",
    )
    return Job(state=made, place=number, size=10, ended_at=ended)


def test_the_oldest_ends_of_a_full_collection_go() -> None:
    jobs = [job(number) for number in range(KEPT + 3)] + [job(999, collection="other")]
    assert sorted(outdated(jobs, now=0.0)) == ["j0", "j1", "j2"]


def test_the_files_of_an_archive_stay_together_until_all_have_ended() -> None:
    """Of an archive with 500 files, whoever waited for it was told of the last 200."""
    archive = replace(job(0, "reading"), unpacked=True)
    files = [replace(job(number), place=0, part=number, archive="j0") for number in range(1, KEPT + 4)]
    last = replace(job(999, "reading"), place=0, part=999, archive="j0")
    assert outdated([archive, *files, last], now=DAY) == []
    ended = [archive, *files, replace(job(999, ended=DAY), place=0, part=999, archive="j0")]
    assert outdated(ended, now=DAY + 1) == []
    assert sorted(outdated(ended, now=DAY + 61)) == ["j1", "j2", "j3", "j4"]
    assert "j0" in outdated(ended, now=32 * DAY)


def test_what_has_not_ended_is_never_forgotten() -> None:
    jobs = [job(number, "queued") for number in range(KEPT + 3)]
    assert outdated(jobs, now=1000 * DAY) == []


def test_failures_are_remembered_longer_than_successes() -> None:
    jobs = [job(1, "ready"), job(2, "duplicate"), job(3, "failed"), job(4, "cancelled")]
    assert sorted(outdated(jobs, now=2 * DAY)) == ["j1", "j2"]
    assert sorted(outdated(jobs, now=31 * DAY)) == ["j1", "j2", "j3", "j4"]


def test_the_oldest_copies_go_when_they_take_too_much() -> None:
    jobs = [job(number, ended=float(number)) for number in range(5)] + [job(9, "queued")]
    assert [item.id for item in surplus_copies(jobs, limit=30)] == ["j1", "j0"]
    assert surplus_copies(jobs, limit=50) == []
