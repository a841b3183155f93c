"""Archives in the queue: one job for each file, in the archive's place, and none twice after a kill."""

import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from specrag.errors import UsageError
from specrag.ingest.index import Indexer
from specrag.ingest.jobs.jobs import IngestJobs
from specrag.retrieval.chroma import ChromaStore
from tests.job_parts import PATIENCE, HeldEmbedder, as_if_killed, copies, ends, indexer_of, text, written

pytestmark = pytest.mark.integration


def packed(**files: str | bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"inner/{name}.md", content)
    return data.getvalue()


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


def submit(queue: IngestJobs, folder: Path, name: str, content: str | bytes) -> str:
    return queue.submit(written(folder, "upload", content), name, "docs", owner="ann")


def test_every_file_of_an_archive_has_a_job_in_its_place(
    queue: IngestJobs, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    embedder.hold()
    first = submit(queue, tmp_path, "first.md", text(0))
    embedder.caught()
    archive = submit(queue, tmp_path, "all.zip", packed(a=text(1), b=text(2), blank=" "))
    last = submit(queue, tmp_path, "last.md", text(3))
    assert [state.name for state in queue.jobs("docs")] == ["last.md", "all.zip", "first.md"]
    embedder.free.set()
    state = queue.wait(archive, PATIENCE)
    assert (state.state, state.name, state.pages, state.chunks) == ("ready", "all.zip", 2, 2)
    assert state.message == "2 of 3 files of all.zip are ready; 1 failed."
    queue.wait(last, PATIENCE)
    states = queue.jobs("docs")
    assert [(item.name, item.state) for item in states] == [
        ("last.md", "ready"),
        ("all.zip/inner/blank.md", "failed"),
        ("all.zip/inner/b.md", "ready"),
        ("all.zip/inner/a.md", "ready"),
        ("first.md", "ready"),
    ]
    assert {item.owner for item in states} == {"ann"}
    added = sorted(indexer.store.documents("docs"), key=lambda info: info.added_at)
    assert [info.source.split("/")[-1] for info in added] == ["first.md", "a.md", "b.md", "last.md"]
    assert copies(tmp_path / "uploads") == [states[1].id]
    assert not list((tmp_path / "uploads" / "unpacking").iterdir())
    assert first


def test_an_archive_comes_to_what_its_files_come_to(queue: IngestJobs, tmp_path: Path) -> None:
    content = packed(a=text(1), b=text(2))
    queue.wait(submit(queue, tmp_path, "one.zip", content), PATIENCE)
    again = queue.wait(submit(queue, tmp_path, "two.zip", content), PATIENCE)
    assert (again.state, again.message) == (
        "duplicate",
        "0 of 2 files of two.zip are ready; 2 were here already.",
    )
    blank = queue.wait(submit(queue, tmp_path, "blank.zip", packed(a=" ", b="\n")), PATIENCE)
    assert (blank.state, blank.reason, blank.message) == (
        "failed",
        "no_text",
        "0 of 2 files of blank.zip are ready; 2 failed.",
    )


def test_an_archive_that_cannot_be_unpacked_fails_itself(queue: IngestJobs, tmp_path: Path) -> None:
    broken = bytearray(packed(a=text(1, 50), b=text(2)))
    broken[60:80] = b"x" * 20
    state = queue.wait(submit(queue, tmp_path, "broken.zip", bytes(broken)), PATIENCE)
    assert (state.state, state.reason, state.retryable) == ("failed", "corrupt", True)
    assert [item.name for item in queue.jobs("docs")] == ["broken.zip"]
    assert copies(tmp_path / "uploads") == [state.id]
    queue.dismiss(state.id)
    assert copies(tmp_path / "uploads") == []


def test_an_archive_in_an_archive_is_one_file_that_fails(queue: IngestJobs, tmp_path: Path) -> None:
    """Archives that nest without an end would unpack without an end."""
    outer = packed(a=text(1), nested=packed(b=text(2)))
    assert queue.wait(submit(queue, tmp_path, "outer.zip", outer), PATIENCE).state == "ready"
    assert [item.state for item in queue.jobs("docs")] == ["failed", "ready"]


def test_all_files_of_an_archive_can_be_cancelled_and_put_away_by_its_job(
    queue: IngestJobs, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    embedder.hold()
    archive = submit(queue, tmp_path, "all.zip", packed(a=text(1, 400), b=text(2)))
    embedder.caught()
    seen = []
    watching = threading.Thread(target=lambda: seen.append(queue.wait(archive, PATIENCE)))
    watching.start()
    queue.cancel(archive)
    embedder.free.set()
    watching.join(PATIENCE)
    assert (seen[0].state, seen[0].message) == (
        "cancelled",
        "0 of 2 files of all.zip are ready; 2 were cancelled.",
    )
    assert indexer.store.documents("docs") == []
    queue.dismiss(archive)
    assert queue.jobs("docs") == ()
    assert copies(tmp_path / "uploads") == []
    with pytest.raises(UsageError, match="There is no upload"):
        queue.wait(archive, 0)


def test_files_of_an_archive_survive_a_kill_once_each(
    queue: IngestJobs, indexer: Indexer, embedder: HeldEmbedder, tmp_path: Path
) -> None:
    """An archive that was killed in the middle left some of its files queued twice."""
    embedder.hold()
    submit(queue, tmp_path, "first.md", text(0))
    embedder.caught()
    archive = submit(queue, tmp_path, "all.zip", packed(a=text(1), b=text(2)))
    before = as_if_killed(tmp_path / "uploads", tmp_path / "before")
    half = before / "unpacking" / archive
    half.mkdir(parents=True)
    (half / "00001").write_text(text(1))
    (before / "copies" / "0123456789ab").write_text(text(1))
    embedder.free.set()
    queue.wait(archive, PATIENCE)
    embedder.hold()
    again = IngestJobs(indexer, before)
    embedder.free.set()
    assert again.wait(archive, PATIENCE).message == "0 of 2 files of all.zip are ready; 2 were here already."
    names = [state.name for state in again.jobs("docs")]
    assert names == ["all.zip/inner/b.md", "all.zip/inner/a.md", "first.md"]
    assert copies(before) == []
    again.close()
    later = IngestJobs(indexer, before)
    assert later.wait(archive, 0).state == "duplicate"
    assert ends(later, [archive]) == ["duplicate"]
    later.close()
