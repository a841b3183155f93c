"""BM25 beside the vectors: what a passage shares with the question word by word, code by code.

The index of a collection is kept in memory and follows the store: before each search the editions of its
documents are compared with those that the index was made of, and only new ones are read and split into
words. An index that is searched never changes; a new one takes its place. Who asks while it is made waits
for it, but only for that of the same collection.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from specrag.ingest.chunks.searchable import searchable
from specrag.retrieval.postings import Ids, Postings, numbered, postings, rarity
from specrag.retrieval.words import asked, words
from specrag.types import Chunk

KEPT: Final = 8
"""Collections whose index is kept; the one that was asked least recently goes first."""


class ChunkSource(Protocol):
    """What BM25 needs of a store."""

    def editions(self, collection: str) -> dict[str, str]:
        """The edition of every document that is ready, by document id."""
        ...

    def chunks(self, collection: str, document_id: str) -> list[Chunk]:
        """The chunks of a document in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What a question finds word by word."""

    hits: tuple[tuple[str, float], ...] = ()
    """(chunk id, BM25 score) of the best, best first; chunks without a word of it are left out."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Score of each hit, and of each chunk that was asked for besides."""
    rarity: Mapping[str, float] = field(default_factory=dict)
    """Inverse document frequency of each word of the question, of those that occur nowhere as well."""

    @property
    def ceiling(self) -> float:
        """No chunk can have a score of this or more."""
        return sum(self.rarity.values())

    def share(self, chunk_id: str) -> float:
        """The score of a chunk as a share of what is possible, in [0, 1)."""
        return self.scores.get(chunk_id, 0.0) / self.ceiling if self.scores else 0.0

    def held(self, text: str) -> float:
        """Share of the question that a text holds, rare words counting more, in [0, 1]."""
        present = set(words(text))
        found = sum(rarity for word, rarity in self.rarity.items() if word in present)
        return found / self.ceiling if self.rarity else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of one edition of a document."""

    edition: str
    chunk_ids: tuple[str, ...]
    texts: tuple[Ids, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    """An index over the chunks of a collection, as of some editions."""

    editions: dict[str, str]
    chunk_ids: tuple[str, ...]
    rows: Mapping[str, int]
    """Place of each chunk in the index."""
    owners: NDArray[np.str_]
    """Document of each chunk."""
    postings: Postings | None

    def matches(
        self, tokens: Sequence[str], k: int, documents: Collection[str] | None, also: Collection[str]
    ) -> Matches:
        """The `k` best, and the scores of `also`."""
        rare = {token: self._rarity(token) for token in tokens}
        known = self.postings.get_tokens_ids(list(tokens)) if self.postings else []
        if self.postings is None or not known or k < 1:
            return Matches(rarity=rare)
        scores = self.postings.get_scores_from_ids(known)
        wanted = scores > 0
        if documents is not None:
            wanted &= np.isin(self.owners, list(documents))
        hits = self._best(scores, np.flatnonzero(wanted), k)
        besides = {identity: float(scores[self.rows[identity]]) for identity in also if identity in self.rows}
        return Matches(hits=tuple(hits), scores={**besides, **dict(hits)}, rarity=rare)

    def _best(self, scores: Any, rows: Any, k: int) -> list[tuple[str, float]]:
        """The k best; equals by id, so that no place depends on how the index was laid out."""
        if len(rows) > k:
            least = np.partition(scores[rows], len(rows) - k)[len(rows) - k]
            rows = rows[scores[rows] >= least]
        found = [(self.chunk_ids[row], float(scores[row])) for row in rows.tolist()]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:k]

    def _rarity(self, token: str) -> float:
        return float(rarity(len(self.chunk_ids), self.postings.holding(token) if self.postings else 0))


@dataclass(slots=True)
class _Shelf:
    """What is kept of one collection. Only who holds the lock changes it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    vocabulary: dict[str, int] = field(default_factory=dict)
    documents: dict[str, _Words] = field(default_factory=dict)
    index: _Index | None = None


class Bm25:
    """Searches collections by words. Any number of threads may ask."""

    def __init__(self, store: ChunkSource, *, kept: int = KEPT) -> None:
        self._store = store
        self._kept = kept
        self._lock = threading.Lock()
        self._shelves: OrderedDict[str, _Shelf] = OrderedDict()

    def search(
        self, collection: str, question: str, k: int, documents: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The ids and scores of the `k` best chunks, best first; chunks without a word of it are left out.

        With `documents` only theirs are looked at.
        """
        return list(self.matches(collection, question, k, documents).hits)

    def matches(
        self,
        collection: str,
        question: str,
        k: int,
        documents: Collection[str] | None = None,
        *,
        also: Collection[str] = (),
    ) -> Matches:
        """The same with what the scores are worth, and with the scores of the chunks `also`.

        Raises:
            StoreError: the collection is missing, or the store cannot be read.
        """
        return self._current(collection).matches(asked(question), k, documents, also)

    def forget(self, collection: str) -> None:
        """Let go of the words of a collection that was deleted, at once instead of some time later."""
        with self._lock:
            self._shelves.pop(collection, None)

    def _current(self, collection: str) -> _Index:
        shelf = self._shelf(collection)
        editions = self._store.editions(collection)
        index = shelf.index
        if index is not None and index.editions == editions:
            return index
        with shelf.lock:
            # somebody else may have been quicker, and the store may have gone on meanwhile
            editions = self._store.editions(collection)
            if shelf.index is None or shelf.index.editions != editions:
                shelf.index = self._made(collection, shelf, editions)
            return shelf.index

    def _shelf(self, collection: str) -> _Shelf:
        with self._lock:
            shelf = self._shelves.setdefault(collection, _Shelf())
            self._shelves.move_to_end(collection)
            while len(self._shelves) > self._kept:
                self._shelves.popitem(last=False)
            return shelf

    def _made(self, collection: str, shelf: _Shelf, editions: dict[str, str]) -> _Index:
        for document in shelf.documents.keys() - editions.keys():
            del shelf.documents[document]
        for document, edition in editions.items():
            known = shelf.documents.get(document)
            if known is None or known.edition != edition:
                shelf.documents[document] = self._read(collection, document, edition, shelf.vocabulary)
        held = list(shelf.documents.items())
        chunk_ids = tuple(chunk for _, read in held for chunk in read.chunk_ids)
        return _Index(
            editions=editions,
            chunk_ids=chunk_ids,
            rows={chunk: row for row, chunk in enumerate(chunk_ids)},
            owners=np.array([document for document, read in held for _ in read.chunk_ids], dtype=np.str_),
            postings=postings([ids for _, read in held for ids in read.texts], shelf.vocabulary),
        )

    def _read(self, collection: str, document: str, edition: str, vocabulary: dict[str, int]) -> _Words:
        chunks = self._store.chunks(collection, document)
        return _Words(
            edition=edition,
            chunk_ids=tuple(chunk.id for chunk in chunks),
            texts=tuple(numbered(words(searchable(chunk)), vocabulary) for chunk in chunks),
        )
