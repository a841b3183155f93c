"""Who asks: a cookie for each browser of an open page, a name for each user of a page with a login.

The cookie is a random number and says nothing; the store never sees it, only its hash, so nobody who reads
the store can take a visitor's place. A program without a cookie is somebody else each time.
"""

import hashlib
import hmac
import re
import secrets
from typing import Final

import gradio as gr
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specrag.config import Settings
from specrag.errors import UsageError
from specrag.library.visitors import PASSING, USER, VISITOR, Visitor
from specrag.ui.attempts import Patience

COOKIE: Final = "specrag_visitor"
_BYTES: Final = 16
_VALUE: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_DAY_S: Final = 86_400
_LONGEST: Final = 256
"""Characters of a name or password that are looked at."""


class VisitorCookie:
    """Gives every browser that opens the page a cookie, and every further visit makes it last longer."""

    def __init__(self, app: ASGIApp, *, days: float) -> None:
        """Wrap an app; `days` is how long the cookie lasts after a visit."""
        self._app = app
        self._max_age_s = round(days * _DAY_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the app does; a page takes the cookie along."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        value = _known(cookie_parser(headers.get("cookie", "")).get(COOKIE, "")) or secrets.token_urlsafe(
            _BYTES
        )
        # a proxy (on Spaces, in Docker) ends https and says so; there the page may be a frame of another one
        secure = "https" in (scope["scheme"], headers.get("x-forwarded-proto", "").split(",")[0].strip())

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                if answered.get("content-type", "").startswith("text/html"):
                    answered.append("set-cookie", self._written(value, secure=secure))
            await send(message)

        await self._app(scope, receive, answer)

    def _written(self, value: str, *, secure: bool) -> str:
        place = "SameSite=None; Secure; Partitioned" if secure else "SameSite=Lax"
        return f"{COOKIE}={value}; Path=/; Max-Age={self._max_age_s}; HttpOnly; {place}"


def visitor_of(request: gr.Request | None, settings: Settings) -> Visitor:
    """Who is behind a request of the page or of a program."""
    name = request.username if request is not None else None
    if settings.access == "login":
        if not name:  # gradio lets nobody in without a login, so nobody should come here
            return Visitor(id=secrets.token_hex(_BYTES), owner=_nobody(), passing=True)
        return Visitor(id=_hash(USER + name), owner=USER + name)
    asked = request.request if request is not None else None
    value = _known(asked.cookies.get(COOKIE, "")) if asked is not None else None
    host = asked.client.host if asked is not None and asked.client is not None else ""
    identity = _hash(value or host)
    if settings.access == "shared":
        return Visitor(id=identity)
    if value is None:
        return Visitor(id=identity, owner=_nobody(), passing=True)
    return Visitor(id=identity, owner=VISITOR + identity)


def login_of(settings: Settings) -> Patience | None:
    """What gradio asks about a name and a password; None where everybody is let in.

    Made once for a page: it remembers who failed.

    Raises:
        UsageError: the users in the settings are not written as they must be.
    """
    if settings.login is None:
        return None
    users = _users(settings.login.get_secret_value())

    def allowed(name: str, password: str) -> bool:
        if len(name) > _LONGEST or len(password) > _LONGEST:
            return False
        # every user is compared, and hashes are, so that the time tells neither a name nor a length
        same = [_same(name, user) & _same(password, secret) for user, secret in users.items()]
        return any(same)

    return Patience(allowed, users)


def _users(text: str) -> dict[str, str]:
    """Names and passwords. What is wrong is not shown: it may hold a password."""
    users: dict[str, str] = {}
    for entry in text.strip().split(","):
        name, colon, password = (part.strip() for part in entry.partition(":"))
        if not (colon and name and password) or max(len(name), len(password)) > _LONGEST or name in users:
            raise UsageError(
                "SPECRAG_LOGIN is no list of users; write name:password with commas between, each name once."
            )
        users[name] = password
    return users


def _same(given: str, wanted: str) -> bool:
    one, other = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (given, wanted))
    return hmac.compare_digest(one, other)


def _known(value: str) -> str | None:
    return value if _VALUE.fullmatch(value) else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _nobody() -> str:
    """An owner that nobody is a second time."""
    return f"{PASSING}{secrets.token_hex(_BYTES)}"
