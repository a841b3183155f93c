"""Whatever happens to a file on its way in, afterwards it is wholly there or not at all, its original too."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError, StoreError
from specrag.ingest.base import Cancelled, OnPage, never
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.index import Indexer
from specrag.ingest.originals import Originals
from specrag.ingest.process.reading import HereReader
from specrag.retrieval.base import Vectors
from specrag.retrieval.chroma import ChromaStore
from specrag.types import Chunk, Document, DocumentInfo
from tests.stored import info
from tests.toys import WordEmbedder

pytestmark = pytest.mark.integration

MILL = "# Mill\n\nThe old mill grinds wheat and rye, and its miller is called Anselm.\n"
FERRY = "# Ferry\n\nThe ferry to the island leaves at nine in the morning from the north pier.\n"


class RefusingStore(ChromaStore):
    """A store whose disk is full."""

    refuses = True

    def add(self, collection: str, document: DocumentInfo, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        if self.refuses:
            raise StoreError("The disk is full; make room.")
        super().add(collection, document, chunks, vectors)


class Rig:
    """An indexer over a store in memory, with its originals in a folder."""

    def __init__(self, folder: Path, tokenizer: Path, store: ChromaStore | None = None, **parts: Any) -> None:
        self.folder = folder
        self.root = folder / "originals"
        self.store = store or ChromaStore(None)
        self.originals = Originals(self.root)
        settings = load_settings({}, keep_originals=parts.pop("keep", True))
        embedder = parts.pop("embedder", WordEmbedder())
        chunker = Chunker(tokenizer, tokens=64, overlap=8)
        self.indexer = Indexer(self.store, embedder, chunker, settings, originals=self.originals, **parts)

    def save(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def kept(self) -> int:
        return sum(path.is_file() for path in self.root.rglob("*"))

    def assert_nothing(self) -> None:
        assert self.store.documents("docs") == []
        assert self.store.count("docs") == 0
        assert self.kept() == 0


@pytest.fixture
def tokenizer(embedder_path: Path) -> Path:
    return embedder_path / "tokenizer.json"


@pytest.fixture
def made(tmp_path: Path, tokenizer: Path) -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def make(**parts: Any) -> Rig:
        rigs.append(Rig(tmp_path, tokenizer, **parts))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.store.close()


def test_a_document_is_described_and_its_file_kept(made: Callable[..., Rig]) -> None:
    rig = made()
    path = rig.save("mill.md", MILL)
    result = rig.indexer.ingest(path, "mill.md", "docs")
    assert result.document_id is not None
    stored = rig.store.document("docs", result.document_id)
    assert (stored.bytes, stored.media_type) == (len(MILL), "text/markdown")
    assert stored.characters == len(MILL.strip())
    assert stored.chunker == rig.indexer.chunker_fingerprint
    kept = rig.originals.path("docs", result.document_id)
    assert kept is not None
    assert kept.read_text(encoding="utf-8") == MILL
    assert path.exists()


def test_no_file_is_kept_where_that_is_switched_off(made: Callable[..., Rig]) -> None:
    rig = made(keep=False)
    assert rig.indexer.ingest(rig.save("mill.md", MILL), "mill.md", "docs").status == "ready"
    assert rig.kept() == 0


def test_files_kept_before_that_was_switched_off_still_go_with_their_documents(
    made: Callable[..., Rig],
) -> None:
    """The file of a replaced document stayed on the disk for ever, while the page said that it was gone."""
    before = made()
    assert before.indexer.ingest(before.save("mill.md", MILL), "mill.md", "docs").status == "ready"
    assert before.kept() == 1
    rig = made(keep=False, store=before.store)
    changed = rig.save("mill.md", MILL + " Since then it stands still.")
    assert rig.indexer.ingest(changed, "mill.md", "docs", replace=True).replaced != ()
    assert rig.kept() == 0


def test_what_a_search_reads_of_a_chunk_begins_with_its_title(made: Callable[..., Rig]) -> None:
    """A text that says "it" is found by a question that names what the document is about."""
    rig = made()
    for name, text in (("kestrel.txt", "It holds 640."), ("heron.txt", "It holds 300.")):
        rig.indexer.ingest(rig.save(name, text), name, "docs")
    asked = WordEmbedder().embed(["kestrel"])[0]
    assert rig.store.query("docs", asked, 1)[0].source == "kestrel.txt"


def test_a_store_that_refuses_leaves_no_original(made: Callable[..., Rig]) -> None:
    store = RefusingStore(None)
    rig = made(store=store)
    path = rig.save("mill.md", MILL)
    assert rig.indexer.ingest(path, "mill.md", "docs").reason == "store"
    rig.assert_nothing()
    store.refuses = False
    assert rig.indexer.ingest(path, "mill.md", "docs").status == "ready"
    assert rig.kept() == 1


def test_a_reader_that_fails_leaves_nothing(made: Callable[..., Rig]) -> None:
    class Failing:
        def read(
            self,
            path: Path,
            name: str,
            *,
            password: str | None = None,
            on_page: OnPage | None = None,
            cancelled: Cancelled = never,
        ) -> Document:
            raise DocumentError("timeout", f"{name} took too long to read; split it.")

    rig = made(reader=Failing())
    result = rig.indexer.ingest(rig.save("mill.md", MILL), "mill.md", "docs")
    assert (result.reason, result.error) == ("timeout", "mill.md took too long to read; split it.")
    rig.assert_nothing()


@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_file_that_is_cancelled_while_it_is_embedded_leaves_nothing(
    made: Callable[..., Rig], at: int
) -> None:
    rig = made()
    path = rig.save("mill.txt", "\n\n".join(f"{number}. {MILL * 4}" for number in range(120)))
    steps: list[int] = []
    result = rig.indexer.ingest(
        path,
        "mill.txt",
        "docs",
        lambda stage, done, _total: steps.append(done) if stage == "embedding" else None,
        lambda: len(steps) > at,
    )
    assert (result.reason, len(steps)) == ("cancelled", at + 1)
    assert max(steps, default=0) < 200
    rig.assert_nothing()


def test_replacing_removes_the_older_documents_of_that_name_and_says_so(made: Callable[..., Rig]) -> None:
    rig = made()
    first = rig.indexer.ingest(rig.save("a", MILL), "mill.md", "docs")
    other = rig.indexer.ingest(rig.save("b", FERRY), "ferry.md", "docs")
    result = rig.indexer.ingest(rig.save("c", MILL + "It burned down."), "mill.md", "docs", replace=True)
    assert (result.status, result.replaced) == ("ready", (first.document_id,))
    assert {one.id for one in rig.store.documents("docs")} == {result.document_id, other.document_id}
    assert rig.kept() == 2
    assert other.document_id is not None
    assert rig.originals.path("docs", other.document_id) is not None


def test_a_duplicate_or_a_failure_replaces_nothing(made: Callable[..., Rig]) -> None:
    rig = made()
    rig.indexer.ingest(rig.save("a", MILL), "mill.md", "docs")
    rig.indexer.ingest(rig.save("b", FERRY), "ferry.md", "docs")
    same = rig.indexer.ingest(rig.save("c", FERRY), "mill.md", "docs", replace=True)
    failed = rig.indexer.ingest(rig.save("d", ""), "mill.md", "docs", replace=True)
    assert [(one.status, one.replaced) for one in (same, failed)] == [("duplicate", ()), ("failed", ())]
    assert len(rig.store.documents("docs")) == rig.kept() == 2


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.test_index_whole import MILL, Rig
from specrag.retrieval.chroma import ChromaStore

class KillingStore(ChromaStore):
    def add(self, collection, document, chunks, vectors):
        class Killing(list):
            def __getitem__(self, index):
                os.kill(os.getpid(), signal.SIGKILL)
        super().add(collection, document, Killing(chunks) if document.source == "killed.md" else chunks, vectors)

folder = Path(sys.argv[1])
rig = Rig(folder, Path(sys.argv[2]), KillingStore(folder / "store"))
for name in ("ready.md", "killed.md"):
    rig.indexer.ingest(rig.save(name, name + MILL), name, "docs")
"""


def test_a_process_killed_while_it_stores_leaves_no_document_and_a_file_that_is_swept_away(
    made: Callable[..., Rig], tmp_path: Path, tokenizer: Path
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(tokenizer)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    rig = made(store=ChromaStore(tmp_path / "store"))
    (ready,) = rig.store.documents("docs")
    assert (ready.source, rig.store.count("docs"), rig.kept()) == ("ready.md", ready.chunks, 2)
    rig.originals.sweep({"docs": set(rig.store.editions("docs"))})
    assert rig.kept() == 1
    assert rig.originals.path("docs", ready.id) is not None
    assert rig.indexer.ingest(tmp_path / "killed.md", "killed.md", "docs").status == "ready"
    assert rig.kept() == 2


class SlowEmbedder(WordEmbedder):
    """Waits in its first batch until a test lets it go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.begun.set()
        assert self.go_on.wait(60)
        return super().embed(texts)


def test_deleting_another_document_does_not_wait_for_a_long_embedding(made: Callable[..., Rig]) -> None:
    embedder = SlowEmbedder()
    rig = made(embedder=embedder)
    rig.store.ensure_collection("docs", embedder.fingerprint)
    rig.store.add("docs", info("aaaa", 1), [_chunk()], WordEmbedder().embed(["mill"]))
    path = rig.save("mill.md", MILL)
    indexing = threading.Thread(target=rig.indexer.ingest, args=(path, "mill.md", "docs"))
    indexing.start()
    try:
        assert embedder.begun.wait(60)
        removed: list[int] = []
        deleting = threading.Thread(target=lambda: removed.append(rig.store.delete("docs", "aaaa")))
        deleting.start()
        deleting.join(30)
        assert removed == [1]
    finally:
        embedder.go_on.set()
        indexing.join(60)
    assert [one.source for one in rig.store.documents("docs")] == ["mill.md"]


def test_a_file_that_waits_for_its_turn_can_be_cancelled(made: Callable[..., Rig]) -> None:
    embedder = SlowEmbedder()
    rig = made(embedder=embedder)
    path = rig.save("mill.md", MILL)
    indexing = threading.Thread(target=rig.indexer.ingest, args=(path, "mill.md", "docs"))
    indexing.start()
    try:
        assert embedder.begun.wait(60)
        ferry = rig.save("ferry.md", FERRY)
        assert rig.indexer.ingest(ferry, "ferry.md", "docs", cancelled=lambda: True).reason == "cancelled"
        assert indexing.is_alive()
    finally:
        embedder.go_on.set()
        indexing.join(60)


def test_a_reader_is_asked_for_everything_that_matters(made: Callable[..., Rig]) -> None:
    asked: list[tuple[str, str | None]] = []

    class Noting(HereReader):
        def read(
            self,
            path: Path,
            name: str,
            *,
            password: str | None = None,
            on_page: OnPage | None = None,
            cancelled: Cancelled = never,
        ) -> Document:
            asked.append((name, password))
            assert not cancelled()
            return super().read(path, name, on_page=on_page, cancelled=cancelled)

    rig = made(reader=Noting(load_settings({})))
    result = rig.indexer.ingest(rig.save("x", MILL), "../mill.md", "docs", password="secret")
    assert (result.status, asked) == ("ready", [("mill.md", "secret")])


def _chunk() -> Chunk:
    return Chunk(id="aaaa-00000", document_id="aaaa", title="N", source="notes.txt", text="mill", position=0)
