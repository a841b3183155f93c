"""Documents that are in the store already are cut anew: from their rebuilt text, one after the other.

Each becomes a new edition, which takes the place of the old one when all of it is in, so a document that
fails stays as it was, and whoever stops keeps what is done.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from specrag.errors import SpecragError, StoreError
from specrag.ingest.chunks.chunking import Chunker, rebuilt
from specrag.ingest.vectors import Vectorizer
from specrag.retrieval.base import VectorStore
from specrag.types import Chunk, Document, DocumentInfo, Page

_LOOK = 200
"""Chunks between which whoever wants to stop is heard."""

_log = logging.getLogger(__name__)


class Recutting:
    """Brings the documents of one collection to the way of chunking in use."""

    def __init__(
        self,
        store: VectorStore,
        chunker: Chunker,
        vectorizer: Vectorizer,
        collection: str,
        *,
        turn: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`turn` is waited for before each document; files that come in take turns with it."""
        self._store = store
        self._chunker = chunker
        self._vectorizer = vectorizer
        self._collection = collection
        self._turn = turn

    def run(self, documents: Sequence[DocumentInfo], report: Callable[[int, int], None]) -> None:
        """Cut documents anew; `report` is told (done, total) in chunks of old, and may raise to stop.

        Raises:
            StoreError: some have failed, and are as they were.
        """
        failed: list[DocumentInfo] = []
        done, total = 0, sum(document.chunks for document in documents)
        for document in documents:
            try:
                with self._turn():
                    self._cut(document, self._share(report, document, done, total))
            except SpecragError:
                _log.exception("%s could not be cut anew", document.source)
                failed.append(document)
            done += document.chunks
        if failed:
            raise StoreError(
                f"{len(failed)} of {len(documents)} documents could not be brought up to date, the first is"
                f" {failed[0].source}; they can be searched as before; try again, or add the files anew."
            )
        report(total, total)

    def _cut(self, document: DocumentInfo, report: Callable[[int, int], None]) -> None:
        stored = self._store.chunks(self._collection, document.id)
        pages = rebuilt(stored)
        chunks = self._chunks(document, pages, report)
        vectors = self._vectorizer.vectors(chunks, lambda done: report(done, len(chunks)))
        if self._store.find(self._collection, document.id) is None:
            return  # deleted meanwhile
        info = replace(
            document,
            chunks=len(chunks),
            characters=document.characters or sum(len(page.text) for page in pages),
            chunker=self._chunker.fingerprint,
        )
        self._store.add(self._collection, info, chunks, vectors)

    def _chunks(
        self, document: DocumentInfo, pages: tuple[Page, ...], report: Callable[[int, int], None]
    ) -> list[Chunk]:
        text = Document(
            id=document.id,
            title=document.title,
            source=document.source,
            pages=pages,
            published_at=document.published_at,
        )
        chunks: list[Chunk] = []
        for chunk in self._chunker.each(text):
            if chunk.position % _LOOK == 0:
                report(0, 1)
            chunks.append(chunk)
        return chunks

    @staticmethod
    def _share(
        report: Callable[[int, int], None], document: DocumentInfo, before: int, total: int
    ) -> Callable[[int, int], None]:
        """Progress in new chunks as progress in old ones, whose number is known."""

        def shared(done: int, of: int) -> None:
            report(before + (document.chunks * done // of if of else 0), total)

        return shared
