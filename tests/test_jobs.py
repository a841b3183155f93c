"""The queue of uploads: copied at once, worked through in order, cancellable, and tidy."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from specrag.errors import DocumentError, UsageError
from specrag.ingest.index import Indexer
from specrag.ingest.jobs.jobs import ENDED, IngestJobs
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.embedder import SentenceEmbedder
from tests.job_parts import copies
from tests.made_files import pdf
from tests.test_index import FERRY, MILL, made, saved

pytestmark = pytest.mark.integration

PATIENCE = 60


@pytest.fixture(scope="module")
def embedder(embedder_path: Path) -> SentenceEmbedder:
    return SentenceEmbedder(embedder_path, name="all-minilm-l6-v2", threads=1)


@pytest.fixture
def indexer(embedder: SentenceEmbedder) -> Iterator[Indexer]:
    store = ChromaStore(None)
    yield made(store, embedder, max_file_mb=1)
    store.close()


@pytest.fixture
def jobs(indexer: Indexer, tmp_path: Path) -> Iterator[IngestJobs]:
    queue = IngestJobs(indexer, tmp_path / "staging")
    yield queue
    queue.close()


def test_an_upload_becomes_a_document_although_the_temporary_file_vanishes(
    jobs: IngestJobs, indexer: Indexer, tmp_path: Path
) -> None:
    upload = saved(tmp_path, "tmp123", FERRY)
    job = jobs.submit(upload, "Ferry\n.md", "docs")
    upload.unlink()
    state = jobs.wait(job, PATIENCE)
    assert (state.state, state.name, state.pages, state.chunks, state.message) == (
        "ready",
        "Ferry.md",
        1,
        1,
        None,
    )
    assert [document.id for document in indexer.store.documents("docs")] == [state.document_id]
    assert copies(tmp_path / "staging") == []


def test_jobs_are_listed_newest_first_for_their_collection(jobs: IngestJobs, tmp_path: Path) -> None:
    first = jobs.submit(saved(tmp_path, "a", FERRY), "a.md", "docs")
    second = jobs.submit(saved(tmp_path, "b", MILL), "b.md", "docs")
    elsewhere = jobs.submit(saved(tmp_path, "c", MILL), "c.md", "other")
    jobs.wait(elsewhere, PATIENCE)
    assert [state.id for state in jobs.jobs("docs")] == [second, first]
    assert [state.id for state in jobs.jobs("other")] == [elsewhere]
    assert jobs.jobs("nothing") == ()


def test_a_duplicate_and_a_failure_are_ordinary_ends(jobs: IngestJobs, tmp_path: Path) -> None:
    jobs.submit(saved(tmp_path, "a", FERRY), "a.md", "docs")
    again = jobs.wait(jobs.submit(saved(tmp_path, "b", FERRY), "b.md", "docs"), PATIENCE)
    assert (again.state, again.message) == ("duplicate", None)
    blank = jobs.wait(jobs.submit(saved(tmp_path, "c", " \n"), "blank.md", "docs"), PATIENCE)
    assert (blank.state, blank.reason, blank.retryable) == ("failed", "no_text", True)
    assert blank.message is not None
    assert blank.message.startswith("blank.md holds no text")
    assert copies(tmp_path / "staging") == [blank.id]


def test_a_file_above_the_limit_is_refused_before_it_is_copied(jobs: IngestJobs, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.touch()
    os.truncate(big, 50_000_000_000)
    with pytest.raises(DocumentError, match="SPECRAG_MAX_FILE_MB"):
        jobs.submit(big, "big.txt", "docs")
    with pytest.raises(DocumentError, match="0 bytes"):
        jobs.submit(saved(tmp_path, "nothing", ""), "nothing.txt", "docs")
    with pytest.raises(DocumentError, match="could not be copied"):
        jobs.submit(tmp_path / "gone", "gone.txt", "docs")
    assert jobs.jobs("docs") == ()
    assert copies(tmp_path / "staging") == []


def test_running_and_waiting_jobs_can_be_cancelled(
    jobs: IngestJobs, indexer: Indexer, tmp_path: Path
) -> None:
    long = saved(tmp_path, "long", "\n\n".join(f"{FERRY} Sailing {number}." for number in range(3000)))
    running = jobs.submit(long, "long.md", "docs")
    waiting = jobs.submit(saved(tmp_path, "mill", MILL), "mill.md", "docs")
    while jobs.wait(running, 0.01).state != "embedding":
        assert jobs.wait(running, 0).state not in ENDED
    jobs.cancel(waiting)
    assert (jobs.wait(waiting, 0).state, jobs.wait(waiting, 0).reason) == ("cancelled", "cancelled")
    jobs.cancel(running)
    state = jobs.wait(running, PATIENCE)
    assert (state.state, state.reason) == ("cancelled", "cancelled")
    jobs.cancel(running)
    jobs.cancel("no such job")
    assert state.message == "long.md was cancelled; nothing of it is in the collection."
    assert indexer.store.documents("docs") == []
    assert copies(tmp_path / "staging") == sorted([running, waiting])


def test_progress_is_seen_while_it_happens(jobs: IngestJobs, tmp_path: Path) -> None:
    upload = saved(tmp_path, "long", pdf(*(f"This is page {number}." for number in range(120))))
    job = jobs.submit(upload, "long.pdf", "docs")
    seen = set()
    while (state := jobs.wait(job, 0.005)).state not in ("ready", "failed"):
        seen.add((state.state, state.total))
        assert state.done <= state.total
    assert state.state == "ready"
    assert ("embedding", 120) in seen


def test_a_wait_gives_up_after_its_time(jobs: IngestJobs, tmp_path: Path) -> None:
    long = saved(tmp_path, "long", "\n\n".join(f"{FERRY} Sailing {number}." for number in range(2000)))
    job = jobs.submit(long, "long.md", "docs")
    assert jobs.wait(job, 0.01).state in ("queued", "reading", "embedding")
    with pytest.raises(UsageError, match="no upload nothing"):
        jobs.wait("nothing")


def test_the_history_is_bounded(jobs: IngestJobs, tmp_path: Path) -> None:
    jobs.wait(jobs.submit(saved(tmp_path, "a", FERRY), "a.md", "docs"), PATIENCE)
    last = ""
    for turn in range(210):
        last = jobs.submit(tmp_path / "a", f"{turn}.md", "docs")
        jobs.wait(last, PATIENCE)
    states = jobs.jobs("docs")
    assert len(states) == 200
    assert states[0].id == last


def test_many_threads_may_submit_at_once(jobs: IngestJobs, indexer: Indexer, tmp_path: Path) -> None:
    """Two uploads of one file at the same time were two jobs that both wrote."""
    upload = saved(tmp_path, "a", FERRY)
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda: ids.append(jobs.submit(upload, "a.md", "docs"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = sorted(jobs.wait(job, PATIENCE).state for job in ids)
    assert ends == ["duplicate"] * 7 + ["ready"]
    assert len(indexer.store.documents("docs")) == 1
