"""The sample collection after the embedder was changed."""

from pathlib import Path

from specrag.config import load_settings
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.index import Indexer
from specrag.library.shelves import SAMPLE
from specrag.retrieval.chroma import ChromaStore
from specrag.sample import ensure_sample
from tests.toys import WordEmbedder


class OtherEmbedder(WordEmbedder):
    """Vectors that must not be compared with those of the first."""

    fingerprint = "words-64-anew"


def test_the_sample_follows_the_embedder(embedder_path: Path) -> None:
    """The page did not start any more, and what it offers against that could not be reached."""
    store = ChromaStore(None)
    chunker = Chunker(embedder_path / "tokenizer.json", tokens=128, overlap=24)
    ensure_sample(Indexer(store, WordEmbedder(), chunker, load_settings({})))
    before = store.collection(SAMPLE)
    ensure_sample(Indexer(store, OtherEmbedder(), chunker, load_settings({})))
    after = store.collection(SAMPLE)
    assert after.fingerprint == "words-64-anew"
    assert after.documents == before.documents > 0
    store.close()
