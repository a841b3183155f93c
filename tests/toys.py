"""Small stand-ins for what is slow: an embedder of hashed words, a clock that counts, and a filled store."""

import itertools
import zlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from specrag.config import Settings, load_settings
from specrag.events import Event
from specrag.models.base import LanguageModel
from specrag.partition import Partitioner
from specrag.pipelines.base import Pipeline, Request, Tools
from specrag.pipelines.speculative import SpeculativePipeline
from specrag.retrieval.base import Vectors
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.evidence import EvidenceScorer
from specrag.retrieval.retriever import Retriever
from specrag.text import content_words
from specrag.turnstile import Turnstile
from specrag.types import Chunk, DocumentInfo

PAGES = (
    ("Battery", "The battery holds 640 watt-hours. It weighs 3.4 kilograms."),
    ("Charging", "A full charge takes 5 hours."),
    ("Load 2023", "The bike carries at most 180 kilograms."),
    ("Load 2025", "The bike carries at most 160 kilograms since March."),
    ("History", "The firm was founded by Ada Brennick."),
    ("Newsletter", "The soup of the festival needs 640 onions."),
)


class WordEmbedder:
    """Counts words in 64 buckets; similar texts share words."""

    fingerprint = "words-64"
    dimension = 64
    window = 10_000
    tokenizer_file = Path("unused")

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in content_words(text):
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(norms, 1e-9), dtype=np.float32)


def counting_clock() -> Callable[[], float]:
    """A clock that moves on by a millisecond whenever somebody looks."""
    ticks = itertools.count()
    return lambda: next(ticks) / 1000


def filled_store(collection: str = "documents") -> ChromaStore:
    """A store in memory with one document for each of `PAGES`."""
    store = ChromaStore(None)
    store.ensure_collection(collection, WordEmbedder.fingerprint)
    for number, (title, text) in enumerate(PAGES):
        identity = f"{number:016x}"
        chunk = Chunk(
            id=f"{identity}-00000",
            document_id=identity,
            title=title,
            source=f"{title}.md",
            text=text,
            position=0,
            published_at="2025-03-01" if "2025" in title else None,
        )
        info = DocumentInfo(
            id=identity,
            title=title,
            source=f"{title}.md",
            pages=1,
            chunks=1,
            added_at=datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
        )
        store.add(collection, info, [chunk], WordEmbedder().embed([text]))
    return store


def tools(
    store: ChromaStore,
    drafter: LanguageModel,
    verifier: LanguageModel | None = None,
    *,
    partitioner: Partitioner | None = None,
    turnstile: Turnstile | None = None,
    **settings: object,
) -> Tools:
    """What a pipeline works with, from toys."""
    made: Settings = load_settings({}, **settings)
    embedder = WordEmbedder()
    return Tools(
        retriever=Retriever(store, embedder),
        evidence=EvidenceScorer(embedder),
        drafter=drafter,
        verifier=verifier or drafter,
        settings=made,
        environment={"versions": {}, "models": {}, "device": "test"},
        clock=counting_clock(),
        partitioner=partitioner,
        turnstile=turnstile,
    )


def pipeline(
    store: ChromaStore, drafter: LanguageModel, verifier: LanguageModel | None = None, **settings: object
) -> SpeculativePipeline:
    """The speculative pipeline over toys."""
    return SpeculativePipeline(tools(store, drafter, verifier, **settings))  # type: ignore[arg-type]  # settings only


async def events_of(
    made: Pipeline, question: str, collection: str = "documents", run_id: str = "r1"
) -> list[Event]:
    """All events of one run."""
    request = Request(question=question, collection=collection, run_id=run_id)
    async with aclosing(made.run(request)) as stream:
        return [event async for event in stream]
