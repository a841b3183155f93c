"""The rows of a collection that are nearest to a vector, of those that count.

Chroma's index is approximate, and loses rows among many equal vectors, so a small collection, where a miss
would be noticed, is compared exactly. Its vectors are kept here between questions: a row never changes, so it
is enough to ask which rows there are, and a server need not send a thousand vectors for each question.
"""

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import numpy as np

from specrag.errors import StoreError
from specrag.retrieval import records
from specrag.retrieval.base import Vectors
from specrag.retrieval.catalogue import batches
from specrag.retrieval.rows import Counting
from specrag.types import Chunk, Passage

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

Chosen: TypeAlias = frozenset[str] | None
"""Documents that a question is limited to; None for all."""
_EXACT = 1000
"""Chunks up to which every vector is compared."""
_KEPT = 8
"""Collections whose vectors are kept: at most about 3 MB each."""


@dataclass(frozen=True, slots=True)
class _Hit:
    chunk: Chunk
    edition: str
    similarity: float

    @property
    def key(self) -> tuple[str, str]:
        return self.chunk.document_id, self.edition


@dataclass(frozen=True, slots=True)
class _Row:
    chunk: Chunk
    edition: str
    vector: Vectors


@dataclass(frozen=True, slots=True)
class _Rows:
    by_id: dict[str, _Row]
    """In the order of the ids."""
    matrix: Vectors
    """The vectors, one a row, in the same order: (n, d)."""


class Nearest:
    """Ranks the rows of collections."""

    def __init__(self) -> None:
        self._kept: dict[tuple[UUID, Chosen], _Rows] = {}
        """By collection and choice of documents; the whole of a small collection is kept once."""
        self._lock = threading.Lock()

    def passages(
        self,
        target: "Collection",
        vector: Vectors,
        k: int,
        counting: Counting,
        documents: Iterable[str] | None = None,
    ) -> list[Passage]:
        """At most `k` passages of these documents (or all), best first; equal ones in order of their ids.

        `counting` is asked after the rows were read, so that of a document on its way in or out nothing is
        found.
        """
        chosen = None if documents is None else frozenset(documents)
        total = target.count() if k > 0 and chosen != frozenset() else 0
        if total == 0:
            return []
        hidden: set[tuple[str, str]] = set()
        while True:
            # Read again when something was hidden: what takes its place may have come in just now.
            rows = self._few(target, total, chosen)
            hits = (
                _by_index(target, vector, min(k, total), _condition(hidden, chosen))
                if rows is None
                else _exact(target.name, rows, vector, k, partial(_is_wanted, hidden=hidden, chosen=chosen))
            )
            seen = {hit.key for hit in hits} | hidden
            unready = seen - counting(seen)
            if unready == hidden:
                passages = [records.to_passage(hit.chunk, hit.similarity) for hit in hits]
                return sorted(passages, key=lambda passage: (-passage.score, passage.id))
            hidden = unready

    def _few(self, target: "Collection", total: int, chosen: Chosen) -> _Rows | None:
        """The rows to compare exactly; None if they are too many."""
        if total <= _EXACT:
            return self._rows(target, None, sorted(target.get(include=[])["ids"]))
        if chosen is None:
            return None
        ids = sorted(target.get(where=_condition(set(), chosen), include=[])["ids"])
        return self._rows(target, chosen, ids) if len(ids) <= _EXACT else None

    def _rows(self, target: "Collection", chosen: Chosen, ids: list[str]) -> _Rows:
        key = target.id, chosen
        kept = self._kept.get(key)
        if kept is not None and list(kept.by_id) == ids:
            return kept
        before = {} if kept is None else kept.by_id
        known = {row_id: before[row_id] for row_id in ids if row_id in before}
        known |= _read(target, [row_id for row_id in ids if row_id not in known])
        by_id = dict(sorted(known.items()))
        rows = _Rows(by_id, np.asarray([row.vector for row in by_id.values()], dtype=np.float32))
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = rows
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return rows


def _read(target: "Collection", ids: list[str]) -> dict[str, _Row]:
    rows = {}
    for some in batches(ids):
        found: Any = target.get(ids=some, include=["embeddings", "documents", "metadatas"])
        columns = (found[name] for name in ("ids", "documents", "metadatas", "embeddings"))
        for row_id, text, record, vector in zip(*columns, strict=True):
            chunk = records.to_chunk(row_id, text, record)
            rows[row_id] = _Row(chunk, records.edition_of(record), np.asarray(vector, dtype=np.float32))
    return rows


def _exact(name: str, rows: _Rows, vector: Vectors, k: int, wanted: Callable[[_Hit], bool]) -> list[_Hit]:
    if not rows.by_id:
        return []
    if rows.matrix.shape[1:] != vector.shape:
        raise StoreError(
            f"The vectors of {name} have {rows.matrix.shape[1]} dimensions, the question has {vector.size};"
            " set SPECRAG_EMBEDDER back."
        )
    norms = np.linalg.norm(rows.matrix, axis=1) * np.linalg.norm(vector)
    similarities = rows.matrix @ vector / np.where(norms == 0, 1.0, norms)
    listed = list(rows.by_id.values())
    places = np.argsort(-similarities, kind="stable")
    best = (_Hit(listed[at].chunk, listed[at].edition, float(similarities[at])) for at in places)
    return list(itertools.islice(filter(wanted, best), k))


def _is_wanted(hit: _Hit, hidden: set[tuple[str, str]], chosen: Chosen) -> bool:
    return hit.key not in hidden and (chosen is None or hit.chunk.document_id in chosen)


def _by_index(target: "Collection", vector: Vectors, k: int, where: Any) -> list[_Hit]:
    found: Any = target.query(query_embeddings=vector[np.newaxis], n_results=k, where=where)
    columns = (found[name][0] for name in ("ids", "documents", "metadatas", "distances"))
    return [
        _Hit(records.to_chunk(row_id, text, record), records.edition_of(record), 1.0 - distance)
        for row_id, text, record, distance in zip(*columns, strict=True)
    ]


def _condition(hidden: set[tuple[str, str]], chosen: Chosen) -> Any:
    """A condition of Chroma; rows of old have no edition to go by, so there it is the document."""
    editions = sorted({edition for _, edition in hidden if edition})
    documents = sorted({document for document, edition in hidden if not edition})
    conditions: list[Any] = []
    if editions:
        conditions.append({"edition": {"$nin": editions}})
    if documents:
        conditions.append({"document_id": {"$nin": documents}})
    if chosen is not None:
        conditions.append({"document_id": {"$in": sorted(chosen)}})
    return {"$and": conditions} if len(conditions) > 1 else next(iter(conditions), None)
