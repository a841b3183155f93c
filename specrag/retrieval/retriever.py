"""From a question to passages: embed it, ask the store, and fetch the vectors that the partition needs."""

from dataclasses import dataclass

import numpy as np

from specrag.retrieval.base import Embedder, Vectors, VectorStore
from specrag.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What was found for a question."""

    passages: tuple[Passage, ...]
    """Best first; empty if the collection is."""
    vectors: Vectors
    """One row for each passage: (K, d)."""
    question_vector: Vectors
    """(d,)"""


class Retriever:
    """Finds the passages nearest to a question."""

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    def retrieve(self, question: str, collection: str, k: int) -> Retrieved:
        """The `k` passages nearest to `question`: `embed`, then `search`."""
        return self.search(self.embed(question, collection), collection, k)

    def embed(self, question: str, collection: str) -> Vectors:
        """The vector (d,) of a question to `collection`.

        Raises:
            StoreError: the collection is missing, or its vectors come from another embedder.
        """
        self._store.check(collection, self._embedder.fingerprint)
        vector: Vectors = self._embedder.embed([question])[0]
        return vector

    def search(self, vector: Vectors, collection: str, k: int) -> Retrieved:
        """The `k` passages nearest to the vector of a question, with their vectors."""
        passages = tuple(self._store.query(collection, vector, k))
        if not passages:
            nothing = np.empty((0, self._embedder.dimension), dtype=np.float32)
            return Retrieved(passages=(), vectors=nothing, question_vector=vector)
        vectors = self._store.vectors(collection, [passage.id for passage in passages])
        return Retrieved(passages=passages, vectors=vectors, question_vector=vector)
