"""Giving every row of a collection a vector of another embedder, while others read and write it.

The rows are copied into a collection with a provisional name. Then, for the moment of the switch, no writer
begins; what came in or went away meanwhile is copied or removed too, the old collection is deleted, and the
new one takes its name. In between readers find it under the provisional name.
"""

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specrag.errors import StoreError
from specrag.retrieval.base import Vectors
from specrag.retrieval.catalogue import BATCH, batches
from specrag.retrieval.client import discard, drop, make, put_aside, translated
from specrag.retrieval.labels import of_embedder
from specrag.retrieval.naming import NEXT
from specrag.retrieval.records import to_chunk
from specrag.retrieval.underway import UnderWay, Work
from specrag.retrieval.upkeep import remove_rows
from specrag.types import Chunk

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_LONG_S = 900.0
"""The longest wait for who is writing; longer than a server's `silence_s`, after which a writer is dead."""
_SHORT_S = 30.0
"""The longest wait during a switch; shorter than the patience of writers, who wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexing:
    """One `reindex`, from the claim to the switch."""

    client: "Client"
    underway: UnderWay
    embed: Callable[[Sequence[Chunk]], Vectors]
    labelling: AbstractContextManager[object]
    """Held by whoever sets labels in this process."""
    progress: Callable[[int, int], None]
    """Called as (done, total), in chunks."""

    def run(self, name: str, old: Callable[[], "Collection"], fingerprint: str) -> int:
        """Index a collection anew with the embedder of this fingerprint; the number of its chunks.

        Raises:
            StoreLocked: another process is at it.
            StoreError: the store refuses; the collection is as it was.
        """
        what = f"{name} cannot be indexed anew"
        with self.underway.claiming(name, uuid.uuid4().hex) as claim:
            source = old()
            with translated(what):
                drop(self.client, NEXT + name)  # of a process that was killed
                fresh = make(self.client, NEXT + name, of_embedder(source.metadata, fingerprint))
            try:
                total = self._copied(source, fresh, claim)
                with translated(what), self.labelling:
                    fresh.modify(metadata=of_embedder(old().metadata, fingerprint))
                    self._switch(name, source, fresh)
            except BaseException:
                with suppress(StoreError), translated(what):
                    discard(self.client, fresh)  # and not by name: that may be another process's by now
                raise
        return total

    def _switch(self, name: str, source: "Collection", fresh: "Collection") -> None:
        """Let the new collection take the name; the old one is deleted only when that is done."""
        aside = put_aside(source)
        try:
            fresh.modify(name=name)  # `tidy` does this after a kill between the two
        except BaseException:
            source.modify(name=name)
            raise
        drop(self.client, aside)

    def _copied(self, source: "Collection", fresh: "Collection", claim: Work) -> int:
        """Copy while others write, then what they left behind while nobody does; the number of rows."""
        total = self._catch_up(source, fresh, claim)
        with translated("The end of other writers cannot be seen"):
            # Before the switch, for which others wait: the note of a writer that was killed stays for long.
            self._await_writers(claim, total, limit_s=_LONG_S)
            claim.switch()
            self._await_writers(claim, total, limit_s=_SHORT_S)
        total = self._catch_up(source, fresh, claim)
        with translated("The claim cannot be read"):
            stands = claim.stands()
        if not stands:
            raise StoreError(
                f"{source.name} took so long to be indexed anew that another process took over; try again."
            )
        self.progress(total, total)  # before the switch: whoever stops us here leaves all as it was
        return total

    def _await_writers(self, claim: Work, total: int, *, limit_s: float) -> None:
        self.underway.await_writers(claim, lambda: self.progress(total, total), limit_s=limit_s)

    def _catch_up(self, source: "Collection", fresh: "Collection", claim: Work) -> int:
        """Bring the copy to the rows that there are now; their number."""
        with translated("The chunks cannot be read"):
            ids = source.get(include=[])["ids"]
            done = set(fresh.get(include=[])["ids"])
            remove_rows(fresh, sorted(done.difference(ids)))
        missing = [row_id for row_id in ids if row_id not in done]
        for at, some in enumerate(batches(missing)):
            self.progress(len(ids) - len(missing) + at * BATCH, len(ids))
            claim.renew()
            self._copy(source, fresh, some)
        return len(ids)

    def _copy(self, source: "Collection", fresh: "Collection", ids: list[str]) -> None:
        with translated("The chunks cannot be read"):
            rows = source.get(ids=ids, include=["documents", "metadatas"])
        if not rows["ids"]:
            return
        columns = (rows["ids"], rows["documents"] or [], rows["metadatas"] or [])
        vectors = self.embed([to_chunk(*row) for row in zip(*columns, strict=True)])
        with translated("The new vectors cannot be stored"):
            fresh.upsert(
                ids=rows["ids"], embeddings=vectors, documents=rows["documents"], metadatas=rows["metadatas"]
            )
