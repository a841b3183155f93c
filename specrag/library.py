"""The collections: who sees which, who may change them, and when they end.

A visitor sees the sample, what belongs to them, and what belongs to nobody if they are nobody in particular.
A collection that they may not see is refused in the same words and on the same path as one that does not
exist, so that nothing can be learned by guessing. Every look is a fresh look into the store: several
processes may share it.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from specrag.config import Settings
from specrag.errors import StoreError, UsageError
from specrag.expiry import Expiry, written
from specrag.retrieval.base import CollectionInfo, VectorStore
from specrag.shelves import (
    OWN,
    OWN_TITLE,
    SAMPLE,
    SAMPLE_TITLE,
    Shelf,
    clean_description,
    clean_title,
    default_name,
    documents_of,
    folded,
    missing,
    new_name,
    sees,
    unknown,
    visible,
)
from specrag.visitors import OPERATOR, Visitor

if TYPE_CHECKING:
    from specrag.ingest.index import Indexer
    from specrag.ingest.jobs import IngestJobs
    from specrag.ingest.originals import Originals

__all__ = ["OPERATOR", "OWN", "SAMPLE", "Library", "Shelf", "Visitor", "documents_of"]

_PASSING: Final = "You cannot be known again, so nothing is kept for you; allow cookies for this page."

_log = logging.getLogger(__name__)


class Library:
    """The collections of one store. All methods may be called from any thread."""

    def __init__(
        self,
        *,
        store: VectorStore,
        indexer: "Indexer | None" = None,
        jobs: "IngestJobs | None" = None,
        originals: "Originals | None" = None,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Put the parts together; without `indexer` collections are listed and deleted, but not made."""
        self._store = store
        self._indexer = indexer
        self._jobs = jobs
        self._originals = originals
        self._settings = settings
        self._clock = clock
        self._changing = threading.RLock()
        self._expiry = Expiry(settings, clock)

    # Looking

    def collections(self, who: Visitor) -> list[Shelf]:
        """What somebody sees: the sample, their first collection, and the others by title."""
        seen = self._seen(who)
        own = default_name(who)
        first = [seen.pop(name, missing(name)) for name in (SAMPLE, own)]
        others = sorted(seen.values(), key=lambda info: (folded(info.title), info.name))
        return [self._shelf(info, own) for info in (*first, *others)]

    def default(self, who: Visitor) -> str:
        """Where somebody's files go unless they choose another collection; it may not exist yet."""
        return default_name(who)

    def find(self, who: Visitor, text: str) -> str:
        """The name of a collection that somebody calls by its name or its title.

        Raises:
            StoreError: they see none that is called so, or several.
        """
        shelves = self.collections(who)
        if any(shelf.name == text for shelf in shelves):
            return text
        called = [shelf.name for shelf in shelves if folded(shelf.title) == folded(visible(text))]
        if len(called) > 1:
            raise StoreError(f"Several collections are called “{visible(text)}”: {', '.join(called)}.")
        if not called:
            raise unknown(text)
        return called[0]

    def check_readable(self, who: Visitor, name: str) -> None:
        """Refuse a collection that somebody may not see.

        Raises:
            StoreError: in the same words for one that does not exist.
        """
        if name not in self._seen(who) and name not in (SAMPLE, default_name(who)):
            raise unknown(name)

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
            return self._shelf(self._seen(who)[name], default_name(who))

    def place(self, text: str) -> str:
        """Where files of the operator go: a collection by name or title, or a new one of this name.

        Raises:
            StoreError: it is the sample, or nothing that can name a collection.
        """
        try:
            name = self.find(OPERATOR, text)
        except StoreError:
            if any(folded(shelf.title) == folded(visible(text)) for shelf in self.collections(OPERATOR)):
                raise
            self._make(text, OPERATOR, {})
            return text
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
        with self._changing:
            known = self._writable(who, name)
            return self._remove(name) if known is not None else 0

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
        for info in self._store.infos():
            with self._changing:
                if not self._expiry.over(info):
                    continue
                try:
                    self._remove(info.name)
                except StoreError:
                    _log.warning("the collection %s cannot be deleted now", info.name, exc_info=True)
                else:
                    gone.append(info.name)
        return gone

    # Parts

    def _seen(self, who: Visitor) -> dict[str, CollectionInfo]:
        return {info.name: info for info in self._store.infos() if sees(who, info)}

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
        if self._indexer is None:
            raise UsageError("Collections cannot be made here; start the program with an embedder.")
        now = written(self._clock())
        labels = {"owner": who.owner or "", "created_at": now, "used_at": now, **labels}
        self._store.ensure_collection(name, self._indexer.embedder_fingerprint, description, labels=labels)

    def _remove(self, name: str) -> int:
        if self._jobs is not None:
            self._jobs.drop_collection(name)
        removed = self._store.delete_collection(name)
        if self._originals is not None:
            self._originals.delete_collection(name)
        if name in self._store.collections():
            raise StoreError("The collection is still there; a file was just being added, so try again.")
        self._expiry.forget(name)
        return removed

    def _check_room(self, who: Visitor) -> None:
        if who.passing:
            raise StoreError(_PASSING)
        made = [name for name in self._seen(who) if name not in (SAMPLE, default_name(who))]
        if not who.operator and len(made) >= self._settings.max_collections:
            raise StoreError(f"There are {len(made)} collections already; delete one to make another.")

    def _check_title(self, who: Visitor, title: str, *, besides: str = "") -> None:
        if folded(title) in {folded(item) for item in self._titles(who, besides)}:
            raise StoreError(f"There is a collection called “{title}” already; choose another title.")

    def _titles(self, who: Visitor, besides: str = "") -> list[str]:
        """What the collections of an owner are called, names included."""
        seen = [shelf for shelf in self.collections(who) if shelf.name != besides]
        owned = self._seen(who)
        same = [s for s in seen if s.name not in owned or owned[s.name].owner in ("", who.owner)]
        return [text for shelf in same for text in (shelf.title, shelf.name)]

    def _shelf(self, info: CollectionInfo, own: str) -> Shelf:
        usual = {SAMPLE: SAMPLE_TITLE, own: OWN_TITLE}.get(info.name, info.name)
        indexer = self._indexer
        stale = indexer.stale(info.name) if indexer is not None and info.documents else None
        return Shelf(
            name=info.name,
            title=info.title if info.title != info.name else usual,
            description=info.description,
            documents=info.documents,
            chunks=info.chunks,
            read_only=info.name == SAMPLE,
            default=info.name == own,
            stale=stale if info.name != SAMPLE else None,
            mismatch=indexer is not None and info.fingerprint not in ("", indexer.embedder_fingerprint),
            expires_at=self._expiry.ends_at(info),
        )
