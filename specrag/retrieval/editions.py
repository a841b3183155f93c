"""Writing and removing editions of documents, so that at every moment a document is whole or not there.

A note, the rows, the line, and the note away: whoever dies in between leaves rows that nobody finds and a
note that says so. Several processes may write the same document at once; each writes an edition of its own,
and the newest line counts.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from specrag.errors import StoreError
from specrag.retrieval import records
from specrag.retrieval.base import Vectors
from specrag.retrieval.catalogue import BATCH, Catalogue
from specrag.retrieval.client import translated
from specrag.retrieval.underway import UnderWay, Work
from specrag.retrieval.upkeep import remove_edition, rows_of
from specrag.types import Chunk, DocumentInfo

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

_TRIES = 2


class Editions:
    """The only writer of rows and lines."""

    def __init__(
        self, catalogue: Catalogue, underway: UnderWay, target: Callable[[str], "Collection"]
    ) -> None:
        """`target` opens a collection for writing, or raises a StoreError."""
        self._catalogue = catalogue
        self._underway = underway
        self._target = target

    def add(self, collection: str, document: DocumentInfo, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a new edition, wholly or not at all, in the place of older ones.

        Raises:
            StoreError: the collection is missing or not of this embedder, or this process was so slow that
                others took it for dead, twice.
        """
        for _ in range(_TRIES):
            if self._added(collection, document, chunks, vectors):
                return
        raise StoreError(
            f"{document.source} took so long to store that another process removed it; add it again."
        )

    def remove(self, collection: str, document_id: str) -> int | None:
        """Remove a document and read back that it is gone; the number of rows, None if it was not there."""
        with self._underway.writing(collection, document_id, uuid.uuid4().hex) as work:
            target = self._target(collection)
            lines = self._catalogue.lines(collection, [document_id])
            if not lines:
                return None
            work.leave()  # until all of it is gone
            removed = 0
            for line in reversed(lines):  # the newest last: without it the one before would count
                self._catalogue.remove(collection, document_id, line.edition)
                removed += remove_edition(target, document_id, line.edition)
            gone = {(document_id, line.edition) for line in lines}
            left = {(document_id, line.edition) for line in self._catalogue.lines(collection, [document_id])}
            if gone & (left | rows_of(target, {"document_id": document_id}).keys()):
                raise StoreError(f"The document {document_id} is still in {collection}; delete it again.")
            work.left = False
            return removed

    def _added(
        self, collection: str, document: DocumentInfo, chunks: Sequence[Chunk], vectors: Vectors
    ) -> bool:
        """Whether it is in; if not, somebody took us for dead and may have removed rows."""
        edition = uuid.uuid4().hex
        with self._underway.writing(collection, document.id, edition) as work:
            target = self._target(collection)
            try:
                self._write(target, work, chunks, vectors)
                self._catalogue.put(collection, document, edition, self._stamp(collection, document.id))
                stands = work.stands()  # after the line: who removes rows looks for it after taking the note
                if stands:
                    self._check_whole(target, document, work, len(chunks))
            except BaseException:
                self._undo(target, work)
                raise
            if not stands:
                self._undo(target, work)
                return False
            self._replace_older(target, work)
            return True

    def _stamp(self, collection: str, document_id: str) -> int:
        """Now, or later than every line of the document if the clock was set back meanwhile."""
        lines = self._catalogue.lines(collection, [document_id])
        return max([self._underway.clock(), *(line.stamp + 1 for line in lines)])

    def _check_whole(self, target: "Collection", document: DocumentInfo, work: Work, written: int) -> None:
        """Read back that every row is there before anybody is told so."""
        note = work.note
        found = len(target.get(where={"edition": note.writer}, include=[])["ids"])
        if found == written:
            return
        line = self._catalogue.line(note.collection, document.id)
        if line is None or line.edition == note.writer:
            raise StoreError(
                f"Only {found} of {written} chunks of {document.source} have arrived; add it again."
            )
        # Otherwise another process has put in a newer edition, and removes ours.

    def _write(self, target: "Collection", work: Work, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        edition = work.note.writer
        for start in range(0, len(chunks), BATCH):
            some = chunks[start : start + BATCH]
            work.renew()
            target.upsert(
                ids=[records.row_id(chunk, edition) for chunk in some],
                embeddings=vectors[start : start + BATCH],
                documents=[records.storable(chunk.text) for chunk in some],
                metadatas=[records.chunk_record(chunk, edition) for chunk in some],
            )

    def _undo(self, target: "Collection", work: Work) -> None:
        """Remove our edition; where the store does not let us, the note stays for whoever sweeps."""
        note = work.note
        try:
            with translated("The rest of the document cannot be removed"):
                self._catalogue.remove(note.collection, note.document_id, note.writer)
                remove_edition(target, note.document_id, note.writer)
        except StoreError:
            work.leave()

    def _replace_older(self, target: "Collection", work: Work) -> None:
        """Remove every edition but the newest, which is not ours if another process was later.

        The document is stored whatever becomes of this: an older edition is not found any more.
        """
        note = work.note
        try:
            with translated("The older edition cannot be removed"):
                for line in self._catalogue.lines(note.collection, [note.document_id])[1:]:
                    self._catalogue.remove(note.collection, note.document_id, line.edition)
                    remove_edition(target, note.document_id, line.edition)
        except StoreError:
            work.leave()
