"""Requests to model servers; the one file that knows httpx.

Connections belong to an event loop, so each loop gets a client of its own, held by an asynchronous generator:
a loop that shuts down ends its generators, and the connections with it. Leaving a stream closes its
connection, which is how a server learns that nobody wants the rest.
"""

import asyncio
import json
import os
import ssl
import threading
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from specrag.errors import UsageError
from specrag.models.server.access import Access
from specrag.models.server.faults import Fault, of_status

if TYPE_CHECKING:
    import httpx

_KEEP_S = 4.0
"""An idle connection is kept this long; vLLM closes its end after 5 s."""
_DATA, _DONE = "data:", "[DONE]"


class Http:
    """Sends requests to the servers of one role."""

    def __init__(self, access: Access, *, most_bytes: int | None = None) -> None:
        """`most_bytes` is the longest answer that is read whole; None reads any."""
        self._access = access
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[httpx.AsyncClient]]
        self._held = WeakKeyDictionary()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def get(self, url: str, path: str) -> Any:
        """The JSON at a path of the server with this base URL; `path` as for `_address`.

        Raises:
            Fault: there is none.
        """
        return await self._whole("GET", url, path, None)

    async def post(self, url: str, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that answers a body.

        Raises:
            Fault: there is none.
        """
        return await self._whole("POST", url, path, body)

    async def stream(self, url: str, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any]:
        """The server-sent events of an answer, each as JSON. Closing this closes the request.

        Raises:
            Fault: it breaks off, or is no such stream.
        """
        import httpx

        client = await self._client()
        try:
            async with client.stream("POST", _address(url, path), json=body) as response:
                await self._check(response, url)
                async for line in self._lines(response):
                    if not line.startswith(_DATA):
                        if line and not line.startswith((":", "event:", "id:", "retry:")):
                            raise Fault("malformed", url, "a stream of something else than events")
                        continue
                    data = line.removeprefix(_DATA).strip()
                    if data == _DONE:
                        return
                    yield _parsed(data, url)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._fault(error, url) from error
        raise Fault("dropped", url, "the stream had no end")

    async def _lines(self, response: "httpx.Response") -> AsyncGenerator[str]:
        """Lines as server-sent events have them: a token may hold characters that end lines elsewhere."""
        rest = b""
        async for part in response.aiter_bytes():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                yield self._masked(line.decode("utf-8", "replace").rstrip("\r"))
        if rest:
            yield self._masked(rest.decode("utf-8", "replace"))

    def _masked(self, text: str) -> str:
        """Text without our own key, which an error may quote."""
        return text.replace(self._access.key, "…") if self._access.key else text

    async def aclose(self) -> None:
        """Close the connections of this loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            holder = self._held.pop(loop, None)
            self._clients.pop(loop, None)
        if holder is not None:
            await holder.aclose()

    def close(self) -> None:
        """Close the connections of every loop that runs; a loop that has ended closed its own."""
        with self._lock:
            held = dict(self._held)
            self._held.clear()
            self._clients.clear()
        for loop, holder in held.items():
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(holder.aclose(), loop)

    async def _whole(self, method: str, url: str, path: str, body: Mapping[str, Any] | None) -> Any:
        import httpx

        client = await self._client()
        try:
            async with client.stream(method, _address(url, path), json=body) as response:
                await self._check(response, url)
                text = await self._body(response, url)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._fault(error, url) from error
        return _parsed(text, url)

    async def _body(self, response: "httpx.Response", url: str) -> str:
        read = bytearray()
        async for part in response.aiter_bytes():
            read += part
            if self._most_bytes is not None and len(read) > self._most_bytes:
                raise Fault("malformed", url, f"more than {self._most_bytes:,} bytes")
        return self._masked(read.decode("utf-8", "replace"))

    async def _client(self) -> "httpx.AsyncClient":
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is not None:
                return client
            self._clients[loop] = client = self._made()
            self._held[loop] = holder = _hold(client)
        await anext(holder)
        return client

    def _made(self) -> "httpx.AsyncClient":
        import httpx

        access = self._access
        return httpx.AsyncClient(
            headers={"Authorization": f"Bearer {access.key}"} if access.key else {},
            timeout=httpx.Timeout(access.stall_timeout_s, connect=access.connect_timeout_s, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=_KEEP_S),
            verify=self._trusted(),
            trust_env=False,  # no proxy stands between here and a server, and none gets its key
        )

    async def _check(self, response: "httpx.Response", url: str) -> None:
        if response.status_code == HTTPStatus.OK:
            return
        message = _message(await self._body(response, url))
        retry_after = response.headers.get("retry-after")
        raise of_status(url, response.status_code, message, retry_after=retry_after)

    def _trusted(self) -> ssl.SSLContext | bool:
        """Whose certificates are believed; reading them takes 0.1 s, so only if an address needs it."""
        if not any(url.startswith("https:") for url in self._access.urls):
            return False
        ca = self._access.ca
        try:
            return ssl.create_default_context(cafile=None if ca is None else str(ca))
        except OSError as error:  # an SSLError is one
            raise UsageError(f"SPECRAG_SERVER_CA: {ca} holds no certificate of an authority.") from error

    def _fault(self, error: Exception, url: str) -> Fault:
        import httpx

        cause = _cause(error)
        if isinstance(error, httpx.ConnectTimeout):
            return Fault("unreachable", url, f"no connection within {self._access.connect_timeout_s:g} s")
        if isinstance(error, httpx.TimeoutException):
            return Fault("silent", url, f"{self._access.stall_timeout_s:g} s")
        if isinstance(error, httpx.ConnectError):
            untrusted = "its certificate is not trusted; SPECRAG_SERVER_CA names the authority that signed it"
            return Fault("unreachable", url, untrusted if "CERTIFICATE" in cause else cause)
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
            return Fault("dropped", url, cause)
        return Fault("malformed", url, cause)


def _cause(error: BaseException) -> str:
    """What the operating system said, "Connection refused", or else what the library says."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, BaseExceptionGroup):
            below = below.exceptions[0]
        if isinstance(below, OSError) and not isinstance(below, ssl.SSLError) and below.strerror:
            return os.strerror(below.errno) if below.errno is not None and below.errno > 0 else below.strerror
        below = below.__cause__ or below.__context__
    return str(error).strip().rstrip(".") or type(error).__name__


def _address(url: str, path: str) -> str:
    """`completions` lies below the base URL, `/tokenize` beside it: vLLM keeps its own paths out of /v1."""
    return f"{url.removesuffix('/v1')}{path}" if path.startswith("/") else f"{url}/{path}"


async def _hold(client: "httpx.AsyncClient") -> "AsyncGenerator[httpx.AsyncClient]":
    try:
        yield client
    finally:
        await client.aclose()


def _message(text: str) -> str:
    """What an error's body says; the page of a proxy says nothing that a person could use."""
    try:
        body = json.loads(text)
    except ValueError:
        return ""
    error = body.get("error", body.get("detail", body.get("message"))) if isinstance(body, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


def _parsed(text: str, url: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        beginning = " ".join(text.split())[:40]
        raise Fault(
            "malformed", url, f"“{beginning}” is not JSON" if beginning else "an empty body"
        ) from error
