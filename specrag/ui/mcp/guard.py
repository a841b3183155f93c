"""Who may use the tools: with a login only its users, and never a page in somebody's browser.

Gradio's own login does not reach beyond gradio's own routes, so it is asked here again; who has to wait there
has to wait here. Browsers send an Origin with every request that a page makes; programs send none. So no page
of somebody else can use the tools through a visitor's browser, whatever name it gives to this machine.
"""

import base64
import binascii
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from specrag.ui.attempts import Patience, too_many

USER: Final = "specrag.user"
"""Where the scope of a request has the name of its user."""
_LONGEST: Final = 2048
"""Characters of an Authorization header that are looked at."""


class Guard:
    """Lets requests through to `app` that may use it; all of them without a login."""

    def __init__(self, app: ASGIApp, login: Patience | None) -> None:
        self._app = app
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand the request on with the name of its user."""
        headers = Headers(scope=scope)
        if "origin" in headers:
            await _refusal(403, "The tools are for programs, not for pages in a browser.")(
                scope, receive, send
            )
            return
        if self._login is None:
            await self._app({**scope, USER: None}, receive, send)
            return
        told = _credentials(headers.get("authorization", ""))
        # what holds no name and no password is no guess, and so not counted
        refusal = _unknown() if told is None else _refused(self._login, *told)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif told is not None:
            await self._app({**scope, USER: told[0]}, receive, send)


def _refused(login: Patience, name: str, password: str) -> Response | None:
    """What is answered to who is not let in; None if they are."""
    wait_s = login.wait_s(name)
    if wait_s:
        refusal = _refusal(429, too_many(wait_s))
        refusal.headers["retry-after"] = str(wait_s)
        return refusal
    return None if login.tried(name, password) else _unknown()


def _unknown() -> Response:
    refusal = _refusal(401, "Send the name and the password of the login in an Authorization header.")
    refusal.headers["www-authenticate"] = 'Basic realm="specrag", charset="UTF-8"'
    return refusal


def _credentials(header: str) -> tuple[str, str] | None:
    """Name and password of a Basic header, or a Bearer one with the same token; None if there are none."""
    scheme, _, token = header[:_LONGEST].partition(" ")
    if scheme.lower() not in ("basic", "bearer"):
        return None
    try:
        text = base64.b64decode(token.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    name, _, password = text.partition(":")
    return (name, password) if name else None


def _refusal(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)
