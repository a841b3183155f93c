"""A collection is brought to another way of chunking: document by document, and searchable all the time."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.errors import StoreError
from specrag.ingest.base import ReadingCancelled
from specrag.ingest.chunks.chunking import Chunker, rebuilt
from specrag.ingest.index import Indexer
from specrag.library.library import SAMPLE
from specrag.retrieval.base import Vectors
from specrag.retrieval.chroma import ChromaStore
from specrag.sample import ensure_sample
from specrag.types import Chunk, DocumentInfo
from tests.made_files import chunks
from tests.stored import info
from tests.toys import WordEmbedder

pytestmark = pytest.mark.integration

STORY = "The heron waits at the old mill until the boats come by.\n\n" * 30


class OtherEmbedder(WordEmbedder):
    fingerprint = "words-64-anew"


class PickyStore(ChromaStore):
    """Refuses one document by its name."""

    refused = ""

    def add(self, collection: str, document: DocumentInfo, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        if document.source == self.refused:
            raise StoreError("The disk is full; make room.")
        super().add(collection, document, chunks, vectors)


@pytest.fixture
def store() -> Iterator[PickyStore]:
    made = PickyStore(None)
    yield made
    made.close()


@pytest.fixture
def tokenizer(embedder_path: Path) -> Path:
    return embedder_path / "tokenizer.json"


def indexer(
    store: ChromaStore, tokenizer: Path, tokens: int, embedder: type[WordEmbedder] = WordEmbedder
) -> Indexer:
    return Indexer(store, embedder(), Chunker(tokenizer, tokens=tokens, overlap=8), load_settings({}))


def filled(store: ChromaStore, tokenizer: Path, folder: Path, count: int = 3) -> list[DocumentInfo]:
    old = indexer(store, tokenizer, 64)
    for number in range(count):
        path = folder / f"{number}.txt"
        path.write_text(f"Story {number}.\n\n{STORY}", encoding="utf-8")
        assert old.ingest(path, path.name, "docs").status == "ready"
    return store.documents("docs")


def test_stale_documents_are_counted_and_cut_anew_with_the_same_text(
    store: PickyStore, tokenizer: Path, tmp_path: Path
) -> None:
    before = filled(store, tokenizer, tmp_path)
    texts = {one.id: rebuilt(store.chunks("docs", one.id)) for one in before}
    finer = indexer(store, tokenizer, 32)
    assert (finer.stale("docs"), finer.stale("nothing")) == (3, 0)
    steps: list[tuple[int, int]] = []
    done = finer.reindex("docs", lambda _stage, at, total: steps.append((at, total)))
    assert finer.stale("docs") == 0
    assert done == store.count("docs") == store.collection("docs").chunks
    assert done > sum(one.chunks for one in before)
    assert {one.id: rebuilt(store.chunks("docs", one.id)) for one in before} == texts
    total = sum(one.chunks for one in before)
    assert steps[-1] == (total, total)
    assert [at for at, _ in steps] == sorted(at for at, _ in steps)
    assert {one.added_at for one in store.documents("docs")} == {one.added_at for one in before}


def test_embedder_and_chunker_change_together(store: PickyStore, tokenizer: Path, tmp_path: Path) -> None:
    filled(store, tokenizer, tmp_path, 2)
    both = indexer(store, tokenizer, 32, OtherEmbedder)
    both.reindex("docs")
    store.check("docs", OtherEmbedder.fingerprint)
    assert both.stale("docs") == 0
    assert store.query("docs", WordEmbedder().embed(["story 1"])[0], 1)[0].source == "1.txt"


def test_only_stale_documents_are_touched(store: PickyStore, tokenizer: Path, tmp_path: Path) -> None:
    filled(store, tokenizer, tmp_path, 2)
    finer = indexer(store, tokenizer, 32)
    path = tmp_path / "new.txt"
    path.write_text(STORY, encoding="utf-8")
    fresh = finer.ingest(path, "new.txt", "docs").document_id
    assert fresh is not None
    before = store.editions("docs")
    finer.reindex("docs")
    after = store.editions("docs")
    assert {one for one in after if after[one] == before[one]} == {fresh}


def test_a_document_that_fails_keeps_its_old_edition_and_stops_no_other(
    store: PickyStore, tokenizer: Path, tmp_path: Path
) -> None:
    before = {one.source: one for one in filled(store, tokenizer, tmp_path)}
    store.refused = "1.txt"
    finer = indexer(store, tokenizer, 32)
    with pytest.raises(StoreError, match=r"1 of 3 documents .* first is 1\.txt; they can be searched"):
        finer.reindex("docs")
    after = {one.source: one for one in store.documents("docs")}
    assert after["1.txt"] == before["1.txt"]
    assert len(store.chunks("docs", after["1.txt"].id)) == before["1.txt"].chunks
    assert finer.stale("docs") == 1
    store.refused = ""
    finer.reindex("docs")
    assert finer.stale("docs") == 0


def test_a_cancelled_reindex_keeps_what_is_done_and_can_go_on(
    store: PickyStore, tokenizer: Path, tmp_path: Path
) -> None:
    filled(store, tokenizer, tmp_path)
    finer = indexer(store, tokenizer, 32)
    at: list[int] = []
    with pytest.raises(ReadingCancelled):
        finer.reindex("docs", lambda _stage, done, _total: at.append(done), lambda: max(at, default=0) > 8)
    assert 0 < finer.stale("docs") < 3
    assert all(store.chunks("docs", one.id) for one in store.documents("docs"))
    finer.reindex("docs")
    assert finer.stale("docs") == 0


def test_a_cancelled_change_of_embedder_leaves_the_old_vectors(
    store: PickyStore, tokenizer: Path, tmp_path: Path
) -> None:
    filled(store, tokenizer, tmp_path)
    other = indexer(store, tokenizer, 64, OtherEmbedder)
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 3

    with pytest.raises(ReadingCancelled):
        other.reindex("docs", cancelled=cancelled)
    store.check("docs", WordEmbedder.fingerprint)
    assert store.query("docs", WordEmbedder().embed(["heron"])[0], 1)


def test_a_file_comes_in_while_another_collection_is_indexed_anew(
    store: PickyStore, tokenizer: Path, tmp_path: Path
) -> None:
    """One visitor's hour of work made the uploads of all others wait."""
    filled(store, tokenizer, tmp_path)
    other = indexer(store, tokenizer, 64, OtherEmbedder)
    path = tmp_path / "new.txt"
    path.write_text(STORY, encoding="utf-8")
    came_in: list[str] = []

    def progress(_stage: str, _done: int, _total: int) -> None:
        if not came_in:
            ingesting = threading.Thread(
                target=lambda: came_in.append(other.ingest(path, "new.txt", "elsewhere").status)
            )
            ingesting.start()
            ingesting.join(60)
            assert came_in

    other.reindex("docs", progress)
    assert came_in == ["ready"]


def test_documents_of_an_older_version_are_cut_anew(store: PickyStore, tokenizer: Path) -> None:
    """Their chunks know neither place nor chunker."""
    store.ensure_collection("docs", WordEmbedder.fingerprint)
    made = chunks("aaaa", 30, "The heron waits by the mill, and counts boat")
    store.add("docs", info("aaaa", 30), made, WordEmbedder().embed([chunk.text for chunk in made]))
    now = indexer(store, tokenizer, 64)
    assert now.stale("docs") == 1
    now.reindex("docs")
    assert now.stale("docs") == 0
    text = " ".join(chunk.text for chunk in store.chunks("docs", "aaaa"))
    assert all(f"counts boat {number}" in text for number in range(30))
    assert store.document("docs", "aaaa").chunks < 30


def test_a_file_that_is_refreshed_is_read_anew_only_if_it_was_cut_in_another_way(
    store: PickyStore, tokenizer: Path, tmp_path: Path
) -> None:
    """How the sample collection comes up to date after the program did."""
    (before,) = filled(store, tokenizer, tmp_path, 1)
    finer = indexer(store, tokenizer, 32)
    path = tmp_path / "0.txt"
    assert finer.ingest(path, "0.txt", "docs").status == "duplicate"
    assert finer.ingest(path, "0.txt", "docs", refresh=True).status == "ready"
    assert finer.ingest(path, "0.txt", "docs", refresh=True).status == "duplicate"
    (after,) = store.documents("docs")
    assert (after.id, after.chunker) == (before.id, finer.chunker_fingerprint)
    assert store.count("docs") == after.chunks > before.chunks


def test_a_sample_collection_of_an_older_program_is_brought_up_to_date(
    store: PickyStore, tokenizer: Path
) -> None:
    """Its pages were duplicates of themselves, and would have kept chunks that nothing stands before."""
    ensure_sample(indexer(store, tokenizer, 64))
    before, sources = store.editions(SAMPLE), {one.source for one in store.documents(SAMPLE)}
    ensure_sample(indexer(store, tokenizer, 64))
    assert store.editions(SAMPLE) == before
    finer = indexer(store, tokenizer, 32)
    assert finer.stale(SAMPLE) == len(before)
    ensure_sample(finer)
    assert finer.stale(SAMPLE) == 0
    assert {one.source for one in store.documents(SAMPLE)} == sources
