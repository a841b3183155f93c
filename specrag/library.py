"""The two collections that everybody starts with, and looking into one that may not exist yet."""

from typing import Final

from specrag.retrieval.base import VectorStore
from specrag.types import DocumentInfo

SAMPLE: Final = "sample"
"""The read-only sample that comes with the program."""
OWN: Final = "documents"
"""Where uploads and `specrag ingest` go unless told otherwise."""


def documents_of(store: VectorStore, collection: str) -> list[DocumentInfo]:
    """The documents of a collection; none if it was never written to."""
    return store.documents(collection) if collection in store.collections() else []
