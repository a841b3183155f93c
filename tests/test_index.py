"""Indexing as a user sees it: ready, duplicate or a sentence; nothing half done."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from specrag.config import load_settings
from specrag.errors import StoreError, UsageError
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.index import Indexer
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.embedder import SentenceEmbedder
from specrag.retrieval.retriever import Retriever
from tests.made_files import pdf

pytestmark = pytest.mark.integration

FERRY = "# Ferry\n\nThe ferry to the island leaves at nine in the morning from the north pier.\n"
MILL = "# Mill\n\nThe old mill grinds wheat and rye, and its miller is called Anselm.\n"


@pytest.fixture(scope="module")
def embedder(embedder_path: Path) -> SentenceEmbedder:
    return SentenceEmbedder(embedder_path, name="all-minilm-l6-v2", threads=1)


@pytest.fixture
def indexer(embedder: SentenceEmbedder) -> Iterator[Indexer]:
    store = ChromaStore(None)
    yield made(store, embedder)
    store.close()


def made(store: ChromaStore, embedder: SentenceEmbedder, *, max_file_mb: int = 50) -> Indexer:
    chunker = Chunker(embedder.tokenizer_file, tokens=64, overlap=8)
    return Indexer(
        store,
        embedder,
        chunker,
        load_settings(max_file_mb=max_file_mb),
        clock=lambda: datetime(2026, 1, 2, tzinfo=UTC),
    )


def saved(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_an_indexed_file_answers_a_question(
    indexer: Indexer, embedder: SentenceEmbedder, tmp_path: Path
) -> None:
    for name, text in (("ferry.md", FERRY), ("mill.md", MILL)):
        assert indexer.ingest(saved(tmp_path, name, text), name, "docs").status == "ready"
    found = Retriever(indexer.store, embedder).retrieve("When does the boat sail?", "docs", 2)
    assert [passage.source for passage in found.passages] == ["ferry.md", "mill.md"]
    assert (found.vectors.shape, found.question_vector.shape) == ((2, 384), (384,))
    scores = [passage.score for passage in found.passages]
    assert np.clip(found.vectors @ found.question_vector, 0, 1).tolist() == pytest.approx(scores, abs=1e-5)


def test_a_result_says_what_was_read(indexer: Indexer, tmp_path: Path) -> None:
    result = indexer.ingest(
        saved(tmp_path, "upload", pdf("Page one.", "Page two.")), "../a\u202e.pdf", "docs"
    )
    assert (result.status, result.name, result.pages, result.chunks) == ("ready", "a.pdf", 2, 2)
    assert result.document_id is not None
    listed = indexer.store.document("docs", result.document_id)
    assert (listed.source, listed.title, listed.pages, listed.chunks) == ("a.pdf", "a", 2, 2)
    assert listed.added_at == "2026-01-02T00:00:00.000+00:00"
    assert [chunk.page for chunk in indexer.store.chunks("docs", result.document_id)] == [1, 2]


def test_pages_without_text_are_reported(indexer: Indexer, tmp_path: Path) -> None:
    result = indexer.ingest(saved(tmp_path, "a.pdf", pdf("One.", "", "Three.")), "a.pdf", "docs")
    assert result.status == "ready"
    assert result.warning is not None
    assert result.warning.startswith("1 of 3 pages have no text (page 2); if they are scans, OCR reads them")


def test_the_same_bytes_are_a_duplicate_under_any_name_but_not_elsewhere(
    indexer: Indexer, tmp_path: Path
) -> None:
    first = indexer.ingest(saved(tmp_path, "a.md", FERRY), "a.md", "docs")
    again = indexer.ingest(saved(tmp_path, "b.md", FERRY), "b.md", "docs")
    assert (again.status, again.document_id, again.chunks) == ("duplicate", first.document_id, first.chunks)
    assert len(indexer.store.documents("docs")) == 1
    assert indexer.ingest(tmp_path / "a.md", "a.md", "other").status == "ready"


def test_a_deleted_document_can_come_back(indexer: Indexer, tmp_path: Path) -> None:
    path = saved(tmp_path, "a.md", FERRY)
    first = indexer.ingest(path, "a.md", "docs")
    assert first.document_id is not None
    assert indexer.store.delete("docs", first.document_id) == first.chunks
    assert indexer.ingest(path, "a.md", "docs").status == "ready"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.pdf", b"", "empty_file"),
        ("invoice.pdf", b"MZ\x90\0" + bytes(300), "type_mismatch"),
        ("blank.txt", b" \n \n\n", "no_text"),
        ("cut.pdf", pdf("Hello")[:100], "corrupt"),
        ("table.xlsx", b"PK\x03\x04 not really", "corrupt"),
    ],
)
def test_a_bad_file_is_a_sentence_and_leaves_nothing(
    indexer: Indexer, tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    result = indexer.ingest(saved(tmp_path, "upload", content), name, "docs")
    assert (result.status, result.reason, result.document_id) == ("failed", reason, None)
    assert result.error is not None
    assert result.error.startswith(name)
    assert indexer.store.documents("docs") == []
    assert indexer.store.count("docs") == 0


def test_missing_files_and_bad_collections_are_results_too(indexer: Indexer, tmp_path: Path) -> None:
    assert indexer.ingest(tmp_path / "gone.txt", "gone.txt", "docs").reason == "unreadable"
    result = indexer.ingest(saved(tmp_path, "a.md", FERRY), "a.md", "no good name")
    assert result.reason == "store"
    assert result.error is not None
    assert "cannot name a collection" in result.error


def test_an_error_that_nobody_foresaw_is_a_sentence_and_in_the_log(
    indexer: Indexer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever raises on the way, here the listener that is told of the pages."""
    path = saved(tmp_path, "ferry.md", FERRY)

    def broken(error: BaseException) -> Callable[[str, int, int], None]:
        def raises(_stage: str, _done: int, _total: int) -> None:
            raise error

        return raises

    result = indexer.ingest(path, "ferry.md", "docs", broken(RecursionError("too deep for a library")))
    assert (result.status, result.reason) == ("failed", "unreadable")
    assert result.error == (
        "ferry.md could not be read: something in it is not understood;"
        " save it anew or convert it to another format."
    )
    assert "too deep for a library" in caplog.text
    assert indexer.store.count("docs") == 0
    with pytest.raises(KeyboardInterrupt):
        indexer.ingest(path, "ferry.md", "docs", broken(KeyboardInterrupt()))


def test_progress_counts_pages_then_chunks(indexer: Indexer, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    path = saved(tmp_path, "a.pdf", pdf(*(f"This is page {number}." for number in range(40))))
    indexer.ingest(path, "a.pdf", "docs", lambda stage, done, total: steps.append((stage, done, total)))
    assert [done for stage, done, _ in steps if stage == "reading"] == list(range(41))
    assert [step for step in steps if step[0] == "embedding"] == [
        ("embedding", 0, 40),
        ("embedding", 32, 40),
        ("embedding", 40, 40),
    ]


@pytest.mark.parametrize("stage", ["reading", "embedding"])
def test_cancelling_leaves_nothing(indexer: Indexer, tmp_path: Path, stage: str) -> None:
    reached: list[str] = []
    path = saved(tmp_path, "a.pdf", pdf(*(f"This is page {number}." for number in range(40))))
    result = indexer.ingest(
        path, "a.pdf", "docs", lambda at, *_: reached.append(at), lambda: stage in reached
    )
    assert (result.status, result.reason) == ("failed", "cancelled")
    assert reached.count(stage) == 1
    assert indexer.store.count("docs") == 0
    assert indexer.ingest(path, "a.pdf", "docs").status == "ready"


def test_another_embedder_is_refused_until_the_collection_is_indexed_anew(
    indexer: Indexer, embedder: SentenceEmbedder, embedder_path: Path, tmp_path: Path
) -> None:
    path = saved(tmp_path, "ferry.md", FERRY)
    indexer.ingest(path, "ferry.md", "docs")
    assert isinstance(indexer.store, ChromaStore)
    renamed = SentenceEmbedder(embedder_path, name="another", threads=1)
    other = made(indexer.store, renamed)
    refused = other.ingest(saved(tmp_path, "mill.md", MILL), "mill.md", "docs")
    assert refused.reason == "store"
    assert refused.error is not None
    assert "reindex" in refused.error
    with pytest.raises(StoreError, match="reindex"):
        Retriever(indexer.store, renamed).retrieve("When?", "docs", 1)
    assert other.reindex("docs") == 1
    assert other.ingest(tmp_path / "mill.md", "mill.md", "docs").status == "ready"
    assert Retriever(indexer.store, renamed).retrieve("When?", "docs", 5).passages


def test_chunks_longer_than_the_embedder_reads_are_refused_at_once(embedder: SentenceEmbedder) -> None:
    """Otherwise the end of every chunk would be stored but never found."""
    store = ChromaStore(None)
    chunker = Chunker(embedder.tokenizer_file, tokens=300, overlap=8)
    with pytest.raises(UsageError, match=r"SPECRAG_CHUNK_TOKENS is 300.* 254 or less"):
        Indexer(store, embedder, chunker, load_settings())
    store.close()


def test_an_empty_collection_retrieves_nothing(indexer: Indexer, embedder: SentenceEmbedder) -> None:
    indexer.store.ensure_collection("docs", embedder.fingerprint)
    found = Retriever(indexer.store, embedder).retrieve("Anything?", "docs", 3)
    assert (found.passages, found.vectors.shape) == ((), (0, 384))
