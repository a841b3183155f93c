"""What a person can do with uploads: stop them, try them again, put them away, delete their collection."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.ingest.index import Indexer
from specrag.ingest.jobs.jobs import IngestJobs
from specrag.ingest.process.reading import ReadingProcess
from specrag.retrieval.chroma import ChromaStore
from tests.job_parts import PATIENCE, HeldEmbedder, copies, ends, indexer_of, text, written
from tests.made_files import pdf

pytestmark = pytest.mark.integration


@pytest.fixture
def embedder(embedder_path: Path) -> HeldEmbedder:
    return HeldEmbedder(embedder_path / "tokenizer.json")


@pytest.fixture
def indexer(embedder: HeldEmbedder) -> Iterator[Indexer]:
    store = ChromaStore(None)
    yield indexer_of(store, embedder)
    store.close()


@pytest.fixture
def queue(indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path) -> Iterator[IngestJobs]:
    made = IngestJobs(indexer, tmp_path / "uploads")
    yield made
    embedder.free.set()
    made.close()


def submit(queue: IngestJobs, folder: Path, number: int, collection: str = "docs", sentences: int = 1) -> str:
    return queue.submit(
        written(folder, "upload", text(number, sentences)), f"{number}.md", collection, owner="ann"
    )


def test_all_of_a_collection_can_be_cancelled_and_tried_again(
    queue: IngestJobs, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    embedder.hold()
    long = submit(queue, tmp_path, 1, sentences=400)
    others = [submit(queue, tmp_path, number) for number in (2, 3)]
    elsewhere = submit(queue, tmp_path, 4, "other")
    embedder.caught()
    queue.cancel_all("docs")
    assert ends(queue, others) == ["cancelled"] * 2
    batches = embedder.batches
    embedder.free.set()
    assert queue.wait(long, PATIENCE).state == "cancelled"
    assert embedder.batches == batches, "it was to stop at the next batch"
    assert queue.wait(elsewhere, PATIENCE).state == "ready"
    assert indexer.store.documents("docs") == []
    for job in (long, *others):
        assert queue.wait(job, 0).retryable
        queue.retry(job)
    assert ends(queue, [long, *others]) == ["ready"] * 3
    state = queue.wait(long, 0)
    assert (state.message, state.reason, state.retryable, state.owner) == (None, None, False, "ann")
    assert copies(tmp_path / "uploads") == []
    with pytest.raises(UsageError, match="its copy is gone; upload it again"):
        queue.retry(long)
    with pytest.raises(UsageError, match="This file cannot be tried again"):
        queue.retry("unknown")


def test_one_that_was_tried_again_goes_to_the_end_and_to_the_top_of_the_list(
    queue: IngestJobs, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    embedder.hold()
    first, second, third = (submit(queue, tmp_path, number) for number in range(3))
    embedder.caught()
    queue.cancel(second)
    queue.retry(second)
    assert [state.id for state in queue.jobs("docs")] == [second, third, first]
    assert (queue.waiting_before(third), queue.waiting_before(second), queue.waiting_before(first)) == (
        1,
        2,
        0,
    )


def test_only_what_has_ended_can_be_put_away(
    queue: IngestJobs, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    embedder.hold()
    running, waiting = submit(queue, tmp_path, 1), submit(queue, tmp_path, 2)
    embedder.caught()
    for job in (running, waiting, "unknown"):
        queue.dismiss(job)
    assert len(queue.jobs("docs")) == 2
    queue.cancel(waiting)
    queue.dismiss(waiting)
    assert [state.id for state in queue.jobs("docs")] == [running]
    assert copies(tmp_path / "uploads") == [running]


def test_a_new_edition_of_a_file_takes_the_place_of_the_old_one(
    queue: IngestJobs, indexer: Indexer, tmp_path: Path
) -> None:
    first, second, third = (written(tmp_path, f"upload{number}", text(number)) for number in range(3))
    ends(queue, [queue.submit(first, "prices.md", "docs"), queue.submit(second, "rules.md", "docs")])
    state = queue.wait(queue.submit(third, "prices.md", "docs", replace=True), PATIENCE)
    assert (state.state, state.replaced) == ("ready", True)
    assert sorted(info.source for info in indexer.store.documents("docs")) == ["prices.md", "rules.md"]
    assert "number 2" in indexer.store.chunks("docs", str(state.document_id))[0].text


def test_a_deleted_collection_takes_its_uploads_along(
    queue: IngestJobs, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """A file that was still being embedded made the deleted collection anew."""
    embedder.hold()
    running, waiting = submit(queue, tmp_path, 1, sentences=400), submit(queue, tmp_path, 2)
    embedder.caught()
    seen = []
    watching = threading.Thread(target=lambda: seen.append(queue.wait(waiting, PATIENCE).state))
    watching.start()
    threading.Timer(0.1, embedder.free.set).start()
    queue.drop_collection("docs")
    assert embedder.free.is_set(), "it was to wait for the file at work"
    indexer.store.delete_collection("docs")
    assert queue.jobs("docs") == ()
    assert copies(tmp_path / "uploads") == []
    watching.join()
    assert seen == ["cancelled"]
    with pytest.raises(UsageError, match="There is no upload"):
        queue.wait(running, 0)
    assert queue.wait(submit(queue, tmp_path, 3, "other"), PATIENCE).state == "ready"
    assert indexer.store.collections() == ("other",)


def test_a_copy_that_cannot_be_deleted_does_not_end_the_queue(
    queue: IngestJobs, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """The bug: one error of the disk ended the thread, and no file was added until the next start."""
    folder, away = tmp_path / "uploads" / "copies", tmp_path / "uploads" / "away"
    embedder.hold()
    job = submit(queue, tmp_path, 1)
    embedder.caught()
    folder.rename(away)
    folder.touch()  # nothing can be deleted in what is no folder
    embedder.free.set()
    assert queue.wait(job, PATIENCE).state == "ready"
    folder.unlink()
    away.rename(folder)
    assert queue.wait(submit(queue, tmp_path, 2), PATIENCE).state == "ready"


def test_whoever_waits_is_told_when_the_queue_closes(
    queue: IngestJobs, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """A page that waited for its upload kept the server from ending."""
    embedder.hold()
    submit(queue, tmp_path, 1)
    second = submit(queue, tmp_path, 2)
    embedder.caught()
    seen = []
    watching = threading.Thread(target=lambda: seen.append(queue.wait(second).state))
    watching.start()
    threading.Timer(0.1, embedder.free.set).start()
    queue.close()
    watching.join(PATIENCE)
    assert seen == ["queued"]


def test_a_file_that_is_being_read_in_a_process_is_cancelled_at_once(
    embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """A slow file was read to its end, although nobody wanted it any more."""
    store, reading = ChromaStore(None), ReadingProcess(load_settings({}))
    queue = IngestJobs(indexer_of(store, embedder, reader=reading), tmp_path / "uploads")
    slow = pdf(*(f"This is page {number} of a file that takes long." for number in range(1500)))
    job = queue.submit(written(tmp_path, "upload", slow), "slow.pdf", "docs")
    while queue.wait(job, 0.01).done == 0:
        assert queue.wait(job, 0).state in ("queued", "reading")
    queue.cancel(job)
    state = queue.wait(job, PATIENCE)
    assert (state.state, state.total) == ("cancelled", 1500)
    assert state.done < state.total
    after = queue.submit(written(tmp_path, "upload", text(1)), "after.md", "docs")
    assert queue.wait(after, PATIENCE).state == "ready"
    queue.close()
    reading.close()
    store.close()
