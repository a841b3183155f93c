"""A stream of events that has said its last word ends by itself, and not because its reader went away.

Gradio's client closes a stream as soon as it reads that it is over. On a busy machine the server hears of
that before it has left the stream's loop, takes it for a visitor who left, and drops the session: the events
of the next stream, which the page has opened meanwhile, are lost, and the page follows nothing any more.

A page that is being reloaded closes its stream first and may ask once more before it is gone. If the server
hears of the closing in between, it answers that the session is not found, which is right, and then raises out
of an answer that has begun, which is a traceback in the log about nothing.
"""

import asyncio
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PATH: Final = "/queue/data"
_OVER: Final = b'data: {"msg":"close_stream"'
"""How gradio's last message of a stream begins; a visitor's text may hold the same word, but not there."""


class WholeStreams:
    """Middleware that keeps a disconnect from a stream that is over, and ends one whose session is gone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not scope["path"].endswith(_PATH):
            await self._app(scope, receive, send)
            return
        begun = over = False

        async def sending(message: Message) -> None:
            nonlocal begun, over
            begun = True
            over = over or message.get("body", b"").startswith(_OVER)
            await send(message)

        async def receiving() -> Message:
            message = await receive()
            if over and message["type"] == "http.disconnect":
                await asyncio.Event().wait()  # until the stream, which waits for nothing more, has ended
            return message

        try:
            await self._app(scope, receiving, sending)
        except RuntimeError as error:
            refused = error.__cause__
            gone = isinstance(refused, HTTPException) and refused.status_code == HTTPStatus.NOT_FOUND
            if not (begun and gone):
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})
