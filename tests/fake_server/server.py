"""The server around the routes: a thread with a loop of its own, and a port that it can leave and take again."""

import asyncio
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from tests.fake_server.api import COMPLETIONS, Api
from tests.fake_server.faults import Fault
from tests.fake_server.toy import Script, Toy
from tests.fake_server.wire import Asked, Link, Reply

T = TypeVar("T")
_LOOPBACK: Final = "127.0.0.1"
_WAIT_S: Final = 10.0
_ACCEPTING: Final = 5
"""Turns of the loop from a connection accepted to its task, and some more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it came."""

    path: str
    authorization: str | None
    body: dict[str, Any]


class FakeServer:
    """Listens from `start` to `stop`, which `with` calls; both may be called again, the port stays.

    `write` and `judge` are the script, as of `ScriptedModel`; the other settings are those of `Api`.
    """

    def __init__(
        self,
        write: Script,
        *,
        judge: Callable[[str], float] = lambda text: 0.5,
        model: str = "toy",
        key: str | None = None,
        context: int = 4096,
        bos: bool = False,
        pace_s: float = 0.0,
        read_s: float = 0.0,
        tokens_per_event: int = 1,
        keep_alive: bool = False,
        chat: Callable[[dict[str, Any]], object] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.api = Api(
            toy=Toy(write, judge),
            model=model,
            key=key,
            context=context,
            bos=bos,
            pace_s=pace_s,
            read_s=read_s,
            tokenise_s=0.0,
            tokens_per_event=tokens_per_event,
            keep_alive=keep_alive,
            chat=chat,
        )
        self.port = 0
        self.requests: Counter[str] = Counter()
        """By path."""
        self.connections = 0
        """Ever accepted."""
        self.disconnects = 0
        """Clients that went away before their answer was complete."""
        self.seen: list[Seen] = []
        self._tls = tls
        self._links: set[Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._crashes: set[asyncio.Task[None]] = set()
        self._port_in_hand = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT_S)
        self._loop.close()

    @property
    def url(self) -> str:
        """Base URL of the API."""
        return f"{'http' if self._tls is None else 'https'}://{_LOOPBACK}:{self.port}/v1"

    @property
    def fault(self) -> Fault | None:
        """What goes wrong at the moment."""
        return self.api.plan.fault

    @fault.setter
    def fault(self, fault: Fault | None) -> None:
        self.api.plan.set(fault)

    @property
    def struck(self) -> int:
        """Requests that met the present fault."""
        return self.api.plan.struck

    @property
    def running(self) -> int:
        """Prompts in work."""
        return self.api.running

    @property
    def completions(self) -> int:
        """Requests to `/v1/completions` so far."""
        return self.requests[COMPLETIONS]

    @property
    def open_connections(self) -> int:
        """Connections that neither side has ended, idle ones among them."""
        return len(self._links)

    @property
    def listening(self) -> bool:
        """Whether a connection would be accepted."""
        return self._server is not None

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._on_loop(self._listen())

    def stop(self) -> None:
        """Abort every connection and refuse new ones."""
        self._on_loop(self._leave())

    def forget(self) -> None:
        """Count anew; connections that are open stay so."""
        self.requests.clear()
        self.seen.clear()
        self.disconnects = self.api.sent = self.api.most_running = 0

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_WAIT_S)

    async def _listen(self) -> None:
        async with self._port_in_hand:
            await self._take_port()

    async def _take_port(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(
                self._serve, _LOOPBACK, self.port, ssl=self._tls, backlog=128
            )
            self.port = self._server.sockets[0].getsockname()[1]

    def _abort(self) -> asyncio.Server | None:
        """End every connection; the server that listened, which accepts no more but still is to be closed."""
        server, self._server = self._server, None
        if server is not None:
            self._loop.remove_reader(server.sockets[0].fileno())
        for link in self._links:
            link.abort()
        return server

    async def _crash(self, *, again: bool = False) -> None:
        async with self._port_in_hand:
            server = self._abort()
            if server is not None:
                for _ in range(
                    _ACCEPTING
                ):  # else a connection meets a closed server: asyncio loses its socket
                    await asyncio.sleep(0)
                server.close()
            if again:
                await self._take_port()

    async def _leave(self) -> None:
        """Until nothing is left to do: a connection just accepted is not served yet, nor a port taken again."""
        while True:
            await self._crash()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if not others:
                return
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(reader, writer, handle=self._handle)
        task = asyncio.current_task()
        assert task is not None
        self.connections += 1
        self._links.add(link)
        self._serving.add(task)
        try:
            if self._server is None:  # crashed since it was accepted
                link.abort()
                return
            await link.serve()
        except asyncio.CancelledError:  # by `stop`; asyncio would log it as an error of the callback
            link.abort()
        finally:
            self.disconnects += link.left_early
            self._links.discard(link)
            self._serving.discard(task)

    async def _handle(self, asked: Asked, reply: Reply) -> None:
        self.requests[asked.path] += 1
        body = json.loads(asked.body) if asked.body.startswith(b"{") else {}
        self.seen.append(Seen(path=asked.path, authorization=asked.headers.get("authorization"), body=body))
        fault = await self.api.handle(asked, reply)
        if fault is not None and fault.kind in ("crash", "restart"):
            crash = self._loop.create_task(
                self._crash(again=fault.kind == "restart")
            )  # outlives the connection
            self._crashes.add(crash)
            crash.add_done_callback(self._crashes.discard)


async def until(condition: Callable[[], bool], *, within_s: float = 2.0) -> bool:
    """Wait for a condition of another thread; returns whether it came true in time."""
    limit = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > limit:
            return False
        await asyncio.sleep(0.005)
    return True
