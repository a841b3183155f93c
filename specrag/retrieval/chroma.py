"""The vector store: Chroma, embedded in this process.

Every collection of the user is a collection of Chroma; one more, the catalogue, has a line for each document.
The line is written after the last chunk and removed before the first, so it is the commit mark: whatever has
no line is not there, and opening sweeps away what a killed process left behind. Chroma never embeds.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from specrag.errors import StoreError
from specrag.retrieval import records
from specrag.retrieval.base import CollectionInfo, Vectors
from specrag.retrieval.catalogue import BATCH, Catalogue
from specrag.retrieval.client import open_client, translated
from specrag.retrieval.naming import CATALOGUE, NEXT, check_name, is_ours
from specrag.retrieval.nearest import nearest
from specrag.retrieval.upkeep import batches, remove_chunks, tidy
from specrag.types import Chunk, DocumentInfo, Passage

if TYPE_CHECKING:
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.models.Collection import Collection

_INDEX: "CreateCollectionConfiguration" = {
    "hnsw": {"space": "cosine", "ef_construction": 200, "ef_search": 512, "max_neighbors": 32}
}
_FINGERPRINT, _DESCRIPTION = "specrag_fingerprint", "specrag_description"


class ChromaStore:
    """A `VectorStore` in a folder of this machine, or in memory."""

    def __init__(self, path: Path | None) -> None:
        """Open the store.

        Args:
            path: its folder, on a local disk; None keeps everything in memory until `close`.

        Raises:
            StoreLocked: another process owns the folder.
            StoreError: the folder cannot be opened.
        """
        self._client, self._close = open_client(path)
        self._write = threading.RLock()
        self._hidden: set[tuple[str, str]] = set()
        """Documents on their way in or out; this process is the only one, so memory is enough."""
        try:
            self._catalogue = Catalogue(self._made(CATALOGUE, {}))
            with translated("The remains of an interrupted run cannot be removed"):
                tidy(self._client, self._catalogue)
        except BaseException:
            self._close()
            raise

    def close(self) -> None:
        """Let go of the folder; a second call does nothing."""
        with self._write:
            close, self._close = self._close, _nothing
            close()

    # Collections

    def collections(self) -> tuple[str, ...]:
        """The names of the user's collections, in order."""
        with translated("The collections cannot be listed"):
            names = (item.name for item in self._client.list_collections())
            return tuple(sorted(name for name in names if not is_ours(name)))

    def collection(self, name: str) -> CollectionInfo:
        """One collection."""
        metadata = self._collection(name).metadata or {}
        return CollectionInfo(
            name=name,
            description=str(metadata.get(_DESCRIPTION, "")),
            fingerprint=str(metadata.get(_FINGERPRINT, "")),
            documents=len(self._catalogue.all(name)),
        )

    def ensure_collection(self, name: str, fingerprint: str, description: str = "") -> None:
        """Make a collection, or check that it is of this embedder."""
        check_name(name)
        with self._write, translated(f"The collection {name} cannot be made"):
            found = self._find(name)
            if found is None:
                self._made(name, {_FINGERPRINT: fingerprint, _DESCRIPTION: records.storable(description)})
                return
            _compare(name, found, fingerprint)
            if description:
                found.modify(metadata={**(found.metadata or {}), _DESCRIPTION: records.storable(description)})

    def check(self, name: str, fingerprint: str) -> None:
        """Refuse a collection that is missing or belongs to another embedder."""
        _compare(name, self._collection(name), fingerprint)

    def delete_collection(self, name: str) -> int:
        """Remove a collection; the number of documents removed."""
        with self._write, translated(f"The collection {name} cannot be deleted"):
            self._collection(name)
            documents = [document.id for document in self.documents(name)]
            self._catalogue.remove(name, documents)
            self._client.delete_collection(name)
            return len(documents)

    # Documents

    def add(self, collection: str, document: DocumentInfo, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Put a document in, wholly or not at all; an older one of the same id is replaced."""
        if not chunks or len(chunks) != len(vectors):
            raise StoreError(
                f"{document.source} has {len(chunks)} chunks and {len(vectors)} vectors; index it again."
            )
        with (
            self._write,
            translated(f"{document.source} cannot be stored in {collection}"),
            self._out_of_sight(collection, document.id),
        ):
            target = self._collection(collection)
            known = self.find(collection, document.id) is not None
            try:
                for start in range(0, len(chunks), BATCH):
                    some = chunks[start : start + BATCH]
                    target.upsert(
                        ids=[chunk.id for chunk in some],
                        embeddings=vectors[start : start + BATCH],
                        documents=[records.storable(chunk.text) for chunk in some],
                        metadatas=[records.chunk_record(chunk) for chunk in some],
                    )
            except BaseException:
                if not known:
                    remove_chunks(target, document.id)
                raise
            self._catalogue.put(collection, document)
            if known:
                remove_chunks(target, document.id, keep={chunk.id for chunk in chunks})

    def documents(self, collection: str) -> list[DocumentInfo]:
        """The documents that are ready, newest first."""
        with translated(f"The documents of {collection} cannot be listed"):
            self._collection(collection)
            return self._catalogue.all(collection)

    def find(self, collection: str, document_id: str) -> DocumentInfo | None:
        """One document, or None if it is not ready here."""
        with translated(f"The catalogue of {collection} cannot be read"):
            return self._catalogue.find(collection, document_id)

    def document(self, collection: str, document_id: str) -> DocumentInfo:
        """One document."""
        found = self.find(collection, document_id)
        if found is None:
            raise StoreError(
                f"There is no document {document_id} in {collection}; list the documents to see them."
            )
        return found

    def chunks(self, collection: str, document_id: str) -> list[Chunk]:
        """The chunks of a ready document, in order."""
        if self.find(collection, document_id) is None:
            return []
        with translated(f"The chunks of {document_id} cannot be read"):
            found = self._collection(collection).get(where={"document_id": document_id})
        return sorted(records.to_chunks(found), key=lambda chunk: chunk.position)

    def delete(self, collection: str, document_id: str) -> int:
        """Remove a document and read back that it is gone; the number of chunks removed."""
        with (
            self._write,
            translated(f"The document {document_id} cannot be deleted from {collection}"),
            self._out_of_sight(collection, document_id),
        ):
            target = self._collection(collection)
            self.document(collection, document_id)
            self._catalogue.remove(collection, [document_id])
            removed = remove_chunks(target, document_id)
            left = target.get(where={"document_id": document_id}, limit=1, include=[])["ids"]
            if left or self.find(collection, document_id) is not None:
                raise StoreError(f"The document {document_id} is still in {collection}; delete it again.")
            return removed

    # Vectors

    def query(self, collection: str, vector: Vectors, k: int) -> list[Passage]:
        """The `k` nearest chunks of ready documents, best first; equal ones in the order of their ids."""
        target = self._collection(collection)
        with translated(f"{collection} cannot be searched"):
            hidden = [document_id for name, document_id in self._hidden.copy() if name == collection]
            where: Any = {"document_id": {"$nin": hidden}} if hidden else None
            return nearest(target, vector, k, where)

    def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Vectors:
        """The vectors of chunks, in the order of `chunk_ids`."""
        target = self._collection(collection)
        by_id: dict[str, Any] = {}
        with translated(f"The vectors of {collection} cannot be read"):
            for some in batches(list(dict.fromkeys(chunk_ids))):
                found = target.get(ids=some, include=["embeddings"])
                by_id.update(zip(found["ids"], found["embeddings"], strict=True))  # type: ignore[arg-type]
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in by_id]
        if missing:
            raise StoreError(f"The chunk {missing[0]} is no longer in {collection}; ask again.")
        return np.asarray([by_id[chunk_id] for chunk_id in chunk_ids], dtype=np.float32)

    def count(self, collection: str) -> int:
        """Chunks in a collection."""
        with translated(f"{collection} cannot be counted"):
            return self._collection(collection).count()

    def reindex(
        self,
        collection: str,
        fingerprint: str,
        embed: Callable[[Sequence[str]], Vectors],
        progress: Callable[[int, int], None],
    ) -> int:
        """Give every chunk a vector of another embedder; the old ones serve until all are in."""
        with self._write:
            old = self._collection(collection)
            with translated(f"{collection} cannot be indexed anew"):
                ids = old.get(include=[])["ids"]
                fresh = self._made(NEXT + collection, {**(old.metadata or {}), _FINGERPRINT: fingerprint})
            try:
                for done, some in enumerate(batches(ids)):
                    progress(done * BATCH, len(ids))
                    self._copy(old, fresh, some, embed)
            except BaseException:
                self._client.delete_collection(NEXT + collection)
                raise
            with translated(f"{collection} cannot be indexed anew"):
                self._client.delete_collection(collection)
                fresh.modify(name=collection)  # `tidy` does this after a kill between the two
            progress(len(ids), len(ids))
            return len(ids)

    # Parts

    def _copy(
        self,
        old: "Collection",
        fresh: "Collection",
        ids: list[str],
        embed: Callable[[Sequence[str]], Vectors],
    ) -> None:
        with translated("The chunks cannot be read"):
            rows = old.get(ids=ids, include=["documents", "metadatas"])
        vectors = embed(rows["documents"] or [])
        with translated("The new vectors cannot be stored"):
            fresh.upsert(
                ids=rows["ids"], embeddings=vectors, documents=rows["documents"], metadatas=rows["metadatas"]
            )

    def _made(self, name: str, metadata: dict[str, str]) -> "Collection":
        return self._client.get_or_create_collection(
            name, metadata=metadata or None, embedding_function=None, configuration=_INDEX
        )

    def _find(self, name: str) -> "Collection | None":
        import chromadb.errors

        try:
            return self._client.get_collection(name, embedding_function=None)
        except chromadb.errors.NotFoundError:
            return None

    def _collection(self, name: str) -> "Collection":
        with translated(f"The collection {name} cannot be opened"):
            found = None if is_ours(name) else self._find(check_name(name))
        if found is None:
            raise StoreError(
                f"There is no collection {name}; add a document to it first, or choose another one."
            )
        return found

    @contextmanager
    def _out_of_sight(self, collection: str, document_id: str) -> Iterator[None]:
        self._hidden.add((collection, document_id))
        try:
            yield
        finally:
            self._hidden.discard((collection, document_id))


def _compare(name: str, found: "Collection", fingerprint: str) -> None:
    stored = (found.metadata or {}).get(_FINGERPRINT)
    if stored != fingerprint:
        raise StoreError(
            f"The collection {name} was indexed with the embedder {stored}, but {fingerprint} is in use; set"
            f" SPECRAG_EMBEDDER back, or run `specrag documents reindex --collection {name}`."
        )


def _nothing() -> None:
    pass
