"""Who may use the tools: with a login only its users, and never a page in somebody's browser.

Gradio's own login does not reach beyond gradio's own routes. Browsers send an Origin with every request that
a page makes; programs send none. So no page of somebody else can use the tools through a visitor's browser,
whatever name it gives to this machine.
"""

import base64
import binascii
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from specrag.config import Settings
from specrag.ui.who import login_of

USER: Final = "specrag.user"
"""Where the scope of a request has the name of its user."""
_LONGEST: Final = 2048
"""Characters of an Authorization header that are looked at."""


class Guard:
    """Lets requests through to `app` that may use it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._allowed = login_of(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand the request on with the name of its user."""
        headers = Headers(scope=scope)
        if "origin" in headers:
            await _refusal(403, "The tools are for programs, not for pages in a browser.")(
                scope, receive, send
            )
            return
        name, password = _credentials(headers.get("authorization", ""))
        if self._allowed is not None and not self._allowed(name, password):
            refusal = _refusal(401, "Send the name and the password of the login in an Authorization header.")
            refusal.headers["www-authenticate"] = 'Basic realm="specrag", charset="UTF-8"'
            await refusal(scope, receive, send)
            return
        await self._app({**scope, USER: name if self._allowed is not None else None}, receive, send)


def _credentials(header: str) -> tuple[str, str]:
    """Name and password of a Basic header, or a Bearer one with the same token; empty if there are none."""
    scheme, _, token = header[:_LONGEST].partition(" ")
    if scheme.lower() not in ("basic", "bearer"):
        return "", ""
    try:
        text = base64.b64decode(token.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return "", ""
    name, _, password = text.partition(":")
    return name, password


def _refusal(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)
