"""A line in front of the models: so many runs at once, and the others in order of arrival.

The line belongs to the process and not to an event loop: the page's loop and the one behind the Python API
stand in the same line. Nobody polls; whoever leaves wakes those who move up.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self


class Turnstile:
    """Lets `places` runs through at once."""

    def __init__(self, places: int) -> None:
        """Build an empty turnstile.

        Raises:
            ValueError: with no place at all, nobody would ever get through.
        """
        if places < 1:
            raise ValueError("a turnstile needs at least one place")
        self._places = places
        self._lock = threading.Lock()
        self._active: set[Place] = set()
        self._line: deque[Place] = deque()

    @property
    def active(self) -> int:
        """Runs that are through."""
        return len(self._active)

    @property
    def waiting(self) -> int:
        """Runs in line."""
        return len(self._line)

    def place(self) -> "Place":
        """A place in line, from `async with` until its end, however it ends."""
        return Place(self)

    def join(self, place: "Place") -> None:
        """Put a place at the end of the line."""
        with self._lock:
            self._line.append(place)
            self._advance()

    def leave(self, place: "Place") -> None:
        """Take a place out, from the line or from behind it; the others move up."""
        with self._lock:
            self._active.discard(place)
            if place in self._line:
                self._line.remove(place)
            self._advance()

    def ahead_of(self, place: "Place") -> int:
        """Runs that have to end before this one begins; 0 if it is through."""
        with self._lock:
            return 0 if place in self._active else self._line.index(place) + 1

    def _advance(self) -> None:
        """Admit while there is room and wake all others; a place whose loop is closed is given up."""
        while self._line and len(self._active) < self._places:
            first = self._line.popleft()
            if first.wake():
                self._active.add(first)
        self._line = deque(place for place in self._line if place.wake())


class Place:
    """One run's place; see `Turnstile.place`."""

    def __init__(self, turnstile: Turnstile) -> None:
        self._turnstile = turnstile
        self._moved = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._turnstile.join(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._turnstile.leave(self)

    async def wait(self) -> AsyncGenerator[int]:
        """How many runs are ahead, whenever that changes; ends when the run may begin."""
        told = 0
        while ahead := self._turnstile.ahead_of(self):
            self._moved.clear()  # before the yield, so that a move while the reader is busy is not lost
            if ahead != told:
                told = ahead
                yield ahead
            await self._moved.wait()

    def wake(self) -> bool:
        """Tell the waiting run, from any thread, to look again. False if its loop is gone."""
        if self._loop is None:
            return False
        try:
            self._loop.call_soon_threadsafe(self._moved.set)
        except RuntimeError:  # the loop was closed
            return False
        return True
