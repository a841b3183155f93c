"""The vector store: Chroma, embedded in this process or behind a server that several processes share.

Every collection of the user is a collection of Chroma. Two more are ours: the catalogue, whose lines say
which documents are ready, and the notes of what is under way. A row is found only while a line names its
edition, so nothing half done is ever seen, whoever does it and however it ends. Chroma never embeds.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from specrag.errors import StoreError, StoreLocked
from specrag.retrieval import records
from specrag.retrieval.address import ChromaServer
from specrag.retrieval.base import CollectionInfo, Vectors
from specrag.retrieval.catalogue import Catalogue, Line
from specrag.retrieval.client import drop, find, make, open_client, translated
from specrag.retrieval.editions import Editions
from specrag.retrieval.naming import CATALOGUE, NEXT, NOTES, check_name, is_ours
from specrag.retrieval.nearest import Nearest
from specrag.retrieval.reindexing import Reindexing
from specrag.retrieval.rows import chunks_of, vectors_of
from specrag.retrieval.underway import UnderWay
from specrag.retrieval.upkeep import sweep, tidy
from specrag.types import Chunk, DocumentInfo, Passage

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

_FINGERPRINT, _DESCRIPTION = "specrag_fingerprint", "specrag_description"
_TRIES = 4
T = TypeVar("T")


class ChromaStore:
    """A `VectorStore` in a folder of this machine, on a server, or in memory."""

    def __init__(self, place: Path | ChromaServer | None) -> None:
        """Open the store.

        Args:
            place: a folder on a local disk, or a server; None keeps everything in memory until `close`.

        Raises:
            StoreLocked: another process owns the folder.
            StoreUnreachable: the server does not answer.
            StoreError: the folder cannot be opened, or the server refuses.
        """
        self._opened = open_client(place)
        self._client = self._opened.client
        self._close = self._opened.close
        self._write = threading.RLock()
        self._nearest = Nearest()
        self._embedder_of: dict[str, str] = {}
        """The embedder that this process writes vectors of, by collection."""
        try:
            with translated("The remains of an interrupted run cannot be removed"):
                self._prepare()
        except BaseException:
            self._close()
            raise

    def close(self) -> None:
        """Let go of the folder or the connections; a second call does nothing."""
        if self._opened.shared:
            self._close()  # at once: who writes at this moment may be waiting for a server that is away
            return
        with self._write:
            close, self._close = self._close, _nothing
            close()

    # Collections

    def collections(self) -> tuple[str, ...]:
        """The names of the user's collections, in order."""
        with translated("The collections cannot be listed"):
            # In the middle of a switch a collection has only its provisional name.
            names = {item.name.removeprefix(NEXT) for item in self._client.list_collections()}
            return tuple(sorted(name for name in names if not is_ours(name)))

    def collection(self, name: str) -> CollectionInfo:
        """One collection."""
        metadata = self._collection(name).metadata or {}
        return CollectionInfo(
            name=name,
            description=str(metadata.get(_DESCRIPTION, "")),
            fingerprint=str(metadata.get(_FINGERPRINT, "")),
            documents=len(self.documents(name)),
        )

    def ensure_collection(self, name: str, fingerprint: str, description: str = "") -> None:
        """Make a collection, or check that it is of this embedder."""
        check_name(name)
        with self._write, translated(f"The collection {name} cannot be made"):
            text = records.storable(description)
            found = self._find(name) or make(
                self._client, name, {_FINGERPRINT: fingerprint, _DESCRIPTION: text}
            )
            _compare(name, found, fingerprint)
            self._embedder_of[name] = fingerprint
            if text and (found.metadata or {}).get(_DESCRIPTION) != text:
                found.modify(metadata={**(found.metadata or {}), _DESCRIPTION: text})

    def check(self, name: str, fingerprint: str) -> None:
        """Refuse a collection that is missing or belongs to another embedder."""
        _compare(name, self._collection(name), fingerprint)

    def delete_collection(self, name: str) -> int:
        """Remove a collection; the number of documents removed."""
        with self._write, translated(f"The collection {name} cannot be deleted"):
            self._collection(name)
            if any(note.kind != "edition" for note in self._underway.live(name)):
                raise StoreLocked(f"{name} is being indexed anew; delete it when that is done.")
            documents = len(self._catalogue.all(name))
            self._catalogue.clear(name)
            drop(self._client, NEXT + name)
            drop(self._client, name)
            self._catalogue.clear(name)  # of documents that were just coming in
            return documents

    # Documents

    def add(self, collection: str, document: DocumentInfo, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Put a document in, wholly or not at all; an older one of the same id is replaced."""
        if not chunks or len(chunks) != len(vectors):
            raise StoreError(
                f"{document.source} has {len(chunks)} chunks and {len(vectors)} vectors; index it again."
            )
        with self._write, translated(f"{document.source} cannot be stored in {collection}"):
            self._sweep_now_and_then()
            self._editions.add(collection, document, chunks, vectors)

    def documents(self, collection: str) -> list[DocumentInfo]:
        """The documents that are ready, newest first."""
        with translated(f"The documents of {collection} cannot be listed"):
            self._collection(collection)
            return self._catalogue.all(collection)

    def find(self, collection: str, document_id: str) -> DocumentInfo | None:
        """One document, or None if it is not ready here."""
        with translated(f"The catalogue of {collection} cannot be read"):
            line = self._catalogue.line(collection, document_id)
            return line.document if line else None

    def document(self, collection: str, document_id: str) -> DocumentInfo:
        """One document."""
        found = self.find(collection, document_id)
        if found is None:
            raise _missing(collection, document_id)
        return found

    def chunks(self, collection: str, document_id: str) -> list[Chunk]:
        """The chunks of a ready document, in order."""
        with translated(f"The chunks of {document_id} cannot be read"):
            line = self._catalogue.line(collection, document_id)
            # Read again, because the rows of a document that is being removed or replaced go one by one.
            while line is not None:
                chunks = self._chunks(collection, line)
                before, line = line, self._catalogue.line(collection, document_id)
                if line == before:
                    return chunks
            return []

    def delete(self, collection: str, document_id: str) -> int:
        """Remove a document and read back that it is gone; the number of chunks removed."""
        with self._write, translated(f"{document_id} cannot be deleted from {collection}"):
            self._sweep_now_and_then()
            removed = self._editions.remove(collection, document_id)
        if removed is None:
            raise _missing(collection, document_id)
        return removed

    # Vectors

    def query(self, collection: str, vector: Vectors, k: int) -> list[Passage]:
        """The `k` nearest chunks of ready documents, best first; equal ones in the order of their ids."""
        counting = partial(self._catalogue.counting, collection)
        with translated(f"{collection} cannot be searched"):
            return self._ask(collection, lambda rows: self._nearest.passages(rows, vector, k, counting))

    def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Vectors:
        """The vectors of chunks, in the order of `chunk_ids`."""
        wanted, counting = list(dict.fromkeys(chunk_ids)), partial(self._catalogue.counting, collection)
        with translated(f"The vectors of {collection} cannot be read"):
            by_id = self._ask(collection, lambda rows: vectors_of(rows, wanted, counting))
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in by_id]
        if missing:
            raise StoreError(f"The chunk {missing[0]} is no longer in {collection}; ask again.")
        return np.asarray([by_id[chunk_id] for chunk_id in chunk_ids], dtype=np.float32)

    def count(self, collection: str) -> int:
        """Chunks in a collection, those on their way in or out among them."""
        with translated(f"{collection} cannot be counted"):
            return self._ask(collection, lambda rows: rows.count())

    def reindex(
        self,
        collection: str,
        fingerprint: str,
        embed: Callable[[Sequence[str]], Vectors],
        progress: Callable[[int, int], None],
    ) -> int:
        """Give every chunk a vector of another embedder; the old ones serve until all are in."""
        with self._write:
            with translated("The remains of failed writes cannot be removed"):
                self._sweep_now_and_then()
            metadata = {**(self._collection(collection).metadata or {}), _FINGERPRINT: fingerprint}
            work = Reindexing(client=self._client, underway=self._underway, embed=embed, progress=progress)
            done = work.run(collection, lambda: self._collection(collection), metadata)
            self._embedder_of[collection] = fingerprint
            return done

    # Parts

    def _prepare(self) -> None:
        silence_s = self._opened.silence_s
        self._catalogue = Catalogue(make(self._client, CATALOGUE, {}))
        notes = make(self._client, NOTES, {})
        self._underway = UnderWay(notes, clock=self._now, silence_s=silence_s)
        self._editions = Editions(self._catalogue, self._underway, self._to_write)
        self._swept = time.monotonic()
        if not self._opened.shared:
            self._underway.clear()  # we have the lock, so whoever left a note is dead
        tidy(self._client, self._catalogue, self._underway)

    def _now(self) -> int:
        """Milliseconds by the clock of the store, which all its writers share."""
        return self._client.heartbeat() // 1_000_000

    def _sweep_now_and_then(self) -> None:
        if self._underway.untidy or time.monotonic() - self._swept > self._opened.silence_s:
            self._swept = time.monotonic()
            sweep(self._client, self._catalogue, self._underway)

    def _chunks(self, collection: str, line: Line) -> list[Chunk]:
        return self._ask(collection, lambda rows: chunks_of(rows, line.document.id, line.edition))

    def _find(self, name: str) -> "Collection | None":
        """A collection, in the middle of a switch under its provisional name."""
        return (
            find(self._client, name)
            or find(self._client, NEXT + name)
            or find(self._client, name)  # the switch was over between the two
        )

    def _collection(self, name: str) -> "Collection":
        with translated(f"The collection {name} cannot be opened"):
            found = None if is_ours(name) else self._find(check_name(name))
        if found is None:
            raise StoreError(
                f"There is no collection {name}; add a document to it first, or choose another one."
            )
        return found

    def _to_write(self, name: str) -> "Collection":
        """A collection, if it still belongs to the embedder that our vectors come from."""
        found = self._collection(name)
        if name in self._embedder_of:
            _compare(name, found, self._embedder_of[name])
        return found

    def _ask(self, name: str, question: Callable[["Collection"], T]) -> T:
        """The answer of a collection that was the same before and after.

        One that is switched meanwhile gives errors of many kinds, or too few rows without an error; one from
        which rows are removed meanwhile may stumble over them.
        """
        import chromadb.errors

        patience = _TRIES
        asked = self._collection(name)
        while True:
            before, error = asked, None
            try:
                answer = question(before)
            except chromadb.errors.ChromaError as failure:
                error = failure
                patience -= 1
            asked = self._collection(name)
            if error is None and asked.id == before.id:
                return answer
            if error is not None and patience == 0:
                raise error


def _missing(collection: str, document_id: str) -> StoreError:
    return StoreError(f"There is no document {document_id} in {collection}; list the documents to see them.")


def _compare(name: str, found: "Collection", fingerprint: str) -> None:
    stored = (found.metadata or {}).get(_FINGERPRINT)
    if stored != fingerprint:
        raise StoreError(
            f"The collection {name} was indexed with the embedder {stored}, but {fingerprint} is in use; set"
            f" SPECRAG_EMBEDDER back, or run `specrag documents reindex --collection {name}`."
        )


def _nothing() -> None:
    pass
