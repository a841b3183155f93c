"""How much may wait: one owner cannot take the place of all, and nothing is half copied."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from specrag.errors import TransientError
from specrag.ingest.jobs.jobs import IngestJobs
from specrag.retrieval.chroma import ChromaStore
from tests.job_parts import HeldEmbedder, copies, ends, indexer_of, text, written

pytestmark = pytest.mark.integration


@contextmanager
def held_queue(
    embedder_path: Path, tmp_path: Path, **settings: Any
) -> Iterator[tuple[IngestJobs, HeldEmbedder]]:
    """A queue that is busy with a file of the owner "first", until the end."""
    embedder, store = HeldEmbedder(embedder_path / "tokenizer.json"), ChromaStore(None)
    queue = IngestJobs(indexer_of(store, embedder, **settings), tmp_path / "uploads")
    embedder.hold()
    queue.submit(written(tmp_path, "upload", text(0)), "first.md", "docs", owner="first")
    embedder.caught()
    yield queue, embedder
    embedder.free.set()
    queue.close()
    store.close()


def in_the_order_of_work(queue: IngestJobs) -> list[str]:
    documents = queue._indexer.store.documents("docs")
    return [info.source for info in sorted(documents, key=lambda info: info.added_at)]


def submit(queue: IngestJobs, folder: Path, number: int, owner: str, size: int = 0) -> str:
    content = text(number).ljust(size)
    return queue.submit(written(folder, "upload", content), f"{number}.md", "docs", owner=owner)


def test_one_owner_has_half_of_the_places_and_the_others_the_rest(
    embedder_path: Path, tmp_path: Path
) -> None:
    with held_queue(embedder_path, tmp_path, max_waiting_files=6) as (queue, _):
        jobs = [submit(queue, tmp_path, number, "ann") for number in range(1, 4)]
        with pytest.raises(TransientError, match=r"3 of your files are waiting already; add 4\.md when some"):
            submit(queue, tmp_path, 4, "ann")
        jobs += [submit(queue, tmp_path, number, f"other-{number}") for number in range(5, 8)]
        with pytest.raises(
            TransientError, match=r"6 files are waiting already; add 8\.md when some are done"
        ):
            submit(queue, tmp_path, 8, "late")
        assert len(copies(tmp_path / "uploads")) == 7
        queue.cancel(jobs[0])
        submit(queue, tmp_path, 8, "late")
        with pytest.raises(TransientError, match="6 files are waiting"):
            queue.retry(jobs[0])


def test_the_bytes_that_wait_are_bounded(embedder_path: Path, tmp_path: Path) -> None:
    with held_queue(embedder_path, tmp_path) as (queue, _):
        jobs = [submit(queue, tmp_path, number, "ann", 1_000_000) for number in range(1, 21)]
        with pytest.raises(TransientError, match=r"20 MB of your files are waiting already; add 21\.md"):
            submit(queue, tmp_path, 21, "ann", 1_000_000)
        jobs += [submit(queue, tmp_path, number, "ben", 999_999) for number in range(22, 42)]
        with pytest.raises(TransientError, match=r"39 MB of the files are waiting already; add 42\.md"):
            submit(queue, tmp_path, 42, "cem", 1_000_000)
        for job in jobs:
            queue.cancel(job)
        kept = sum(path.stat().st_size for path in (tmp_path / "uploads" / "copies").iterdir())
        assert 9_000_000 < kept < 11_000_000
        retryable = [state.retryable for state in queue.jobs("docs") if state.state == "cancelled"]
        assert retryable == [True] * 10 + [False] * 30


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_one_sentence_and_leaves_no_half_of_a_copy(
    embedder_path: Path, tmp_path: Path
) -> None:
    """Files that may not grow behave like a full disk: the copy breaks off in the middle."""
    with held_queue(embedder_path, tmp_path) as (queue, _):
        upload = written(tmp_path, "large", text(1).ljust(900_000))
        with (
            files_of_at_most(500_000),
            pytest.raises(TransientError, match=r"no room on the server's disk for large\.md; add it later"),
        ):
            queue.submit(upload, "large.md", "docs", owner="ann")
        assert [state.name for state in queue.jobs("docs")] == ["first.md"]
        assert len(copies(tmp_path / "uploads")) == 1
        assert queue.wait(queue.submit(upload, "large.md", "docs", owner="ann"), 0).state == "queued"


def test_fifty_files_of_one_hold_up_another_ones_file_by_one(embedder_path: Path, tmp_path: Path) -> None:
    """One visitor's thousand files made everybody else wait for all of them."""
    with held_queue(embedder_path, tmp_path, max_waiting_files=200) as (queue, embedder):
        many = [submit(queue, tmp_path, number, "ann") for number in range(1, 51)]
        single = submit(queue, tmp_path, 99, "ben")
        assert queue.waiting_before(many[0]) == 1
        assert queue.waiting_before(single) == 2
        assert queue.waiting_before(many[49]) == 51
        assert queue.waiting_before("unknown") == 0
        embedder.free.set()
        ends(queue, [*many, single])
        assert [state.state for state in queue.jobs("docs")] == ["ready"] * 52
        assert in_the_order_of_work(queue)[:4] == ["first.md", "1.md", "99.md", "2.md"]
        assert in_the_order_of_work(queue)[-1] == "50.md"
