"""Uploads over a restart: what waited goes on, what was at work is tried again, and nothing is left behind."""

import io
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from specrag.errors import StoreError, UsageError
from specrag.ingest.index import Indexer
from specrag.ingest.jobs.jobs import IngestJobs
from specrag.retrieval.chroma import ChromaStore
from tests.job_parts import (
    PATIENCE,
    HeldEmbedder,
    as_if_killed,
    copies,
    ends,
    indexer_of,
    text,
    written,
)

pytestmark = pytest.mark.integration


@pytest.fixture
def embedder(embedder_path: Path) -> HeldEmbedder:
    return HeldEmbedder(embedder_path / "tokenizer.json")


@pytest.fixture
def indexer(embedder: HeldEmbedder) -> Iterator[Indexer]:
    store = ChromaStore(None)
    yield indexer_of(store, embedder)
    embedder.free.set()
    store.close()


Opened = Callable[..., IngestJobs]


@pytest.fixture
def opened(indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path) -> Iterator[Opened]:
    """Queues that are closed at the end."""
    made: list[IngestJobs] = []

    def one(folder: Path = tmp_path / "uploads", *, days: float = 0.0) -> IngestJobs:
        made.append(IngestJobs(indexer, folder, clock=lambda: datetime.now(UTC) + timedelta(days=days)))
        return made[-1]

    yield one
    embedder.free.set()
    for queue in made:
        queue.close()


def submitted(queue: IngestJobs, folder: Path, count: int) -> list[str]:
    return [
        queue.submit(written(folder, "upload", text(number)), f"{number}.md", "docs")
        for number in range(count)
    ]


def zipped(content: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("inside.md", content)
    return target.getvalue()


def test_closing_leaves_the_queue_to_the_next_start(
    opened: Opened, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """A server that was stopped in good order cancelled whatever waited."""
    queue = opened()
    embedder.hold()
    jobs = submitted(queue, tmp_path, 3)
    embedder.caught()
    threading.Timer(0.1, embedder.free.set).start()
    queue.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "specrag-ingest"]
    with pytest.raises(UsageError, match="shutting down"):
        submitted(queue, tmp_path, 1)
    queue.close()
    again = opened()
    assert sorted(ends(again, jobs)) == ["ready"] * 3
    assert {state.attempts for state in again.jobs("docs")} == {0}
    assert len(indexer.store.documents("docs")) == 3


def test_a_file_does_not_make_a_deleted_collection_again(
    opened: Opened, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """The bug: what waited while its collection was deleted made one that everybody saw but its owner."""
    made, first = "c-0123456789ab", "u-0123456789abcdef-documents"
    indexer.store.ensure_collection(made, indexer.embedder_fingerprint, labels={"owner": "visitor:ann"})
    queue = opened()
    embedder.hold()
    submitted(queue, tmp_path, 1)
    embedder.caught()
    lost = queue.submit(written(tmp_path, "upload", text(7)), "late.md", made)
    archive = queue.submit(written(tmp_path, "zip", zipped(text(8))), "late.zip", made)
    kept = queue.submit(written(tmp_path, "upload", text(9)), "first.md", first)
    threading.Timer(0.1, embedder.free.set).start()
    queue.close()
    indexer.store.delete_collection(made)
    again = opened()
    assert ends(again, [lost, archive, kept]) == ["failed", "failed", "ready"]
    state = again.wait(lost, 0)
    assert state.message == (
        "late.md was not added, because its collection has been deleted; add it to another one."
    )
    assert not state.retryable
    assert indexer.store.collections() == ("docs", first)
    assert copies(tmp_path / "uploads") == []


def test_a_killed_process_loses_no_upload(
    opened: Opened, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    embedder.hold()
    jobs = submitted(opened(), tmp_path, 3)
    embedder.caught()
    left = as_if_killed(tmp_path / "uploads", tmp_path / "killed")
    again = IngestJobs(indexer, left)  # it waits for the file that the first queue is still at work on
    assert [state.id for state in again.jobs("docs")] == jobs[::-1]
    assert again.wait(jobs[0], 0).attempts == 1
    embedder.free.set()
    assert sorted(set(ends(again, jobs))) in (["ready"], ["duplicate", "ready"])
    assert copies(left) == []
    again.close()


def test_what_a_killed_process_had_just_stored_is_ready_and_no_duplicate(
    opened: Opened, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """Between the store and the queue a kill made an upload a duplicate of itself."""
    queue = opened()
    embedder.hold()
    job = submitted(queue, tmp_path, 1)[0]
    embedder.caught()
    left = as_if_killed(tmp_path / "uploads", tmp_path / "killed")
    embedder.free.set()
    queue.wait(job, PATIENCE)
    state = opened(left).wait(job, PATIENCE)
    assert (state.state, state.attempts, state.chunks) == ("ready", 1, 1)


def test_a_file_that_stops_the_program_three_times_is_given_up(
    embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """A file that crashes its reader would keep the program from ever doing anything else."""
    folder, job = tmp_path / "uploads", ""
    for stop in range(3):
        embedder.hold()
        store = ChromaStore(None)
        queue = IngestJobs(indexer_of(store, embedder), folder)
        job = job or submitted(queue, tmp_path, 1)[0]
        embedder.caught()
        assert queue.wait(job, 0).attempts == stop
        folder = as_if_killed(folder, tmp_path / f"killed{stop}")
        embedder.free.set()
        queue.close()
        store.close()
    store = ChromaStore(None)
    queue = IngestJobs(indexer_of(store, embedder), folder)
    state = queue.wait(job, 0)
    assert (state.state, state.reason, state.attempts, state.retryable) == ("failed", "interrupted", 3, True)
    assert state.message is not None
    assert "0.md was being embedded when the program stopped, three times" in state.message
    queue.retry(job)
    assert (queue.wait(job, PATIENCE).state, queue.wait(job, 0).attempts) == ("ready", 0)
    queue.close()
    store.close()


def test_a_failure_is_still_said_after_a_restart_and_can_be_tried_again(
    opened: Opened, tmp_path: Path
) -> None:
    queue = opened()
    job = queue.submit(written(tmp_path, "blank", " \n"), "blank.md", "docs", owner="v1")
    before = queue.wait(job, PATIENCE)
    queue.close()
    again = opened()
    assert again.jobs("docs") == (before,)
    assert (before.state, before.reason, before.retryable, before.owner) == ("failed", "no_text", True, "v1")
    again.retry(job)
    assert again.wait(job, PATIENCE).reason == "no_text"
    again.dismiss(job)
    assert again.jobs("docs") == ()
    assert copies(tmp_path / "uploads") == []


def test_a_password_is_not_on_the_disk_and_is_asked_for_again(
    opened: Opened, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    queue = opened()
    embedder.hold()
    submitted(queue, tmp_path, 1)
    embedder.caught()
    secret = "correct horse battery"
    job = queue.submit(written(tmp_path, "locked", text(7)), "locked.md", "docs", password=secret)
    everything = b"".join(path.read_bytes() for path in (tmp_path / "uploads").rglob("*") if path.is_file())
    assert b"locked.md" in everything
    assert secret.encode() not in everything
    left = as_if_killed(tmp_path / "uploads", tmp_path / "killed")
    embedder.free.set()
    again = opened(left)
    state = again.wait(job, 0)
    assert (state.state, state.reason, state.retryable) == ("failed", "encrypted", True)
    again.retry(job, password=secret)
    assert again.wait(job, PATIENCE).state in ("ready", "duplicate")


def test_copies_and_jobs_that_have_lost_each_other_are_tidied_up(
    opened: Opened, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    queue = opened()
    embedder.hold()
    jobs = submitted(queue, tmp_path, 3)
    embedder.caught()
    left = as_if_killed(tmp_path / "uploads", tmp_path / "killed")
    embedder.free.set()
    (left / "copies" / jobs[1]).unlink()
    os.truncate(left / "copies" / jobs[2], 3)  # as a power cut may leave it
    (left / "copies" / "stray").write_text("of an upload that was never written down")
    (left / "unpacking" / "half").mkdir(parents=True)
    (left / "0123456789ab").write_text("as version 0.1 left them")
    again = opened(left)
    for job in jobs[1:]:
        state = again.wait(job, 0)
        assert (state.state, state.reason, state.retryable) == ("failed", "lost", False)
        assert state.message is not None
        assert "upload it again" in state.message
        with pytest.raises(UsageError, match="its copy is gone"):
            again.retry(job)
    again.wait(jobs[0], PATIENCE)
    assert copies(left) == []
    assert sorted(path.name for path in left.iterdir() if "jobs.db" not in path.name) == [
        "copies",
        "queue.lock",
    ]


def test_two_processes_never_share_a_folder_and_nothing_stays_behind(
    opened: Opened, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """With two replicas in one home, the second one emptied the folder of the first."""
    first, second = opened(), opened()
    embedder.hold()
    kept = submitted(first, tmp_path, 2)
    other = second.submit(written(tmp_path, "upload", text(9)), "9.md", "docs")
    assert (tmp_path / "uploads-2" / "copies" / other).exists()
    embedder.caught()
    threading.Timer(0.1, embedder.free.set).start()
    first.close()
    second.close()
    alone = opened()
    assert {state.id for state in alone.jobs("docs")} == {*kept, other}
    assert ends(alone, [*kept, other]).count("failed") == 0
    assert len(indexer.store.documents("docs")) == 3
    assert copies(tmp_path / "uploads") == copies(tmp_path / "uploads-2") == []


def test_old_ends_are_forgotten(opened: Opened, tmp_path: Path) -> None:
    queue = opened()
    ready = submitted(queue, tmp_path, 1)[0]
    bad = queue.submit(written(tmp_path, "blank", " \n"), "blank.md", "docs")
    ends(queue, [ready, bad])
    queue.close()
    tomorrow = opened(days=2)
    assert [state.id for state in tomorrow.jobs("docs")] == [bad]
    tomorrow.close()
    assert opened(days=31).jobs("docs") == ()
    assert copies(tmp_path / "uploads") == []


def test_a_damaged_list_of_jobs_does_not_keep_the_program_from_starting(
    opened: Opened, tmp_path: Path
) -> None:
    queue = opened()
    ends(queue, submitted(queue, tmp_path, 1))
    queue.close()
    (tmp_path / "uploads" / "jobs.db").write_bytes(
        b"no database at all, but long enough to be looked at" * 40
    )
    again = opened()
    assert again.jobs("docs") == ()
    assert ends(again, submitted(again, tmp_path, 1)) == ["duplicate"]


def test_a_folder_that_cannot_be_written_is_one_sentence(indexer: Indexer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="set SPECRAG_HOME to a folder"):
        IngestJobs(indexer, tmp_path / "file" / "uploads")
