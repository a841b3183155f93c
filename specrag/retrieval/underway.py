"""What is under way in a store that several processes may share: who writes what at this moment.

Whoever writes or removes an edition leaves a note first and takes it away last. A note whose writer has been
silent for long is the remains of one that was killed, and whoever sweeps them away takes the note first: a
writer that finds its note gone when it is done starts over. So of a writer and a sweeper at the same time one
always sees the other.

A claim is the note of a `reindex` on a whole collection. There is one at a time; while it *switches*, no
writer begins. All times come from one clock, the server's, so the clocks of the replicas need not agree.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from specrag.errors import StoreError, StoreLocked
from specrag.retrieval.client import translated

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

Kind: TypeAlias = Literal["edition", "copying", "switching"]
_PATIENCE_S = 60.0
"""A writer's longest wait for a switch, which takes a second or two."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Somebody's work on a document, or on a collection if `document_id` is empty."""

    id: str
    collection: str
    document_id: str
    writer: str
    """A word of the writer's own: the edition, or that of a reindex."""
    kind: Kind
    stamp: int
    """When the writer was last heard of, in milliseconds by the shared clock."""


class UnderWay:
    """The notes of all writers of a store."""

    def __init__(self, notes: "Collection", *, clock: Callable[[], int], silence_s: float) -> None:
        """`clock` gives milliseconds; a writer that is silent for `silence_s` counts as dead."""
        self._notes = notes
        self.clock = clock
        self._silence_s = silence_s
        self._left: set[tuple[str, str]] = set()
        """Notes that this process itself has left behind, as (id, writer)."""

    @property
    def untidy(self) -> bool:
        """Whether this process has left something behind."""
        return bool(self._left)

    def clear(self) -> None:
        """Take all notes away: their writers are known to be dead."""
        ids = self._notes.get(include=[])["ids"]
        if ids:
            self._notes.delete(ids=ids)

    def forget(self, note: Note) -> None:
        """Take one note away, and not that of somebody who came after its writer."""
        self._notes.delete(ids=[note.id], where={"writer": note.writer})
        self._left.discard((note.id, note.writer))

    def live(self, collection: str) -> list[Note]:
        """The notes of a collection whose writers are at work."""
        return self._sorted_out(collection)[0]

    def stale(self) -> list[Note]:
        """The notes of all collections whose writers are silent, or were ours and have failed."""
        return self._sorted_out(None)[1]

    @contextmanager
    def writing(self, collection: str, document_id: str, writer: str) -> Iterator["Work"]:
        """Work on a document.

        Raises:
            StoreLocked: the collection is being switched to another embedder, and it takes long.
        """
        note = Note(
            id=f"{collection}/{document_id}/{writer}",
            collection=collection,
            document_id=document_id,
            writer=writer,
            kind="edition",
            stamp=0,
        )
        self._begin(note)
        with self._work(note) as work:
            yield work

    @contextmanager
    def claiming(self, collection: str, writer: str) -> Iterator["Work"]:
        """The only `reindex` of a collection.

        Raises:
            StoreLocked: another one is at it.
        """
        note = Note(
            id=collection, collection=collection, document_id="", writer=writer, kind="copying", stamp=0
        )
        with translated(f"{collection} cannot be claimed"):
            claimed = self._claimed(note)
        if not claimed:
            raise StoreLocked(_busy(collection))
        with self._work(note) as work:
            yield work

    def await_writers(self, claim: "Work", waiting: Callable[[], None], *, limit_s: float) -> None:
        """Wait until all who write to a claimed collection at this moment are done or silent too long.

        Raises:
            StoreLocked: that takes longer than `limit_s`.
        """
        collection, patience = claim.note.collection, time.monotonic() + limit_s
        writing = self._writers(collection)
        while writing & self._writers(collection):
            if time.monotonic() > patience:
                raise StoreLocked(f"{collection} is being written to by another process; try again later.")
            claim.renew()
            waiting()
            time.sleep(_LOOK_S)

    def _writers(self, collection: str) -> set[str]:
        return {note.id for note in self.live(collection) if note.kind == "edition"}

    def _sorted_out(self, collection: str | None) -> tuple[list[Note], list[Note]]:
        """Notes of writers that are at work, and of those that are dead."""
        oldest = self._oldest()
        live: list[Note] = []
        dead: list[Note] = []
        for note in self._read(collection):
            ours_and_over = (note.id, note.writer) in self._left
            (dead if ours_and_over or note.stamp < oldest else live).append(note)
        return live, dead

    @contextmanager
    def _work(self, note: Note) -> Iterator["Work"]:
        work = Work(self._notes, note, self.clock, self._silence_s)
        try:
            yield work
        finally:
            self._left.add((note.id, note.writer))
            if not work.left:
                # What was done is done; a note that stays goes with the next sweep.
                with suppress(StoreError), translated("A note cannot be taken away"):
                    self.forget(note)

    def _begin(self, note: Note) -> None:
        """Leave a note, and only then look for a switch: its owner does it the other way round."""
        patience = time.monotonic() + _PATIENCE_S
        while True:
            self._notes.upsert(**_row(note, note.kind, self.clock()))
            if not any(other.kind == "switching" for other in self.live(note.collection)):
                return
            self.forget(note)
            if time.monotonic() > patience:
                raise StoreLocked(_busy(note.collection))
            time.sleep(_LOOK_S)

    def _claimed(self, note: Note) -> bool:
        """Whether the claim is ours: `add` leaves what is there, so that of two only one gets it."""
        for _ in range(2):
            self._notes.add(**_row(note, note.kind, self.clock()))
            if any(
                other.id == note.id for other in self._read(note.collection) if other.writer == note.writer
            ):
                return True
            live, dead = self._sorted_out(note.collection)
            if any(other.id == note.id for other in live):
                return False
            for other in (other for other in dead if other.id == note.id):
                self.forget(other)
        return False

    def _oldest(self) -> float:
        return self.clock() - self._silence_s * 1000

    def _read(self, collection: str | None) -> list[Note]:
        where = None if collection is None else {"collection": collection}
        found = self._notes.get(where=where, include=["metadatas"])  # type: ignore[arg-type]
        return [
            Note(
                id=note_id,
                collection=str(row["collection"]),
                document_id=str(row["document_id"]),
                writer=str(row["writer"]),
                kind=row["kind"],  # type: ignore[arg-type]
                stamp=int(row["stamp"]),  # type: ignore[arg-type]
            )
            for note_id, row in zip(found["ids"], found["metadatas"] or [], strict=True)
        ]


class Work:
    """A note of our own, for as long as we work."""

    def __init__(self, notes: "Collection", note: Note, clock: Callable[[], int], silence_s: float) -> None:
        self.note = note
        self.left = False
        """Whether the note stays for whoever sweeps."""
        self._notes = notes
        self._clock = clock
        self._kind = note.kind
        self._pause_s = silence_s / 10
        self._renewed = time.monotonic()

    def leave(self) -> None:
        """Leave the note behind: something is half done, and must be swept away."""
        self.left = True

    def renew(self) -> None:
        """Say that we are still at it, if that was some time ago.

        Raises:
            StoreError: the store refuses.
        """
        if time.monotonic() - self._renewed > self._pause_s:
            with translated("A note cannot be renewed"):
                self._update()

    def switch(self) -> None:
        """From now on no writer begins on the collection."""
        self._kind = "switching"
        self._update()

    def stands(self) -> bool:
        """Whether nobody has taken the note away."""
        found = self._notes.get(ids=[self.note.id], include=["metadatas"])["metadatas"] or []
        return any(row["writer"] == self.note.writer for row in found)

    def _update(self) -> None:
        # `update` and not `upsert`: a note that was swept away must not come back.
        self._renewed = time.monotonic()
        if self.stands():  # a claim that another process has taken over is that one's
            self._notes.update(**_row(self.note, self._kind, self._clock()))


def _row(note: Note, kind: Kind, stamp: int) -> dict[str, Any]:
    return {
        "ids": [note.id],
        "embeddings": np.ones((1, 1), dtype=np.float32),
        "metadatas": [
            {
                "collection": note.collection,
                "document_id": note.document_id,
                "writer": note.writer,
                "kind": kind,
                "stamp": stamp,
            }
        ],
    }


def _busy(collection: str) -> str:
    return f"{collection} is being indexed anew by another process; try again when that is done."
