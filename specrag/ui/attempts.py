"""How often somebody may try a password: the first few times at once, then after a wait that grows.

Failures are counted by the name that was tried, whether or not a user has it, and by the address that they
come from. Who has to wait is refused before any password is compared. A name waits a minute at most, so that
nobody can keep its owner out for long; an address waits longer. What is counted is bounded in every way, and
the users' own names can never be pushed out of it by names that nobody has.
"""

import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from math import ceil
from typing import Final

from fastapi import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

Login = Callable[[str, str], bool]
MESSAGE: Final = "After some wrong passwords the next try has to wait, longer each time."
"""What stands on gradio's page, which shows one sentence of its own whatever the server says."""
_FORGOTTEN_S: Final = 3600.0
_OTHERS: Final = 4096
"""Names that no user has, and addresses, of which so many are remembered."""
_NETWORK: Final = 64
"""Bits of an IPv6 address that tell one customer from another; the rest they choose as they like."""
_ADDRESS: Final[ContextVar[str]] = ContextVar("address", default="")


class Caller:
    """Notes the address of every request, which gradio does not hand on to what checks a password."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the app does."""
        client = scope.get("client")
        _ADDRESS.set(_network_of(client[0]) if client else "")
        await self._app(scope, receive, send)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a wait begins and where it ends."""

    free: int
    """Failures after which there is no wait yet."""
    longest_s: float
    room: int = _OTHERS
    """Whatever is counted, so many of it are remembered; those that failed last."""


NAMES: Final = Rule(free=5, longest_s=60.0)
ADDRESSES: Final = Rule(free=20, longest_s=900.0)


class Failures:
    """Counts failures by whatever they are counted by."""

    def __init__(self, rule: Rule, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rule = rule
        self._clock = clock
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def wait_s(self, key: str) -> float:
        """How long the next try still has to wait; 0 or less if it may be made."""
        count, at = self._known.get(key, (0, 0.0))
        if count < self._rule.free:
            return 0.0
        wait_s = min(self._rule.longest_s, 2.0 ** min(count - self._rule.free, 60))
        return at + wait_s - self._clock()

    def add(self, key: str) -> None:
        """One more; those of long ago are forgotten."""
        now = self._clock()
        count, at = self._known.pop(key, (0, now))
        self._known[key] = (1 if now - at > _FORGOTTEN_S else count + 1, now)
        while len(self._known) > self._rule.room:
            self._known.popitem(last=False)

    def forget(self, key: str) -> None:
        """Count from the beginning."""
        self._known.pop(key, None)


class Patience:
    """A login that makes who fails wait. It belongs to one event loop."""

    def __init__(
        self, allowed: Login, users: Iterable[str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`allowed` compares a name and a password; `users` are the names that somebody has."""
        self._allowed = allowed
        self._users = frozenset(users)
        self._own = Failures(NAMES, clock=clock)
        self._others = Failures(NAMES, clock=clock)
        self._addresses = Failures(ADDRESSES, clock=clock)

    def wait_s(self, name: str) -> int:
        """Seconds for which this name, or who is calling, has to wait; 0 if they may try."""
        waits = self._names(name).wait_s(_key(name)), self._addresses.wait_s(_ADDRESS.get())
        return max(0, *map(ceil, waits))

    def __call__(self, name: str, password: str) -> bool:
        """Whether somebody is let in.

        Raises:
            HTTPException: they have to wait; gradio's page shows 400 only, as it does for a wrong password.
        """
        wait_s = self.wait_s(name)
        if wait_s:
            raise HTTPException(400, too_many(wait_s), headers={"retry-after": str(wait_s)})
        return self.tried(name, password)

    def tried(self, name: str, password: str) -> bool:
        """Whether a password is right; a wrong one is counted."""
        names = self._names(name)
        if self._allowed(name, password):
            names.forget(_key(name))
            return True
        names.add(_key(name))
        self._addresses.add(_ADDRESS.get())
        return False

    def _names(self, name: str) -> Failures:
        return self._own if name in self._users else self._others


def too_many(wait_s: int) -> str:
    """What is said to who has to wait."""
    return f"There were too many wrong passwords; try again in {wait_s} s."


def _key(name: str) -> str:
    """A name as it is remembered, however long it is."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()


def _network_of(address: str) -> str:
    try:
        known = ipaddress.ip_address(address)
    except ValueError:  # a socket of this machine has none
        return address[:64]
    if known.version == 4:  # noqa: PLR2004 - the version of the protocol
        return str(known)
    return str(ipaddress.ip_network((int(known), _NETWORK), strict=False))
