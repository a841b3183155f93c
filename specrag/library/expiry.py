"""When collections end, and the thread that ends them.

What belongs to a visitor ends when it was not used for so many days; what belongs to a user, or to nobody,
never does. A collection on its way in belongs to nobody yet, and is swept when its import has died.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from specrag.config import Settings
from specrag.errors import SpecragError
from specrag.library.visitors import VISITOR
from specrag.retrieval.base import CollectionInfo

ARRIVING: Final = "import:"
"""Before the owner of a collection that is being imported: nobody's, until all of it is there."""
_TOUCH_EVERY: Final = timedelta(hours=1)
_DEAD_AFTER: Final = timedelta(hours=24)
"""An import that is not done after so long was killed."""
_HOUR_S: Final = 3600.0
_PATIENCE_S: Final = 30.0

_log = logging.getLogger(__name__)


def written(moment: datetime) -> str:
    """A moment as the store keeps it."""
    return moment.isoformat(timespec="seconds")


def moment_of(text: str) -> datetime | None:
    """A moment again; None if the text is none. Without a zone it is taken for UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class Expiry:
    """When each collection was used last. Not safe under threads: the library's lock is."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self._days = timedelta(days=settings.visitor_days)
        self._clock = clock
        self._used: dict[str, datetime] = {}
        """When this process has last written that a collection is used."""

    def worth_a_note(self, name: str) -> bool:
        """Whether the last note of this collection's use is old enough for another one."""
        last = self._used.get(name)
        return last is None or self._clock() - last >= _TOUCH_EVERY

    def noted(self, name: str, moment: datetime) -> None:
        """The store has got a note."""
        self._used[name] = moment

    def forget(self, name: str) -> None:
        """The collection is gone."""
        self._used.pop(name, None)

    def ends_at(self, info: CollectionInfo) -> str | None:
        """When a collection is deleted unless it is used before; None never."""
        return written(self._last_use(info) + self._days) if info.owner.startswith(VISITOR) else None

    def over(self, info: CollectionInfo) -> bool:
        """Whether a collection is to be deleted now."""
        idle = self._clock() - self._last_use(info)
        if info.owner.startswith(ARRIVING):
            return idle > _DEAD_AFTER
        return info.owner.startswith(VISITOR) and idle > self._days

    def _last_use(self, info: CollectionInfo) -> datetime:
        known = moment_of(info.used_at) or moment_of(info.created_at) or self._clock()
        return max(known, self._used.get(info.name, known))


class Expires(Protocol):
    """What ends by itself."""

    def expire(self) -> list[str]:
        """Delete what is over; the names."""
        ...


class Housekeeper:
    """Ends what is over, at once and every hour, in a thread of its own until `close`.

    `sweep` deletes the files that others have left lying about.
    """

    def __init__(
        self, library: Expires, *, sweep: Callable[[], None] = lambda: None, every_s: float = _HOUR_S
    ) -> None:
        self._library = library
        self._sweep = sweep
        self._every_s = every_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="specrag-housekeeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; a second call does nothing."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_S)

    def _work(self) -> None:
        while not self._closed.is_set():
            for task in (self._expire, self._sweep):
                try:
                    task()
                except (SpecragError, OSError):  # the store's server or the disk may be away for a while
                    _log.warning("what is over could not be deleted", exc_info=True)
            self._closed.wait(self._every_s)

    def _expire(self) -> None:
        if gone := self._library.expire():
            _log.info("%d collections were not used any more and are deleted", len(gone))
