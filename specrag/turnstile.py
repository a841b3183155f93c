"""A line in front of the models: so many runs at once, and the others in order of arrival.

The line belongs to the process and not to an event loop: the page's loop and the one behind the Python API
stand in the same line. Whoever leaves wakes those who move up. A run that can never leave, because its loop
was closed or dropped with the run inside, tells nobody; so whoever joins, and now and then whoever waits,
looks for such places and gives them back.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self
from weakref import WeakSet

LOOK_EVERY_S = 5.0
"""How long a waiting run trusts that those ahead of it can still leave."""


class Turnstile:
    """Lets `places` runs through at once."""

    def __init__(self, places: int, *, look_every_s: float = LOOK_EVERY_S) -> None:
        """Build an empty turnstile.

        Raises:
            ValueError: with no place at all, nobody would ever get through.
        """
        if places < 1:
            raise ValueError("a turnstile needs at least one place")
        self._places = places
        self.look_every_s = look_every_s
        self._lock = threading.Lock()
        self._active: WeakSet[Place] = WeakSet()  # weak, so that a run which nobody can continue holds none
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

    def look(self) -> None:
        """Give back the places of runs that can never leave; the others move up."""
        with self._lock:
            self._advance()

    def ahead_of(self, place: "Place") -> int:
        """Runs that have to end before this one begins; 0 if it is through."""
        with self._lock:
            return 0 if place in self._active else self._line.index(place) + 1

    def _advance(self) -> None:
        """Admit while there is room and wake all others; a place whose loop is closed is given up."""
        for place in [place for place in self._active if not place.alive]:
            self._active.discard(place)
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
            try:
                async with asyncio.timeout(self._turnstile.look_every_s):
                    await self._moved.wait()
            except TimeoutError:
                self._turnstile.look()

    @property
    def alive(self) -> bool:
        """Whether the run can still leave by itself."""
        return self._loop is not None and not self._loop.is_closed()

    def wake(self) -> bool:
        """Tell the waiting run, from any thread, to look again. False if its loop is gone."""
        if self._loop is None:
            return False
        try:
            self._loop.call_soon_threadsafe(self._moved.set)
        except RuntimeError:  # the loop was closed
            return False
        return True
