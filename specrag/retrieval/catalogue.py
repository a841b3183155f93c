"""The catalogue: a line for each edition of a document that is ready, in a collection of Chroma of its own.

A line is written after the last row of an edition and removed before the first, so it is the commit mark: a
row counts only while the newest line of its document names its edition. A line never changes; two lines of
one document mean that the older edition has just been replaced. The vectors of this collection mean nothing.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specrag.retrieval import records
from specrag.types import DocumentInfo

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An edition of a document that is ready."""

    document: DocumentInfo
    edition: str
    stamp: int
    """When it was written, in milliseconds by the clock that all writers share; 0 in stores of old."""


class Catalogue:
    """Lines by collection and document."""

    def __init__(self, lines: "Collection", *, alone: bool = False) -> None:
        """Look into the collection of lines.

        Args:
            lines: where they are kept.
            alone: nobody else writes them, so what was read need not be read again for every question.
        """
        self._lines = lines
        self._known: dict[str, tuple[Line, ...]] | None = {} if alone else None
        """All lines of collections, newest first."""
        self._writes = 0
        self._lock = threading.Lock()

    def put(self, collection: str, document: DocumentInfo, edition: str, stamp: int) -> None:
        """Write a line."""
        with self._writing(collection):
            self._lines.upsert(
                ids=[_key(collection, document.id, edition)],
                embeddings=np.ones((1, 1), dtype=np.float32),
                metadatas=[records.document_record(collection, document, edition, stamp)],
            )

    def remove(self, collection: str, document_id: str, edition: str) -> None:
        """Remove a line; one that is not there is no error."""
        with self._writing(collection):
            self._lines.delete(ids=[_key(collection, document_id, edition)])

    def clear(self, collection: str) -> None:
        """Remove all lines of a collection."""
        with self._writing(collection):
            self._lines.delete(where={"collection": collection})

    def lines(self, collection: str, document_ids: Iterable[str] | None = None) -> list[Line]:
        """The lines of a collection, or of some documents in it; the newest of a document comes first."""
        if document_ids is not None:
            return self._read(collection, document_ids)
        with self._lock:
            known, writes = (self._known or {}).get(collection), self._writes
        if known is not None:
            return list(known)
        found = self._read(collection, None)
        with self._lock:
            if self._known is not None and writes == self._writes:
                self._known[collection] = tuple(found)
        return found

    def _read(self, collection: str, document_ids: Iterable[str] | None) -> list[Line]:
        found: list[Line] = []
        for where in _conditions(collection, document_ids):
            rows = self._lines.get(where=where, include=["metadatas"])["metadatas"] or []
            found += [_line(row) for row in rows if row["collection"] == collection]
        return sorted(found, key=_age, reverse=True)

    @contextmanager
    def _writing(self, collection: str) -> Iterator[None]:
        """A write, before, during and after which nothing that was read of the collection is believed."""
        self._forget(collection)
        try:
            yield
        finally:
            self._forget(collection)

    def _forget(self, collection: str) -> None:
        with self._lock:
            self._writes += 1
            if self._known is not None:
                self._known.pop(collection, None)

    def newest(self, collection: str, document_ids: Iterable[str] | None = None) -> dict[str, Line]:
        """The line that counts of each document that is ready."""
        return {line.document.id: line for line in reversed(self.lines(collection, document_ids))}

    def line(self, collection: str, document_id: str) -> Line | None:
        """The line that counts of a document, or None."""
        return self.newest(collection, [document_id]).get(document_id)

    def counting(self, collection: str, editions: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Which of these editions, as (document, edition), count: the newest of each document that is ready.

        By document, because the newest edition of one may be none of these.
        """
        asked = set(editions)
        newest = self.newest(collection, {document_id for document_id, _ in asked})
        return asked & {(document_id, line.edition) for document_id, line in newest.items()}

    def size(self, collection: str) -> tuple[int, int]:
        """Ready documents and their chunks of one collection."""
        lines = self.newest(collection).values()
        return len(lines), sum(line.document.chunks for line in lines)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Ready documents and their chunks of every collection, from one question."""
        newest: dict[tuple[str, str], Line] = {}
        for row in self._lines.get(include=["metadatas"])["metadatas"] or []:
            key, line = (str(row["collection"]), str(row["document_id"])), _line(row)
            if key not in newest or _age(newest[key]) < _age(line):
                newest[key] = line
        sizes: dict[str, tuple[int, int]] = {}
        for (collection, _), line in newest.items():
            documents, chunks = sizes.get(collection, (0, 0))
            sizes[collection] = documents + 1, chunks + line.document.chunks
        return sizes

    def all(self, collection: str) -> list[DocumentInfo]:
        """The documents of a collection, newest first."""
        documents = [line.document for line in self.newest(collection).values()]
        return sorted(documents, key=lambda document: (document.added_at, document.id), reverse=True)


def batches(ids: Sequence[str]) -> Iterator[list[str]]:
    """Portions that Chroma takes well."""
    return (list(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH))


def _line(row: Mapping[str, Any]) -> Line:
    return Line(
        document=records.to_document(row), edition=records.edition_of(row), stamp=int(row.get("stamp", 0))
    )


def _age(line: Line) -> tuple[int, str]:
    return line.stamp, line.edition


def _conditions(collection: str, document_ids: Iterable[str] | None) -> Iterator[Any]:
    if document_ids is None:
        yield {"collection": collection}
        return
    for some in batches(sorted(document_ids)):
        yield {"document_id": {"$in": some}}  # with the collection in it Chroma takes twice as long


def _key(collection: str, document_id: str, edition: str) -> str:
    return f"{collection}/{document_id}/{edition}" if edition else f"{collection}/{document_id}"
