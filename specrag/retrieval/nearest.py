"""The chunks of a collection that are nearest to a vector.

Chroma's index is approximate, and loses rows among many equal vectors, so a small collection, where a miss
would be noticed, is compared exactly.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from specrag.errors import StoreError
from specrag.retrieval import records
from specrag.retrieval.base import Vectors
from specrag.types import Passage

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

_EXACT = 1000
"""Chunks up to which every vector is compared; about 20 ms."""


def nearest(target: "Collection", vector: Vectors, k: int, where: Any) -> list[Passage]:
    """At most `k` passages, best first; equal ones in the order of their ids."""
    total = target.count()
    if total == 0 or k < 1:
        return []
    found = (
        _exact(target, vector, k, where)
        if total <= _EXACT
        else _by_index(target, vector, min(k, total), where)
    )
    return sorted(found, key=lambda passage: (-passage.score, passage.id))


def _by_index(target: "Collection", vector: Vectors, k: int, where: Any) -> list[Passage]:
    found: Any = target.query(query_embeddings=vector[np.newaxis], n_results=k, where=where)
    columns = (found[name][0] for name in ("ids", "documents", "metadatas", "distances"))
    return [
        records.to_passage(records.to_chunk(chunk_id, text, record), 1.0 - distance)
        for chunk_id, text, record, distance in zip(*columns, strict=True)
    ]


def _exact(target: "Collection", vector: Vectors, k: int, where: Any) -> list[Passage]:
    rows = target.get(where=where, include=["embeddings"])
    if not rows["ids"]:
        return []
    matrix = np.asarray(rows["embeddings"], dtype=np.float32)
    if matrix.shape[1:] != vector.shape:
        raise StoreError(
            f"The vectors of {target.name} have {matrix.shape[1]} dimensions, the question has {vector.size};"
            " set SPECRAG_EMBEDDER back."
        )
    norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector)
    similarities = matrix @ vector / np.where(norms == 0, 1.0, norms)
    best = np.argsort(-similarities, kind="stable")[:k]
    score = {rows["ids"][at]: float(similarities[at]) for at in best}
    chunks = records.to_chunks(target.get(ids=list(score)))
    return [records.to_passage(chunk, score[chunk.id]) for chunk in chunks]
