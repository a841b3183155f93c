"""The vector store: Chroma, embedded in this process or behind a server that several processes share.

Every collection of the user is a collection of Chroma. Two more are ours: the catalogue, whose lines say
which documents are ready, and the notes of what is under way. A row is found only while a line names its
edition, so nothing half done is ever seen, whoever does it and however it ends. Chroma never embeds.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from specrag.errors import StoreError, StoreLocked
from specrag.retrieval.address import ChromaServer
from specrag.retrieval.base import CollectionInfo, Vectors
from specrag.retrieval.catalogue import Catalogue, Line
from specrag.retrieval.client import drop, make, open_client, translated
from specrag.retrieval.directory import Directory
from specrag.retrieval.editions import Editions
from specrag.retrieval.naming import CATALOGUE, NEXT, NOTES
from specrag.retrieval.nearest import Nearest
from specrag.retrieval.reindexing import Reindexing
from specrag.retrieval.rows import chunks_by_id, chunks_of, vectors_of
from specrag.retrieval.underway import UnderWay
from specrag.retrieval.upkeep import sweep, tidy
from specrag.types import Chunk, DocumentInfo, Passage

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


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
        self._directory = Directory(self._client)
        self._anew = threading.RLock()
        """Of whoever indexes a collection anew, which takes long; others write meanwhile."""
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
        with self._anew, self._write:
            close, self._close = self._close, _nothing
            close()

    # Collections

    def collections(self) -> tuple[str, ...]:
        """The names of the user's collections, in order."""
        with translated("The collections cannot be listed"):
            return self._directory.names()

    def infos(self, *, counted: Collection[str] | None = None) -> list[CollectionInfo]:
        """All collections in order of their names, with the sizes of all or of `counted`."""
        with translated("The collections cannot be listed"):
            return self._directory.infos(self._catalogue, counted)

    def collection(self, name: str) -> CollectionInfo:
        """One collection."""
        with translated(f"The documents of {name} cannot be listed"):
            return self._directory.info(name, self._catalogue)

    def ensure_collection(
        self, name: str, fingerprint: str, description: str = "", labels: Mapping[str, str] = _NONE
    ) -> None:
        """Make a collection, or check that it is of this embedder; labels given replace the old ones."""
        given = {**labels, **({"description": description} if description else {})}
        with self._write, translated(f"The collection {name} cannot be made"):
            self._directory.ensure(name, fingerprint, given)

    def update_collection(self, name: str, **labels: str) -> None:
        """Set title, description, owner, created_at or used_at; "" removes one, the others stay."""
        with translated(f"The labels of {name} cannot be set"):
            self._directory.label(name, labels)

    def check(self, name: str, fingerprint: str) -> None:
        """Refuse a collection that is missing or belongs to another embedder."""
        self._directory.check(name, fingerprint)

    def delete_collection(self, name: str) -> int:
        """Remove a collection; the number of documents removed."""
        with self._write, translated(f"The collection {name} cannot be deleted"):
            self._directory.open(name)
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
            self._directory.open(collection)
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

    def query(
        self, collection: str, vector: Vectors, k: int, documents: Collection[str] | None = None
    ) -> list[Passage]:
        """The `k` nearest chunks of ready documents, best first; equal ones in the order of their ids."""
        counting = partial(self._catalogue.counting, collection)
        ask = partial(self._nearest.passages, vector=vector, k=k, counting=counting, documents=documents)
        with translated(f"{collection} cannot be searched"):
            return self._directory.ask(collection, ask)

    def lookup(self, collection: str, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """Chunks of ready documents by their ids; those that are not there are left out."""
        wanted, counting = list(dict.fromkeys(chunk_ids)), partial(self._catalogue.counting, collection)
        found: dict[str, Chunk] = {}
        with translated(f"The chunks of {collection} cannot be read"):
            for _ in range(2):  # what is missing may have been replaced just now
                missing = [chunk_id for chunk_id in wanted if chunk_id not in found]
                found |= self._directory.ask(
                    collection, partial(chunks_by_id, chunk_ids=missing, counting=counting)
                )
        return {chunk_id: found[chunk_id] for chunk_id in wanted if chunk_id in found}

    def editions(self, collection: str) -> dict[str, str]:
        """A word for each ready document that changes whenever it is written anew."""
        with translated(f"The documents of {collection} cannot be listed"):
            self._directory.open(collection)
            newest = self._catalogue.newest(collection)
        return {document_id: line.edition for document_id, line in newest.items()}

    def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Vectors:
        """The vectors of chunks, in the order of `chunk_ids`."""
        wanted, counting = list(dict.fromkeys(chunk_ids)), partial(self._catalogue.counting, collection)
        with translated(f"The vectors of {collection} cannot be read"):
            by_id = self._directory.ask(collection, lambda rows: vectors_of(rows, wanted, counting))
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in by_id]
        if missing:
            raise StoreError(f"The chunk {missing[0]} is no longer in {collection}; ask again.")
        return np.asarray([by_id[chunk_id] for chunk_id in chunk_ids], dtype=np.float32)

    def count(self, collection: str) -> int:
        """Chunks in a collection, those on their way in or out among them."""
        with translated(f"{collection} cannot be counted"):
            return self._directory.ask(collection, lambda rows: rows.count())

    def reindex(
        self,
        collection: str,
        fingerprint: str,
        embed: Callable[[Sequence[Chunk]], Vectors],
        progress: Callable[[int, int], None],
    ) -> int:
        """Give every chunk a vector of another embedder; the old ones serve until all are in."""
        with self._anew:
            with self._write, translated("The remains of failed writes cannot be removed"):
                self._sweep_now_and_then()
            work = Reindexing(
                client=self._client,
                underway=self._underway,
                embed=embed,
                labelling=self._directory.labelling,
                progress=progress,
            )
            done = work.run(collection, partial(self._directory.open, collection), fingerprint)
            self._directory.now_of(collection, fingerprint)
            return done

    # Parts

    def _prepare(self) -> None:
        silence_s = self._opened.silence_s
        self._catalogue = Catalogue(make(self._client, CATALOGUE, {}), alone=not self._opened.shared)
        notes = make(self._client, NOTES, {})
        self._underway = UnderWay(notes, clock=self._now, silence_s=silence_s)
        self._editions = Editions(self._catalogue, self._underway, self._directory.to_write)
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
        return self._directory.ask(collection, lambda rows: chunks_of(rows, line.document.id, line.edition))


def _missing(collection: str, document_id: str) -> StoreError:
    return StoreError(f"There is no document {document_id} in {collection}; list the documents to see them.")


def _nothing() -> None:
    pass
