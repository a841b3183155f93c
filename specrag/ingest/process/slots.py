"""One child for many callers: they wait in line, and a child that has fallen is replaced for the next."""

import contextlib
import logging
import threading
from collections.abc import Iterator

from specrag.config import Settings
from specrag.ingest.base import Cancelled, ReadingCancelled
from specrag.ingest.process.watched import ChildStopped, WatchedChild

_log = logging.getLogger(__name__)
_PATIENCE_S = 0.1


class Slot:
    """A place for one child, and the line of those who want it."""

    def __init__(self, module: str, settings: Settings) -> None:
        self._module = module
        self._settings = settings
        self._lock = threading.Lock()
        self._child: WatchedChild | None = None

    @contextlib.contextmanager
    def child(self, cancelled: Cancelled) -> Iterator[WatchedChild]:
        """A child that is alive, for one caller at a time.

        Raises:
            ChildStopped: none can be started.
            ReadingCancelled: `cancelled` turned true before it was this caller's turn.
        """
        while not self._lock.acquire(timeout=_PATIENCE_S):
            if cancelled():
                raise ReadingCancelled
        try:
            if self._child is None or not self._child.alive:
                self._child = self._new()
            yield self._child
        finally:
            self._lock.release()

    def _new(self) -> WatchedChild:
        if self._child is not None:
            self._child.end()  # it is dead already, but its pipes are open
        try:
            return WatchedChild(self._module, self._settings)
        except OSError as error:
            _log.warning("No process can be started: %s", error)
            raise ChildStopped("unstarted") from error

    def close(self) -> None:
        """End the child when its caller has left it."""
        with self._lock:
            if self._child is not None:
                self._child.leave()
                self._child = None
