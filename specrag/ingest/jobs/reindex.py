"""Re-indexing in the background: a thread for each collection that asks, which can be watched and stopped.

A collection is re-indexed at most once at a time; who asks again watches the work that goes on. Each
document is found as it was until it is found as it becomes, so a job that is stopped or killed leaves nothing
half-done, and nothing has to survive a restart.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

from specrag.errors import SpecragError, UsageError

State: TypeAlias = Literal["running", "done", "failed", "cancelled"]
_PATIENCE_S: Final = 30.0

_log = logging.getLogger(__name__)


class Reindexer(Protocol):
    """What does the work; the indexer."""

    def reindex(
        self, collection: str, progress: Callable[[str, int, int], None], cancelled: Callable[[], bool]
    ) -> int:
        """Re-index a collection; the number of its chunks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexState:
    """How far one collection is."""

    collection: str
    state: State = "running"
    done: int = 0
    """Chunks."""
    total: int = 0
    message: str | None = None
    """A sentence, once it has ended."""


class ReindexJobs:
    """The re-indexing of all collections. All methods may be called from any thread."""

    def __init__(self, indexer: Reindexer) -> None:
        self._indexer = indexer
        self._changed = threading.Condition()
        self._states: dict[str, ReindexState] = {}
        self._stopped: set[str] = set()
        self._threads: dict[str, threading.Thread] = {}
        self._closed = False

    def start(self, collection: str) -> None:
        """Begin, unless it goes on already.

        Raises:
            UsageError: the program is shutting down.
        """
        with self._changed:
            if self._closed:
                raise UsageError(
                    "The program is shutting down; re-index the collection after the next start."
                )
            known = self._states.get(collection)
            if known is not None and known.state == "running":
                return
            self._stopped.discard(collection)
            self._states[collection] = ReindexState(collection=collection)
            name = f"specrag-reindex-{collection}"
            thread = threading.Thread(target=self._work, args=(collection,), name=name, daemon=True)
            self._threads[collection] = thread
            thread.start()

    def state(self, collection: str) -> ReindexState | None:
        """How far it is, or how it ended; None if nobody asked for it since the start or `dismiss`."""
        with self._changed:
            return self._states.get(collection)

    def cancel(self, collection: str) -> None:
        """Stop after the batch that is being embedded; documents that are done stay done."""
        with self._changed:
            if collection in self._states and self._states[collection].state == "running":
                self._stopped.add(collection)

    def dismiss(self, collection: str) -> None:
        """Forget how it ended."""
        with self._changed:
            if collection in self._states and self._states[collection].state != "running":
                del self._states[collection]

    def wait(self, collection: str, timeout: float | None = None) -> ReindexState | None:
        """The state once it has ended, or as it is after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._runs(collection), timeout)
            return self._states.get(collection)

    def close(self) -> None:
        """Stop everything and wait until it has stopped; a second call does nothing."""
        with self._changed:
            self._closed = True
            self._stopped.update(self._threads)
        for thread in self._threads.values():
            thread.join(_PATIENCE_S)

    def _runs(self, collection: str) -> bool:
        known = self._states.get(collection)
        return known is not None and known.state == "running"

    def _work(self, collection: str) -> None:
        def cancelled() -> bool:
            return collection in self._stopped

        def progress(_stage: str, done: int, total: int) -> None:
            self._update(collection, done=done, total=total)

        try:
            chunks = self._indexer.reindex(collection, progress, cancelled)
        except SpecragError as error:
            self._end(collection, "cancelled" if cancelled() else "failed", str(error))
        except Exception:  # noqa: BLE001 - the end must be told, or the collection would be busy for ever
            if not cancelled():
                _log.exception("re-indexing %s failed unexpectedly", collection)
            sentence = "Re-indexing failed unexpectedly; see the server's log."
            self._end(collection, "cancelled" if cancelled() else "failed", sentence)
        else:
            self._end(collection, "done", f"Re-indexed: {chunks:,} {'chunk' if chunks == 1 else 'chunks'}.")

    def _update(self, collection: str, **changes: Any) -> None:
        with self._changed:
            self._states[collection] = replace(self._states[collection], **changes)
            self._changed.notify_all()

    def _end(self, collection: str, state: State, message: str) -> None:
        if state == "cancelled":
            message = "Re-indexing was cancelled; documents that were done stay done."
        self._update(collection, state=state, message=message)
