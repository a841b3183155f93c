"""Who takes room in the queue from whom."""

from pathlib import Path

import pytest

from specrag.errors import TransientError
from specrag.ingest.jobs.room import Limits, Room
from specrag.ingest.jobs.state import Job, JobState


def waiting(owner: str, files: int, size: int = 1) -> list[Job]:
    states = (
        JobState(id=f"{owner}{number}", name="a.md", collection="docs", submitted_at="", owner=owner)
        for number in range(files)
    )
    return [Job(state=state, place=place, size=size) for place, state in enumerate(states)]


def test_an_archive_of_one_does_not_shut_the_queue_for_others(tmp_path: Path) -> None:
    """The 500 files of one visitor's archive counted in full, and nobody else could add a single file."""
    room = Room(Limits(files=10, bytes=1000, kept_bytes=0), tmp_path)
    jobs = waiting("ann", files=40, size=20)
    room.enter("one", "b.md", ("ben", 100), jobs)
    with pytest.raises(TransientError, match="40 of your files are waiting already"):
        room.enter("two", "a.md", ("ann", 1), jobs)


def test_two_owners_fill_the_queue_between_them(tmp_path: Path) -> None:
    room = Room(Limits(files=10, bytes=1000, kept_bytes=0), tmp_path)
    with pytest.raises(TransientError, match="10 files are waiting already"):
        room.enter("one", "c.md", ("cem", 1), waiting("ann", files=5) + waiting("ben", files=5))
