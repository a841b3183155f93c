"""The collections as somebody sees them; nothing here changes one.

Every look is a fresh look into the store, because several processes may share it.
"""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import TYPE_CHECKING

from specrag.config import Settings
from specrag.errors import StoreError
from specrag.library.expiry import Expiry
from specrag.library.shelves import (
    OWN_TITLE,
    SAMPLE,
    SAMPLE_TITLE,
    Shelf,
    belongs,
    default_name,
    folded,
    missing,
    sees,
    unknown,
    visible,
)
from specrag.library.visitors import Visitor
from specrag.retrieval.base import CollectionInfo, VectorStore

if TYPE_CHECKING:
    from specrag.ingest.index import Indexer


class Shelving:
    """What `Library` can do without changing anything."""

    def __init__(
        self,
        *,
        store: VectorStore,
        indexer: "Indexer | None",
        settings: Settings,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._indexer = indexer
        self._settings = settings
        self._clock = clock
        self._expiry = Expiry(settings, clock)

    def collections(self, who: Visitor) -> list[Shelf]:
        """What somebody sees: the sample, their first collection, and the others by title."""
        seen = self._seen(who, counted=None if who.operator else list(self._seen(who)))
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
        names = self.called(who, text)
        if len(names) > 1:
            raise StoreError(f"Several collections are called “{visible(text)}”: {', '.join(names)}.")
        if not names:
            raise unknown(text)
        return names[0]

    def shelf(self, who: Visitor, name: str) -> Shelf:
        """One collection, by its name.

        Raises:
            StoreError: as `check_readable`.
        """
        own = default_name(who)
        known = self._seen(who).get(name)
        if known is None and name not in (SAMPLE, own):
            raise unknown(name)
        if (
            known is not None
        ):  # only now, so that nobody learns from the time it takes that it is somebody else's
            known = self._seen(who, counted=[name]).get(name, known)
        return self._shelf(known or missing(name), own)

    def check_readable(self, who: Visitor, name: str) -> None:
        """Refuse a collection that somebody may not see.

        Raises:
            StoreError: in the same words for one that does not exist.
        """
        if name not in self._seen(who) and name not in (SAMPLE, default_name(who)):
            raise unknown(name)

    def called(self, who: Visitor, text: str) -> list[str]:
        """The names of what is called so: the one of this name, or all of this title among their own."""
        seen, own = self._seen(who), default_name(who)
        infos = {name: seen.get(name, missing(name)) for name in (SAMPLE, own)} | seen
        if text in infos:
            return [text]
        ours = [info for info in infos.values() if belongs(who, info)]
        return [info.name for info in ours if folded(_title(info, own)) == folded(visible(text))]

    def _titles(self, who: Visitor, besides: str = "") -> set[str]:
        """What the collections of somebody are called, names included, as `folded`."""
        own = default_name(who)
        infos = [info for info in self._seen(who).values() if info.owner in ("", who.owner)]
        texts = [text for info in infos if info.name != besides for text in (_title(info, own), info.name)]
        return {folded(text) for text in (*texts, SAMPLE, SAMPLE_TITLE, *({own, OWN_TITLE} - {besides}))}

    def _seen(self, who: Visitor, counted: Collection[str] | None = ()) -> dict[str, CollectionInfo]:
        """What somebody sees, by name; sizes only of `counted`, because every event of a page looks here."""
        return {info.name: info for info in self._store.infos(counted=counted) if sees(who, info)}

    def _shelf(self, info: CollectionInfo, own: str) -> Shelf:
        indexer = self._indexer
        known = indexer is not None and info.name != SAMPLE
        return Shelf(
            name=info.name,
            title=_title(info, own),
            description=info.description,
            documents=info.documents,
            chunks=info.chunks,
            read_only=info.name == SAMPLE,
            default=info.name == own,
            stale=indexer.stale(info.name) if known and indexer and info.documents else None,
            mismatch=indexer is not None and info.fingerprint not in ("", indexer.embedder_fingerprint),
            expires_at=self._expiry.ends_at(info),
        )


def _title(info: CollectionInfo, own: str) -> str:
    if info.title != info.name:
        return info.title
    return {SAMPLE: SAMPLE_TITLE, own: OWN_TITLE}.get(info.name, info.name)
