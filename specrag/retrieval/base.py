"""The seams of retrieval: what turns text into vectors, and what keeps vectors with their chunks.

A collection belongs to one embedder, named by its fingerprint; vectors of different embedders are never
compared. Every store keeps these rules, and one contract of tests runs over each:

- a document is listed only when all its chunks are in, and nothing of it is found before that;
- deleting reports what was really there, and reads back that it is gone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from specrag.types import Chunk, DocumentInfo, Passage

Vectors: TypeAlias = NDArray[np.float32]
"""Of length one each: (n, d) for several texts, (d,) for one."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionInfo:
    """What is known of a collection."""

    name: str
    description: str
    fingerprint: str
    """The embedder that its vectors come from."""
    documents: int
    chunks: int = 0
    title: str = ""
    """How people call it; its name, if they have not said."""
    owner: str = ""
    """Whose it is, as whoever made it says; empty for everybody's."""
    created_at: str = ""
    """ISO time; empty if unknown, as is the next one."""
    used_at: str = ""


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors of length one."""

    @property
    def fingerprint(self) -> str:
        """Names model, dimension, normalisation and weights; equal only for comparable vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        ...

    @property
    def window(self) -> int:
        """Tokens that are read of a text, special tokens included; the rest is not seen."""
        ...

    @property
    def tokenizer_file(self) -> Path:
        """A `tokenizer.json`, for whoever must count as the embedder does."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text, in order.

        Raises:
            ModelError: the model cannot embed.
        """
        ...


class VectorStore(Protocol):
    """Keeps documents as chunks with vectors, in named collections."""

    def collections(self) -> tuple[str, ...]:
        """The names of all collections, in order."""
        ...

    def infos(self, *, counted: Collection[str] | None = None) -> list[CollectionInfo]:
        """All collections in order of their names, in one pass over the store.

        Documents and chunks are counted in all, or in those of `counted`; the others have 0, and cost
        nothing, however many documents are in them.
        """
        ...

    def collection(self, name: str) -> CollectionInfo:
        """One collection.

        Raises:
            StoreError: there is none of this name.
        """
        ...

    def ensure_collection(
        self, name: str, fingerprint: str, description: str = "", labels: Mapping[str, str] = _NONE
    ) -> None:
        """Make a collection, or check that it is of this embedder; labels given replace the old ones.

        Raises:
            StoreError: the name is not allowed, or the collection belongs to another embedder.
        """
        ...

    def update_collection(self, name: str, **labels: str) -> None:
        """Set title, description, owner, created_at or used_at; "" removes one, the others stay.

        Raises:
            StoreError: there is no such collection or label.
        """
        ...

    def check(self, name: str, fingerprint: str) -> None:
        """Refuse a collection that is missing or belongs to another embedder.

        Raises:
            StoreError: with the remedy.
        """
        ...

    def delete_collection(self, name: str) -> int:
        """Remove a collection with its documents; the number of documents removed."""
        ...

    def add(self, collection: str, document: DocumentInfo, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Put a document in, wholly or not at all; an older one of the same id is replaced."""
        ...

    def documents(self, collection: str) -> list[DocumentInfo]:
        """The documents that are ready, newest first."""
        ...

    def find(self, collection: str, document_id: str) -> DocumentInfo | None:
        """One document, or None if it is not ready here (or the collection does not exist)."""
        ...

    def document(self, collection: str, document_id: str) -> DocumentInfo:
        """One document.

        Raises:
            StoreError: it is not ready here.
        """
        ...

    def chunks(self, collection: str, document_id: str) -> list[Chunk]:
        """The chunks of a document in order; empty if it is not there."""
        ...

    def delete(self, collection: str, document_id: str) -> int:
        """Remove a document and read back that it is gone; the number of chunks removed.

        Raises:
            StoreError: it was not there, or it is still there.
        """
        ...

    def query(
        self, collection: str, vector: Vectors, k: int, documents: Collection[str] | None = None
    ) -> list[Passage]:
        """The `k` nearest chunks of ready documents, or of those of `documents`, best first."""
        ...

    def lookup(self, collection: str, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """Chunks of ready documents by their ids; those that are not there are left out."""
        ...

    def editions(self, collection: str) -> dict[str, str]:
        """A word for each ready document that changes whenever it is written anew.

        So what was made of a collection holds as long as these are the same. Cheap.
        """
        ...

    def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Vectors:
        """The vectors of chunks, in the order of `chunk_ids`."""
        ...

    def count(self, collection: str) -> int:
        """Chunks in a collection."""
        ...

    def reindex(
        self,
        collection: str,
        fingerprint: str,
        embed: Callable[[Sequence[Chunk]], Vectors],
        progress: Callable[[int, int], None],
    ) -> int:
        """Give every chunk a vector of another embedder; readers see the old ones until all are in.

        Returns the number of chunks. An exception of `embed` or `progress` leaves the collection as it was.
        """
        ...

    def close(self) -> None:
        """Let go of files and locks."""
        ...
