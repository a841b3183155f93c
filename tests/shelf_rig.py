"""A library over a store in memory, real in all its parts but for an embedder that counts words."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from specrag.config import Settings, load_settings
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.index import Indexer
from specrag.ingest.originals import Originals
from specrag.library.library import Library
from specrag.library.visitors import VISITOR, Visitor
from specrag.retrieval.chroma import ChromaStore
from tests.toys import WordEmbedder


class OtherEmbedder(WordEmbedder):
    """The same vectors under another name, so that nobody may compare them."""

    fingerprint = "words-64-b"


@dataclass
class Now:
    """A clock that stands still until somebody moves it."""

    moment: datetime = field(default_factory=lambda: datetime(2026, 3, 1, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.moment

    def pass_(self, **time: float) -> None:
        self.moment += timedelta(**time)


@dataclass(frozen=True)
class Rig:
    """The parts of a program that keeps collections."""

    folder: Path
    store: ChromaStore
    indexer: Indexer
    originals: Originals
    settings: Settings
    clock: Now
    library: Library

    def add(self, collection: str, text: str, name: str = "note.md") -> str:
        """Index a text; the id of the document."""
        path = self.folder / "upload"
        path.write_text(text, encoding="utf-8")
        result = self.indexer.ingest(path, name, collection)
        assert result.document_id, result.error
        return result.document_id


def visitor(name: str) -> Visitor:
    """A visitor with a cookie of their own."""
    return Visitor(id=name, owner=f"{VISITOR}{name}")


@contextmanager
def rig(
    folder: Path,
    *,
    store: ChromaStore | None = None,
    embedder: WordEmbedder | None = None,
    tokens: int = 32,
    **settings: object,
) -> Iterator[Rig]:
    """A library with files under `folder`, over a store of its own or the one of another rig."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    made = load_settings({}, home=folder, **settings)
    ours, clock, originals = store or ChromaStore(None), Now(), Originals(folder / "originals")
    used = embedder or WordEmbedder()
    chunker = Chunker(folder / "tokenizer.json", tokens=tokens, overlap=4)
    indexer = Indexer(ours, used, chunker, made, originals=originals, clock=clock)
    library = Library(
        store=ours,
        indexer=indexer,
        originals=originals,
        settings=made,
        dimension=used.dimension,
        clock=clock,
    )
    try:
        yield Rig(folder, ours, indexer, originals, made, clock, library)
    finally:
        if store is None:
            ours.close()
