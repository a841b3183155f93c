"""HTTP/1.1 over one socket: requests in, answers out, and the end of a client noticed while it waits."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import h11

_CHUNK: Final = 65_536
Headers: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, read to its end."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Reply:
    """Where a handler writes its answer."""

    def __init__(
        self, connection: h11.Connection, writer: asyncio.StreamWriter, *, abort: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._writer = writer
        self.abort = abort
        """End the connection without another byte, as a process that dies does."""

    async def json(self, status: int, body: object, headers: Headers = ()) -> None:
        """A whole answer in JSON."""
        await self.whole(status, json.dumps(body).encode(), "application/json", headers)

    async def whole(self, status: int, body: bytes, media_type: str, headers: Headers = ()) -> None:
        """A whole answer."""
        length = ("content-length", str(len(body)))
        await self._head(status, [("content-type", media_type), length, *headers])
        await self._send(h11.Data(data=body))
        await self.end()

    async def begin_events(self) -> None:
        """The head of a stream of server-sent events."""
        await self._head(
            200, [("content-type", "text/event-stream; charset=utf-8"), ("transfer-encoding", "chunked")]
        )

    async def event(self, body: object) -> None:
        """One event; a string goes out as it is."""
        data = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
        await self.raw(f"data: {data}\n\n".encode())

    async def raw(self, data: bytes) -> None:
        """Bytes of a body that has begun."""
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        """Nothing more follows."""
        await self._send(h11.EndOfMessage())

    async def _head(self, status: int, headers: Headers) -> None:
        await self._send(h11.Response(status_code=status, headers=[("server", "uvicorn"), *headers]))

    async def _send(self, event: h11.Event) -> None:
        data = self._connection.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()


Handler: TypeAlias = Callable[[Asked, Reply], Awaitable[None]]


class Link:
    """One connection: it answers request after request until one side ends it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, handle: Handler
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handle = handle
        self._connection = h11.Connection(h11.SERVER)
        self._aborted = False
        self.left_early = False
        """Whether the client went away before its answer was complete."""

    def abort(self) -> None:
        """End it at once."""
        self._aborted = True
        self._writer.transport.abort()

    async def serve(self) -> None:
        """Until the end of the connection."""
        with suppress(ConnectionError, h11.ProtocolError):
            while (asked := await self._next()) is not None:
                if not await self._answer(asked):
                    break
                if self._connection.our_state is not h11.DONE:
                    break
                self._connection.start_next_cycle()
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _answer(self, asked: Asked) -> bool:
        """Whether the client was there to the end; if it leaves, the handler is cancelled."""
        reply = Reply(self._connection, self._writer, abort=self.abort)
        working = asyncio.ensure_future(self._handle(asked, reply))
        leaving = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done() and (early := leaving.result()):  # the next request, not the end
                self._connection.receive_data(early)
                await working
            if not working.done():
                self.left_early = not self._aborted
                return False
            await working
        except ConnectionError:
            self.left_early = not self._aborted
            return False
        else:
            return True
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)

    async def _next(self) -> Asked | None:
        head: h11.Request | None = None
        body = b""
        while True:
            event: Any = self._connection.next_event()
            if event is h11.NEED_DATA:
                self._connection.receive_data(await self._reader.read(_CHUNK))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode(): value.decode() for name, value in head.headers}
                target = head.target.decode().partition("?")[0]
                return Asked(method=head.method.decode(), path=target, headers=headers, body=body)
            else:
                return None
