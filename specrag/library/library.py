"""The collections: who sees which, who may change them, and when they end.

A visitor sees the sample, what belongs to them, and what belongs to nobody if they are nobody in particular.
A collection that they may not see is refused in the same words and on the same path as one that does not
exist, so that nothing can be learned by guessing.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from specrag.config import Settings
from specrag.errors import SpecragError, StoreError, UsageError
from specrag.ingest.base import Cancelled, never
from specrag.library.exchange import Manifest
from specrag.library.exchange_store import Arrivals
from specrag.library.exchange_write import write
from specrag.library.expiry import written
from specrag.library.shelves import (
    DESCRIPTION_LENGTH,
    OWN,
    SAMPLE,
    TITLE_LENGTH,
    Shelf,
    clean_description,
    clean_title,
    comes_into_being,
    default_name,
    documents_of,
    folded,
    free_title,
    new_name,
    unknown,
    visible,
)
from specrag.library.shelving import Shelving
from specrag.library.visitors import OPERATOR, Visitor
from specrag.retrieval.base import CollectionInfo, VectorStore

if TYPE_CHECKING:
    from specrag.ingest.index import Indexer, Progress
    from specrag.ingest.jobs.jobs import IngestJobs
    from specrag.ingest.originals import Originals

__all__ = ["OPERATOR", "OWN", "SAMPLE", "Library", "Shelf", "Visitor", "documents_of"]

_PASSING: Final = "You cannot be known again, so nothing is kept for you; allow cookies for this page."

_log = logging.getLogger(__name__)


class Library(Shelving):
    """The collections of one store. All methods may be called from any thread."""

    def __init__(
        self,
        *,
        store: VectorStore,
        indexer: "Indexer | None" = None,
        jobs: "IngestJobs | None" = None,
        originals: "Originals | None" = None,
        settings: Settings,
        dimension: int | None = None,
        deleted: Callable[[str], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Put the parts together.

        Args:
            store: where the collections are.
            indexer: the way into the store; without it they are listed and deleted, but not made.
            jobs: the uploads that are under way.
            originals: where the files are that documents were read from.
            settings: limits, and how long what is a visitor's is kept.
            dimension: of the embedder's vectors; without it those of an imported file are never taken over.
            deleted: is told the name of every collection that is gone.
            clock: the time of day.
        """
        super().__init__(store=store, indexer=indexer, settings=settings, clock=clock)
        self._jobs = jobs
        self._originals = originals
        self._dimension = dimension
        self._deleted = deleted
        self._changing = threading.RLock()

    def check_writable(self, who: Visitor, name: str) -> None:
        """Refuse a collection that somebody may not change; makes their first one if it is that.

        Raises:
            StoreError: as `check_readable`; or it is the sample; or they cannot be known again.
        """
        if self._writable(who, name) is None:
            self._make(name, who, {})

    # Changing

    def create(self, who: Visitor, title: str, description: str = "") -> Shelf:
        """Make an empty collection.

        Raises:
            UsageError: the title or the description is empty or too long.
            StoreError: the title is taken, or they have as many collections as they may have.
        """
        shown, about = clean_title(title), clean_description(description)
        with self._changing:
            self._check_room(who)
            self._check_title(who, shown)
            name = new_name()
            self._make(name, who, {"title": shown}, about)
            return self.shelf(who, name)

    def place(self, text: str) -> str:
        """Where files of the operator go: a collection by name or title, or a new one of this name.

        The title of a visitor's collection means nothing here.

        Raises:
            StoreError: it is the sample, or nothing that can name a collection.
        """
        if not self.called(OPERATOR, text):
            self._make(text, OPERATOR, {})
            return text
        name = self.find(OPERATOR, text)
        self.check_writable(OPERATOR, name)
        return name

    def rename(self, who: Visitor, name: str, title: str) -> None:
        """Give a collection another title.

        Raises:
            UsageError: the title is empty or too long.
            StoreError: the title is taken, or they may not change the collection.
        """
        shown = clean_title(title)
        with self._changing:
            self.check_writable(who, name)
            self._check_title(who, shown, besides=name)
            self._store.update_collection(name, title=shown)

    def describe(self, who: Visitor, name: str, description: str) -> None:
        """Say what a collection is about; an empty text says nothing any more.

        Raises:
            UsageError: the description is too long.
            StoreError: they may not change the collection.
        """
        about = clean_description(description)
        with self._changing:
            self.check_writable(who, name)
            self._store.update_collection(name, description=about)

    def delete(self, who: Visitor, name: str) -> int:
        """Delete a collection with all that belongs to it, and look that it is gone; the number of documents.

        Raises:
            StoreError: they may not change it, or it is still there.
        """
        if self._writable(who, name) is None:
            return 0
        if self._jobs is not None:
            self._jobs.drop_collection(name)  # may take a moment, in which others go on
        with self._changing:
            removed = self._remove(name) if self._writable(who, name) is not None else 0
        self._drop_late(name)
        return removed

    def delete_document(self, who: Visitor, name: str, document_id: str) -> int:
        """Delete a document and the file that it came from; the number of chunks.

        Raises:
            StoreError: they may not change the collection, or the document is not in it, or still there.
        """
        if self._writable(who, name) is None:
            raise StoreError(f"There is no document {document_id[:40]} in this collection.")
        removed = self._store.delete(name, document_id)
        if self._originals is not None:
            self._originals.delete(name, document_id)
        return removed

    # Files

    def export(
        self,
        who: Visitor,
        name: str,
        target: Path,
        *,
        originals: bool = True,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> Path:
        """Write a collection to one file; returns where, if `target` is a folder.

        Raises:
            StoreError: they may not see it, it is empty, or it changed meanwhile.
            UsageError: the file cannot be written.
        """
        shelf = self.shelf(who, name)
        if not shelf.documents:
            raise StoreError(f"The collection “{shelf.title}” has no documents that could be exported.")
        kept = self._originals if originals else None
        return write(self._store, name, target, title=shelf.title, originals=kept, progress=progress)

    def import_(
        self,
        who: Visitor,
        path: Path,
        *,
        title: str | None = None,
        progress: "Progress" = lambda _stage, _done, _total: None,
        cancelled: Cancelled = never,
    ) -> Shelf:
        """Make a collection of a file that `export` has written, of this program or of another one.

        Without `title` it is called as the file says, with a number behind it if they have one of this title.

        Raises:
            DocumentError: the file is not what it must be, or larger than allowed; nothing was kept.
            UsageError: the title is empty or too long.
            StoreError: the title is taken, or they have as many collections as they may have.
        """
        with self._changing:
            self._check_room(who)
            if title is not None:
                self._check_title(who, clean_title(title))
        arrivals = Arrivals(
            store=self._store,
            indexer=self._needed(),
            dimension=self._dimension,
            originals=self._originals,
            settings=self._settings,
            clock=self._clock,
        )
        name, manifest = arrivals.take(path, progress, cancelled)
        try:
            return self._arrived(who, name, manifest, title)
        except BaseException:
            arrivals.drop(name)
            raise

    # Time

    def touch(self, who: Visitor, name: str) -> None:
        """Note that a collection is in use, at most once an hour; one that they may not see is left."""
        with self._changing:
            if name == SAMPLE or not self._expiry.worth_a_note(name):
                return
            known = self._seen(who).get(name)
            if known is None:
                return
            now = self._clock()
            owner = known.owner or who.owner or ""
            self._store.update_collection(name, used_at=written(now), owner=owner)
            self._expiry.noted(name, now)

    def expire(self) -> list[str]:
        """Delete what visitors have not used for as long as they may, and what killed imports have left.

        Returns the names. One that cannot be deleted now is left for the next time.
        """
        gone = []
        for info in self._store.infos(counted=()):
            with self._changing:
                if not self._expiry.over(info):
                    continue
                try:
                    if self._jobs is not None:
                        self._jobs.drop_collection(info.name)
                    self._remove(info.name)
                    self._drop_late(info.name)
                except (SpecragError, OSError):
                    _log.warning("the collection %s cannot be deleted now", info.name, exc_info=True)
                else:
                    gone.append(info.name)
        return gone

    # Parts

    def _writable(self, who: Visitor, name: str) -> CollectionInfo | None:
        """A collection that somebody may change; None if it is their first one and does not exist yet."""
        known = self._seen(who).get(name)
        if name == SAMPLE:
            raise StoreError("The sample collection is read-only; choose another one.")
        if known is None and name != default_name(who):
            raise unknown(name)
        if who.passing:
            raise StoreError(_PASSING)
        return known

    def _make(self, name: str, who: Visitor, labels: dict[str, str], description: str = "") -> None:
        indexer, now = self._needed(), written(self._clock())
        labels = {"owner": who.owner or "", "created_at": now, "used_at": now, **labels}
        self._store.ensure_collection(name, indexer.embedder_fingerprint, description, labels=labels)

    def _arrived(self, who: Visitor, name: str, manifest: Manifest, title: str | None) -> Shelf:
        """Give a collection that has come in to whoever brought it."""
        with self._changing:
            self._check_room(who)
            shown = clean_title(title) if title is not None else self._free_title(who, manifest.title)
            self._check_title(who, shown)
            self._store.update_collection(
                name,
                title=shown,
                description=visible(manifest.description)[:DESCRIPTION_LENGTH],
                owner=who.owner or "",
                used_at=written(self._clock()),
            )
            return self.shelf(who, name)

    def _free_title(self, who: Visitor, title: str) -> str:
        return free_title(visible(title)[:TITLE_LENGTH] or "Collection", self._titles(who))

    def _drop_late(self, name: str) -> None:
        """Stop files that were still being copied when the others of a collection were stopped."""
        if self._jobs is not None and not comes_into_being(name):
            self._jobs.drop_collection(name)
            if name in self._store.collections():
                self._remove(name)

    def _remove(self, name: str) -> int:
        removed = self._store.delete_collection(name)
        if self._originals is not None:
            self._originals.delete_collection(name)
        if name in self._store.collections():
            raise StoreError("The collection is still there; a file was just being added, so try again.")
        self._expiry.forget(name)
        self._deleted(name)
        return removed

    def _check_room(self, who: Visitor) -> None:
        if who.passing:
            raise StoreError(_PASSING)
        made = [name for name in self._seen(who) if name not in (SAMPLE, default_name(who))]
        if not who.operator and len(made) >= self._settings.max_collections:
            raise StoreError(f"There are {len(made)} collections already; delete one to make another.")

    def _check_title(self, who: Visitor, title: str, *, besides: str = "") -> None:
        if folded(title) in self._titles(who, besides):
            raise StoreError(f"There is a collection called “{title}” already; choose another title.")

    def _needed(self) -> "Indexer":
        if self._indexer is None:
            raise UsageError("Collections cannot be made here; start the program with an embedder.")
        return self._indexer
