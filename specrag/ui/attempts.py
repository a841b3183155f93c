"""How often somebody may try a password: the first few times at once, then after a wait that grows.

Failures are counted by the name that was tried, whether or not a user has it, and by the address that they
come from. Who has to wait is refused before any password is compared, for a minute at most. Where a user was
let in before, their failures are counted apart: strangers who try their name elsewhere, or other names at the
same place, never keep them out. What is counted is bounded in every way, and the users' own names can never
be pushed out of it by names that nobody has.
"""

import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import ceil, inf
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
_LET_IN_S: Final = 30 * 86_400.0
_PLACES: Final = 32
"""Networks of one user that are remembered, those where they were let in last."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a request comes from."""

    network: str = ""
    counted: bool = False
    """Whether it tells one customer from another: a proxy that nobody trusts is the address of everybody."""


_NOWHERE: Final = _Place()
_PLACE: Final[ContextVar[_Place]] = ContextVar("place", default=_NOWHERE)


class Caller:
    """Notes the address of every request, which gradio does not hand on to what checks a password."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the app does."""
        client = scope.get("client")
        _PLACE.set(_place_of(*client) if client else _NOWHERE)
        await self._app(scope, receive, send)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a wait begins and where it ends."""

    free: int
    """Failures after which there is no wait yet."""
    longest_s: float
    less_every_s: float = inf
    """For each such time since the last failure there is one less."""
    room: int = _OTHERS
    """Whatever is counted, so many of it are remembered; those that failed last."""


NAMES: Final = Rule(free=5, longest_s=60.0)
ADDRESSES: Final = Rule(free=20, longest_s=60.0, less_every_s=60.0)


class Failures:
    """Counts failures by whatever they are counted by."""

    def __init__(self, rule: Rule, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rule = rule
        self._clock = clock
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def count(self, key: str) -> int:
        """How many there are now; those of long ago are forgotten."""
        count, at = self._known.get(key, (0, 0.0))
        ago_s = self._clock() - at
        return 0 if ago_s > _FORGOTTEN_S else max(0, count - int(ago_s // self._rule.less_every_s))

    def wait_s(self, key: str) -> float:
        """How long the next try still has to wait; 0 or less if it may be made."""
        count, at = self._known.get(key, (0, 0.0))
        if count < self._rule.free:
            return 0.0
        wait_s = min(self._rule.longest_s, 2.0 ** min(count - self._rule.free, 60))
        return at + wait_s - self._clock()

    def add(self, key: str) -> None:
        """One more."""
        count = self.count(key) + 1
        self._known.pop(key, None)
        self._known[key] = count, self._clock()
        while len(self._known) > self._rule.room:
            self._known.popitem(last=False)

    def forget(self, key: str) -> None:
        """Count from the beginning."""
        self._known.pop(key, None)


class LetIn:
    """Where each user was let in during the last weeks; nobody pushes out what is remembered of another."""

    def __init__(self, users: Iterable[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at: dict[str, OrderedDict[str, float]] = {user: OrderedDict() for user in users}

    def __len__(self) -> int:
        return sum(map(len, self._at.values()))

    def was(self, name: str, network: str) -> bool:
        """Whether a user has got in from there."""
        at = self._at[name].get(network) if name in self._at else None
        return at is not None and self._clock() - at <= _LET_IN_S

    def add(self, name: str, network: str) -> None:
        """A user has got in from there."""
        places = self._at.get(name)
        if places is None:
            return
        places[network] = self._clock()
        places.move_to_end(network)
        while len(places) > _PLACES:
            places.popitem(last=False)


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
        self._let_in = LetIn(self._users, clock=clock)
        self._returning = Failures(replace(NAMES, room=_PLACES * len(self._users)), clock=clock)

    def wait_s(self, name: str) -> int:
        """Seconds for which this name, or who is calling, has to wait; 0 if they may try."""
        place = _PLACE.get()
        failures, key = self._counted(name, place)
        if failures is self._returning and not failures.count(key):
            return 0  # no stranger at the same address keeps out who always had the right password
        by_address = self._addresses.wait_s(place.network) if place.counted else 0.0
        return max(0, ceil(failures.wait_s(key)), ceil(by_address))

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
        """Whether a password is right; a wrong one is counted.

        The right one takes back what was counted of this user at this place, and nothing of anybody else.
        """
        place = _PLACE.get()
        if self._allowed(name, password):
            self._let_in.add(name, place.network)
            self._returning.forget(_key(name, place.network))
            return True
        failures, key = self._counted(name, place)
        failures.add(key)
        if place.counted:
            self._addresses.add(place.network)
        return False

    def _counted(self, name: str, place: _Place) -> tuple[Failures, str]:
        """By what failures of a name are counted there."""
        if self._let_in.was(name, place.network):
            return self._returning, _key(name, place.network)
        return self._own if name in self._users else self._others, _key(name)


def too_many(wait_s: int) -> str:
    """What is said to who has to wait."""
    return f"There were too many wrong passwords; try again in {wait_s} s."


def _key(*parts: str) -> str:
    """A name, and where it was tried, as they are remembered, however long they are."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def _place_of(host: str, port: int) -> _Place:
    # a forwarded address comes without a port, and only from a proxy that uvicorn was told to trust
    return _Place(_network_of(host), counted=port == 0 or not _is_near(host))


def _is_near(host: str) -> bool:
    """Whether this is an address of this machine or of a network of its own, as that of a proxy mostly is."""
    try:
        return not _address(host).is_global
    except ValueError:  # a name, which only a test or a proxy gives
        return False


def _network_of(host: str) -> str:
    try:
        known = _address(host)
    except ValueError:
        return host[:64]
    if known.version == 4:  # noqa: PLR2004 - the version of the protocol
        return str(known)
    return str(ipaddress.ip_network((int(known), _NETWORK), strict=False))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address; IPv4 may be written as IPv6, where all of it would look like one network.

    Raises:
        ValueError: it is none.
    """
    known = ipaddress.ip_address(host)
    return getattr(known, "ipv4_mapped", None) or known
