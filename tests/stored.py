"""Small documents for tests of the store: seeded vectors, and a document put in with one call."""

import numpy as np

from specrag.retrieval.base import Vectors, VectorStore
from specrag.types import DocumentInfo
from tests.made_files import chunks

PRINT = "model/8/normalised/1"
DIMENSION = 8


def info(
    identity: str, count: int, *, title: str = "Notes", added_at: str = "2026-01-01T00:00:00+00:00"
) -> DocumentInfo:
    return DocumentInfo(
        id=identity, title=title, source="notes.txt", pages=1, chunks=count, added_at=added_at
    )


def unit(*seeds: int, dimension: int = DIMENSION) -> Vectors:
    rows = np.stack([np.random.default_rng(seed).normal(size=dimension) for seed in seeds])
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def put(
    store: VectorStore, identity: str, count: int, *, first_seed: int = 0, collection: str = "docs"
) -> Vectors:
    vectors = unit(*range(first_seed, first_seed + count))
    store.ensure_collection(collection, PRINT)
    store.add(collection, info(identity, count), chunks(identity, count), vectors)
    return vectors
