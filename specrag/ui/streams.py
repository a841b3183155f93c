"""A stream of events that has said its last word ends by itself, and not because its reader went away.

Gradio's client closes a stream as soon as it reads that it is over. On a busy machine the server hears of
that before it has left the stream's loop, takes it for a visitor who left, and drops the session: the events
of the next stream, which the page has opened meanwhile, are lost, and the page follows nothing any more.
"""

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PATH: Final = "/queue/data"
_OVER: Final = b'data: {"msg":"close_stream"'
"""How gradio's last message of a stream begins; a visitor's text may hold the same word, but not there."""


class WholeStreams:
    """Middleware that keeps a disconnect from a stream that is over."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not scope["path"].endswith(_PATH):
            await self._app(scope, receive, send)
            return
        over = False

        async def sending(message: Message) -> None:
            nonlocal over
            over = over or message.get("body", b"").startswith(_OVER)
            await send(message)

        async def receiving() -> Message:
            message = await receive()
            if over and message["type"] == "http.disconnect":
                await asyncio.Event().wait()  # until the stream, which waits for nothing more, has ended
            return message

        await self._app(scope, receiving, sending)
