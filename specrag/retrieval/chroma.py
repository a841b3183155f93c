"""The vector store: Chroma, embedded in this process.

Every collection of the user is a collection of Chroma; one more, the catalogue, has a line for each document.
The line is written after the last chunk and removed before the first, so it is the commit mark: whatever has
no line is not there, and opening sweeps away what a killed process left behind. Chroma never embeds.

The index of Chroma is approximate, and loses rows among many equal vectors, so small collections (where a
miss would be noticed) are compared exactly.
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
from specrag.retrieval.client import open_client, translated
from specrag.retrieval.naming import CATALOGUE, NEXT, check_name, is_ours
from specrag.types import Chunk, DocumentInfo, Passage

if TYPE_CHECKING:
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.models.Collection import Collection

BATCH = 200
_EXACT = 1000
"""Chunks up to which every vector is compared; about 20 ms."""
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
            self._catalogue = self._made(CATALOGUE, {})
            self._finish_switches()
            self._sweep()
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
            documents=len(self._lines(name)),
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
            for some in _batches(documents):
                self._catalogue.delete(ids=[_line_id(name, document_id) for document_id in some])
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
                    self._remove(target, document.id)
                raise
            self._catalogue.upsert(
                ids=[_line_id(collection, document.id)],
                embeddings=np.ones((1, 1), dtype=np.float32),
                metadatas=[records.document_record(collection, document)],
            )
            if known:
                self._remove(target, document.id, keep={chunk.id for chunk in chunks})

    def documents(self, collection: str) -> list[DocumentInfo]:
        """The documents that are ready, newest first."""
        with translated(f"The documents of {collection} cannot be listed"):
            self._collection(collection)
            found = [records.to_document(line) for line in self._lines(collection)]
        return sorted(found, key=lambda document: (document.added_at, document.id), reverse=True)

    def find(self, collection: str, document_id: str) -> DocumentInfo | None:
        """One document, or None if it is not ready here."""
        with translated(f"The catalogue of {collection} cannot be read"):
            found = self._catalogue.get(ids=[_line_id(collection, document_id)], include=["metadatas"])
        return records.to_document(found["metadatas"][0]) if found["metadatas"] else None

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
        return sorted(_chunks(found), key=lambda chunk: chunk.position)

    def delete(self, collection: str, document_id: str) -> int:
        """Remove a document and read back that it is gone; the number of chunks removed."""
        with (
            self._write,
            translated(f"The document {document_id} cannot be deleted from {collection}"),
            self._out_of_sight(collection, document_id),
        ):
            target = self._collection(collection)
            self.document(collection, document_id)
            self._catalogue.delete(ids=[_line_id(collection, document_id)])
            removed = self._remove(target, document_id)
            left = target.get(where={"document_id": document_id}, limit=1, include=[])["ids"]
            if left or self.find(collection, document_id) is not None:
                raise StoreError(f"The document {document_id} is still in {collection}; delete it again.")
            return removed

    # Vectors

    def query(self, collection: str, vector: Vectors, k: int) -> list[Passage]:
        """The `k` nearest chunks of ready documents, best first; equal ones in the order of their ids."""
        target = self._collection(collection)
        with translated(f"{collection} cannot be searched"):
            total = target.count()
            if total == 0 or k < 1:
                return []
            hidden = [document_id for name, document_id in self._hidden.copy() if name == collection]
            where: Any = {"document_id": {"$nin": hidden}} if hidden else None
            if total <= _EXACT:
                return _exact(target, vector, k, where)
            found = target.query(query_embeddings=vector[np.newaxis], n_results=min(k, total), where=where)
            rows = zip(found["ids"][0], _first(found["documents"]), _first(found["metadatas"]), strict=True)
            near = zip(rows, _first(found["distances"]), strict=True)
            return _ranked(
                [records.to_passage(records.to_chunk(*row), 1.0 - distance) for row, distance in near]
            )

    def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Vectors:
        """The vectors of chunks, in the order of `chunk_ids`."""
        target = self._collection(collection)
        by_id: dict[str, Any] = {}
        with translated(f"The vectors of {collection} cannot be read"):
            for some in _batches(list(dict.fromkeys(chunk_ids))):
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
                for done, some in enumerate(_batches(ids)):
                    progress(done * BATCH, len(ids))
                    self._copy(old, fresh, some, embed)
            except BaseException:
                self._client.delete_collection(NEXT + collection)
                raise
            with translated(f"{collection} cannot be indexed anew"):
                self._client.delete_collection(collection)
                fresh.modify(name=collection)  # `_finish_switches` does this after a kill between the two
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

    def _lines(self, collection: str) -> list[Any]:
        return self._catalogue.get(where={"collection": collection}, include=["metadatas"])["metadatas"] or []

    def _remove(self, target: "Collection", document_id: str, keep: set[str] = frozenset()) -> int:  # type: ignore[assignment]
        found = target.get(where={"document_id": document_id}, include=[])["ids"]
        ids = [chunk_id for chunk_id in found if chunk_id not in keep]
        for some in _batches(ids):
            target.delete(ids=some)
        return len(ids)

    @contextmanager
    def _out_of_sight(self, collection: str, document_id: str) -> Iterator[None]:
        self._hidden.add((collection, document_id))
        try:
            yield
        finally:
            self._hidden.discard((collection, document_id))

    def _finish_switches(self) -> None:
        """A `reindex` that was killed is undone before its switch, and finished after it."""
        with translated("An interrupted reindex cannot be tidied up"):
            names = {item.name for item in self._client.list_collections()}
            for name in (name for name in names if name.startswith(NEXT)):
                if name.removeprefix(NEXT) in names:
                    self._client.delete_collection(name)
                else:
                    self._client.get_collection(name, embedding_function=None).modify(
                        name=name.removeprefix(NEXT)
                    )

    def _sweep(self) -> None:
        """Remove chunks without a line in the catalogue; counting first, because they are rare."""
        with translated("The remains of an interrupted run cannot be removed"):
            for name in self.collections():
                lines = {line["document_id"]: line["chunks"] for line in self._lines(name)}
                target = self._collection(name)
                if target.count() != sum(lines.values()):
                    rows = target.get(include=["metadatas"])["metadatas"] or []
                    for document_id in {str(row["document_id"]) for row in rows} - lines.keys():
                        self._remove(target, document_id)


def _exact(target: "Collection", vector: Vectors, k: int, where: Any) -> list[Passage]:
    rows = target.get(where=where, include=["embeddings"])
    if not rows["ids"]:
        return []
    matrix = np.asarray(rows["embeddings"], dtype=np.float32)
    if matrix.shape[1:] != vector.shape:
        raise StoreError(
            f"A vector of {vector.shape} does not fit a store of {matrix.shape[1:]}; check the embedder."
        )
    norms = np.linalg.norm(matrix, axis=1) * (np.linalg.norm(vector) or 1.0)
    similarities = matrix @ vector / np.where(norms == 0, 1.0, norms)
    best = np.argsort(-similarities, kind="stable")[:k]
    score = {rows["ids"][at]: float(similarities[at]) for at in best}
    return _ranked(
        [records.to_passage(chunk, score[chunk.id]) for chunk in _chunks(target.get(ids=list(score)))]
    )


def _ranked(passages: list[Passage]) -> list[Passage]:
    return sorted(passages, key=lambda passage: (-passage.score, passage.id))


def _chunks(found: Any) -> list[Chunk]:
    rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
    return [records.to_chunk(*row) for row in rows]


def _first(column: list[list[Any]] | None) -> list[Any]:
    return column[0] if column else []


def _batches(ids: list[str]) -> Iterator[list[str]]:
    return (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))


def _line_id(collection: str, document_id: str) -> str:
    return f"{collection}/{document_id}"


def _compare(name: str, found: "Collection", fingerprint: str) -> None:
    stored = (found.metadata or {}).get(_FINGERPRINT)
    if stored != fingerprint:
        raise StoreError(
            f"The collection {name} was indexed with the embedder {stored}, but {fingerprint} is in use; set"
            f" SPECRAG_EMBEDDER back, or run `specrag documents reindex --collection {name}`."
        )


def _nothing() -> None:
    pass
