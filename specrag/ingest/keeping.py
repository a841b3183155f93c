"""A document and the file that it came from, together in and together out."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specrag.errors import StoreError
from specrag.ingest.originals import Originals
from specrag.retrieval.base import VectorStore
from specrag.types import DocumentInfo


class Keeping:
    """Keeps files for documents that come in, and removes those of documents that go."""

    def __init__(self, store: VectorStore, originals: Originals | None, *, keep: bool = True) -> None:
        """Without `keep` no file comes in, and those of earlier times still go with their documents."""
        self._store = store
        self._originals = originals
        self._keep = keep

    @contextmanager
    def kept(
        self, collection: str, document_id: str, path: Path, name: str, *, known: bool
    ) -> Iterator[None]:
        """The file among the originals, unless what follows fails; that of a `known` document stays."""
        if self._originals is None or not self._keep:
            yield
            return
        self._originals.keep(collection, document_id, path, name)
        try:
            yield
        except BaseException:
            if not known and not self._is_there(collection, document_id):
                self._originals.delete(collection, document_id)
            raise

    def replace_older(self, collection: str, new: DocumentInfo) -> tuple[str, ...]:
        """Remove the other documents of this name; one that is gone already, or stays, is no failure."""
        removed = []
        for document in self._store.documents(collection):
            if document.source == new.source and document.id != new.id:
                with suppress(StoreError):
                    self._store.delete(collection, document.id)
                    removed.append(document.id)
                if self._originals is not None and not self._is_there(collection, document.id):
                    self._originals.delete(collection, document.id)
        return tuple(removed)

    def _is_there(self, collection: str, document_id: str) -> bool:
        """Whether the store has the document, perhaps from another process that stored it meanwhile."""
        with suppress(StoreError):
            return self._store.find(collection, document_id) is not None
        return False
