"""The list of jobs on disk: it gives back what it was given, wholly or not at all."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from specrag.ingest.jobs.state import Job, JobState
from specrag.ingest.jobs.store import JobStore


def job(name: str, place: int = 1, part: int = 0) -> Job:
    state = JobState(
        id=f"id-{place}-{part}",
        name=name,
        collection="docs",
        submitted_at="2026-01-01T00:00:00+00:00",
        state="failed",
        done=3,
        total=7,
        message="A “sentence”.",
        reason="no_text",
        owner="v1",
        attempts=2,
        retryable=True,
    )
    return Job(state=state, place=place, part=part, archive="a", replace=True, size=12, ended_at=1.5)


def test_jobs_come_back_as_they_were_in_their_order(tmp_path: Path) -> None:
    jobs = [job("it's \U0001f600.pdf", 2), job("b.zip/x.md", 10, 2), job("b.zip/a.md", 10, 1)]
    store = JobStore(tmp_path / "jobs.db")
    store.write(jobs)
    store.write([jobs[0]], forget=["unknown"])
    store.close()
    again = JobStore(tmp_path / "jobs.db")
    assert again.load() == [jobs[0], jobs[2], jobs[1]]
    again.write(forget=[jobs[0].id])
    assert again.load() == [jobs[2], jobs[1]]
    again.close()


def test_a_write_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Half of an archive's files were queued when the disk became full."""
    store = JobStore(tmp_path / "jobs.db")
    store.write([job("a.md", 1)])
    broken = job("b.md", 2).now(name=b"bytes are no JSON")
    with pytest.raises(TypeError):
        store.write([job("c.md", 3), broken], forget=["id-1-0"])
    assert store.load() == [job("a.md", 1)]
    store.close()


def test_what_another_version_wrote_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = JobStore(path)
    store.write([job("a.md")])
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE jobs SET job = json_set(job, '$.later', 1, '$.state.later', 2)")
        connection.execute("INSERT INTO jobs VALUES ('x', 'no JSON'), ('y', '{}'), ('z', '[1]')")
    store = JobStore(path)
    assert store.load() == [job("a.md")]
    store.close()


def test_a_damaged_file_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(b"no database" * 1000)
    store = JobStore(path)
    assert store.load() == []
    store.close()
    assert (tmp_path / "jobs.db.damaged").read_bytes() == b"no database" * 1000
