"""A Chroma server over HTTP: Chroma's own client, with limits of time, patience for a restart, and sentences.

Every request of the store may be sent twice without harm, so one that finds no server is sent again until a
restart is over. Chroma's client waits for ever and takes any answer; here each request goes through `_Api`.
"""

import ssl
import threading
import time
from typing import Any
from urllib.parse import quote, urlsplit

import chromadb.errors
import httpx
from chromadb.api.base_http_client import BaseHTTPClient
from chromadb.api.client import Client
from chromadb.api.fastapi import FastAPI
from chromadb.config import Settings, System
from overrides import override

from specrag.errors import StoreError, StoreUnreachable
from specrag.retrieval.address import ChromaServer

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 2.0
_PASSING = frozenset((429, 502, 503, 504))
"""Answers of a server (or of the proxy before it) that is about to come back."""


class ServerClient(Client):
    """What the store uses of Chroma's client, for one tenant and database."""

    def __init__(self, api: "_Api", server: ChromaServer) -> None:  # no super(): it would ask without limits
        self._server = api
        self._api = api
        self.tenant, self.database = server.tenant, server.database

    @override
    def close(self) -> None:
        """Close the connections; a request that waits for its next try gives up."""
        self._api.hang_up()


def connect(server: ChromaServer) -> ServerClient:
    """A client whose tenant and database are there.

    Raises:
        StoreUnreachable: the server does not answer.
        StoreError: it is no Chroma server, or it refuses the token, tenant or database.
    """
    api = _reached(server)
    try:
        if not _has_database(api, server):
            _make_database(api, server)
    except BaseException:
        api.hang_up()
        raise
    return ServerClient(api, server)


def look(server: ChromaServer) -> str:
    """A sentence about a server that is ready; nothing is made there.

    Raises:
        StoreUnreachable: it does not answer.
        StoreError: it is no Chroma server, or it refuses the token, tenant or database.
    """
    api = _reached(server)
    try:
        state = "is there" if _has_database(api, server) else "is made at the first start, if it lets us"
    finally:
        api.hang_up()
    return f"Chroma at {server.url}; database {server.database} of {server.tenant} {state}"


def _reached(server: ChromaServer) -> "_Api":
    """Chroma's API of a server that has answered as one."""
    settings = Settings(
        anonymized_telemetry=False,
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host=server.url,
        chroma_server_http_port=0,  # the URL says it
        chroma_server_ssl_enabled=server.url.startswith("https:"),
        chroma_client_auth_provider=None,
    )
    api = _Api(System(settings), server)
    try:
        api.heartbeat()
    except BaseException:
        api.hang_up()
        raise
    return api


class _Api(FastAPI):
    """Chroma's requests, each sent with limits and judged in one place."""

    def __init__(self, system: System, server: ChromaServer) -> None:
        super().__init__(system)
        self._at = server
        self._gone = threading.Event()
        self._session.close()
        # The token here and not in Chroma's settings, which would show it when they are printed.
        self._session = httpx.Client(
            timeout=httpx.Timeout(server.stall_s, connect=server.connect_s),
            limits=self.http_limits,
            verify=_trust(server),
            trust_env=not _is_here(server.url),  # no proxy reaches our own loopback
            headers={**self._header, **server.headers},
        )

    def hang_up(self) -> None:
        """Close the connections."""
        self._gone.set()
        self._session.close()

    @override
    def heartbeat(self) -> int:
        """The server's clock in nanoseconds."""
        answer = self._make_request("get", "/heartbeat")
        if not isinstance(answer, dict) or not isinstance(answer.get("nanosecond heartbeat"), int):
            raise self._no_chroma("it has no heartbeat")
        return int(answer["nanosecond heartbeat"])

    @override
    def _make_request(self, method: str, path: str, **kwargs: Any) -> Any:
        if "json" in kwargs:
            import orjson

            kwargs["content"] = orjson.dumps(kwargs.pop("json"), option=orjson.OPT_SERIALIZE_NUMPY)
        return self._judged(self._sent(method, self._api_url + quote(path, safe="/"), kwargs))

    def _sent(self, method: str, url: str, content: dict[str, Any]) -> httpx.Response:
        """The answer, after as many tries as there is patience for."""
        started, wait = time.monotonic(), _FIRST_WAIT_S
        while not self._gone.is_set():
            cause: httpx.TransportError | None = None
            try:
                response = self._session.request(method, url, **content)
                if response.status_code not in _PASSING:
                    return response
                reason = f"status {response.status_code}"
            except httpx.TransportError as error:
                cause, reason = error, _reason(error, self._at)
            if "certificate" in reason.lower():
                raise StoreError(
                    f"The certificate of the Chroma server at {self._at.url} is not trusted ({reason}); name"
                    " the file of its authority in SPECRAG_SERVER_CA."
                ) from cause
            late = time.monotonic() - started + wait > self._at.patience_s
            if late or self._gone.wait(wait):
                raise StoreUnreachable(
                    f"The Chroma server at {self._at.url} cannot be reached ({reason}); start it, or correct"
                    " SPECRAG_CHROMA_URL."
                ) from cause
            wait = min(2 * wait, _LONGEST_WAIT_S)
        raise StoreError(
            "The connection to the Chroma server was closed, because the program is shutting down."
        )

    def _judged(self, response: httpx.Response) -> Any:
        if response.status_code in (401, 403):
            raise StoreError(
                f"The Chroma server at {self._at.url} refuses the token; correct SPECRAG_CHROMA_TOKEN, and"
                " check that it is good for SPECRAG_CHROMA_TENANT and SPECRAG_CHROMA_DATABASE."
            )
        try:
            body = response.json()
        except ValueError:
            raise self._no_chroma(f"status {response.status_code}, no JSON") from None
        if response.is_success:
            return body
        if isinstance(body, dict) and body.get("error") in chromadb.errors.error_types:
            BaseHTTPClient._raise_chroma_error(response)  # noqa: SLF001 - Chroma's own reading of its errors
        raise self._no_chroma(f"status {response.status_code}")

    def _no_chroma(self, reason: str) -> StoreError:
        return StoreError(
            f"What answers at {self._at.url} is no Chroma server ({reason}); correct SPECRAG_CHROMA_URL."
        )


def _has_database(api: _Api, server: ChromaServer) -> bool:
    try:
        api.get_database(server.database, server.tenant)
    except chromadb.errors.NotFoundError:
        return False
    return True


def _make_database(api: _Api, server: ChromaServer) -> None:
    """Make the database (and the tenant), as servers of one's own allow and hosted ones do not."""
    try:
        _make_tenant(api, server.tenant)
        api.create_database(server.database, server.tenant)
    except chromadb.errors.ChromaError as error:
        if not _has_database(api, server):  # else another replica made it at the same moment
            raise StoreError(
                f"The Chroma server at {server.url} has no database {server.database} of tenant"
                f" {server.tenant} and does not make it ({str(error).rstrip('.')}); make it there, or correct"
                " SPECRAG_CHROMA_DATABASE and SPECRAG_CHROMA_TENANT."
            ) from error


def _make_tenant(api: _Api, name: str) -> None:
    try:
        api.get_tenant(name)
    except chromadb.errors.NotFoundError:
        api.create_tenant(name)


def _trust(server: ChromaServer) -> ssl.SSLContext | bool:
    if server.ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=server.ca)
    except OSError as error:
        raise StoreError(
            f"SPECRAG_SERVER_CA cannot be read ({error.strerror or error}); name a PEM file of certificates."
        ) from error


def _is_here(url: str) -> bool:
    return (urlsplit(url).hostname or "") in ("localhost", "127.0.0.1", "::1")


def _reason(error: httpx.TransportError, server: ChromaServer) -> str:
    match error:
        case httpx.ConnectTimeout():
            return f"no connection within {server.connect_s:g} s"
        case httpx.TimeoutException():
            return f"silent for {server.stall_s:g} s"
        case httpx.ConnectError():
            return str(error).strip().rstrip(".") or "no connection"
        case _:
            return "it closed the connection"
