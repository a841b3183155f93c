"""Which server is asked: the one with the least to do, and after a failure another one.

A server that fails rests, longer each time it fails again, and is asked before its time only if all others
rest too. A request that a server failed is tried once more, elsewhere if there is an elsewhere.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from specrag.models.server.faults import Fault
from specrag.models.server.probe import Abilities

_FIRST_REST_S, _LONGEST_REST_S = 1.0, 60.0
_DOUBLED = 6
"""How often the first rest is doubled at most; beyond that it would be cut anyway."""
_LONGEST_PAUSE_S = 5.0


class Endpoint:
    """One server, and what is known of it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.running = 0
        """Prompts that it works on for this process."""
        self.leases = 0
        """Requests, those that only tokenise among them."""
        self.abilities: Abilities | None = None
        """None until it was asked, and again after it went away."""
        self.failures = 0
        """In a row."""
        self.fault: Fault | None = None
        """The latest one."""
        self.rests_until = 0.0


class Pool:
    """The servers of one role."""

    def __init__(
        self, urls: Sequence[str], *, pause_s: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`pause_s` is the wait before a second try where there is only the same server to ask."""
        self._pause_s = pause_s
        self.endpoints = tuple(Endpoint(url) for url in urls)
        self._clock = clock
        self._lock = threading.Lock()

    @property
    def running(self) -> int:
        """Prompts that the servers work on for this process."""
        return sum(endpoint.running for endpoint in self.endpoints)

    def at(self, url: str) -> Endpoint:
        """The server with this base URL."""
        return next(endpoint for endpoint in self.endpoints if endpoint.url == url)

    @contextmanager
    def lease(
        self, prompts: int = 1, *, avoid: Endpoint | None = None, only: Endpoint | None = None
    ) -> Iterator[Endpoint]:
        """The server to ask; what happens to the request decides whether it rests afterwards."""
        with self._lock:
            endpoint = only or self._chosen(avoid)
            endpoint.running += prompts
            endpoint.leases += 1
            failures = endpoint.failures
        try:
            yield endpoint
        except Fault as fault:
            # once for all that were under way, and not for what another server did meanwhile
            if fault.url == endpoint.url and endpoint.failures == failures:
                self._failed(endpoint, fault)
            raise
        else:
            if endpoint.failures == failures:  # none since this began, so its success is news
                endpoint.failures, endpoint.rests_until = 0, 0.0
        finally:
            with self._lock:
                endpoint.running -= prompts
                endpoint.leases -= 1

    def worth_another(self, fault: Fault) -> bool:
        """Whether a request that came to this should be tried a second time."""
        return fault.again or (fault.of_server and len(self.endpoints) > 1)

    async def pause(self, failed: Endpoint, fault: Fault) -> None:
        """Before a second try: not at all if another server is up, else for a moment."""
        now = self._clock()
        if any(one is not failed and one.rests_until <= now for one in self.endpoints):
            return
        await asyncio.sleep(min(max(fault.retry_after_s or 0.0, self._pause_s), _LONGEST_PAUSE_S))

    def _chosen(self, avoid: Endpoint | None) -> Endpoint:
        now = self._clock()
        others = [endpoint for endpoint in self.endpoints if endpoint is not avoid] or list(self.endpoints)
        awake = [endpoint for endpoint in others if endpoint.rests_until <= now]
        # after a rest one request tries a server; the others wait for what comes of it elsewhere
        usable = [endpoint for endpoint in awake if not (endpoint.failures and endpoint.leases)]
        if usable:
            return min(usable, key=lambda one: (one.running, one.failures))
        return min(awake or others, key=lambda one: one.rests_until)

    def _failed(self, endpoint: Endpoint, fault: Fault) -> None:
        endpoint.fault = fault
        if fault.gone:
            endpoint.abilities = None
        if not fault.of_server:
            return
        endpoint.failures += 1
        doubled = min(endpoint.failures - 1, _DOUBLED)
        rest = min(_FIRST_REST_S * 2**doubled, _LONGEST_REST_S)
        endpoint.rests_until = self._clock() + min(max(rest, fault.retry_after_s or 0.0), _LONGEST_REST_S)
