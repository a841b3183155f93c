"""The catalogue of documents: one line for each that is ready, in a collection of Chroma like any other.

A line is written after the last chunk of a document and removed before the first, so it is the commit mark.
The vectors of this collection mean nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from specrag.retrieval import records
from specrag.types import DocumentInfo

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

BATCH = 200


class Catalogue:
    """Lines by collection and document."""

    def __init__(self, lines: "Collection") -> None:
        self._lines = lines

    def put(self, collection: str, document: DocumentInfo) -> None:
        """Write or replace the line of a document."""
        self._lines.upsert(
            ids=[_key(collection, document.id)],
            embeddings=np.ones((1, 1), dtype=np.float32),
            metadatas=[records.document_record(collection, document)],
        )

    def remove(self, collection: str, document_ids: Sequence[str]) -> None:
        """Remove lines; those that are not there are no error."""
        for start in range(0, len(document_ids), BATCH):
            self._lines.delete(ids=[_key(collection, one) for one in document_ids[start : start + BATCH]])

    def find(self, collection: str, document_id: str) -> DocumentInfo | None:
        """The document of a line, or None."""
        found = self._lines.get(ids=[_key(collection, document_id)], include=["metadatas"])["metadatas"]
        return records.to_document(found[0]) if found else None

    def all(self, collection: str) -> list[DocumentInfo]:
        """The documents of a collection, newest first."""
        found = self._lines.get(where={"collection": collection}, include=["metadatas"])["metadatas"]
        documents = [records.to_document(line) for line in found or []]
        return sorted(documents, key=lambda document: (document.added_at, document.id), reverse=True)


def _key(collection: str, document_id: str) -> str:
    return f"{collection}/{document_id}"
