"""The MCP endpoint `/mcp` beside the page, with our tools and nothing else.

Gradio can make tools of endpoints by itself, but of all of them, and open to everybody even where the page
has a login; so this is a server of its own from the package `mcp`, which is wanted only where the setting is
on. It keeps no sessions: each request says what it wants and who sends it.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import gradio as gr
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from specrag import __version__
from specrag.errors import SpecragError, UsageError
from specrag.pipelines.base import readable
from specrag.startup import Startup
from specrag.ui.attempts import Patience
from specrag.ui.endpoints.calling import Told
from specrag.ui.endpoints.leaving import watch
from specrag.ui.mcp.guard import USER, Guard
from specrag.ui.mcp.tools import TOOLS
from specrag.ui.who import visitor_of

if TYPE_CHECKING:
    import mcp_types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"
_log = logging.getLogger(__name__)

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the page's app takes along; nothing where the setting is off."""

    routes: tuple[BaseRoute, ...] = ()
    lifespan: Lifespan | None = None

    @property
    def options(self) -> dict[str, Any]:
        """For gradio's `app_kwargs`, beside the routes."""
        return {} if self.lifespan is None else {"lifespan": self.lifespan}


def served(startup: Startup, login: Patience | None) -> Served:
    """The endpoint, if the settings want it, for those whom `login` lets in.

    Raises:
        UsageError: they want it, and the package `mcp` is missing.
    """
    if not startup.settings.mcp:
        return Served()
    try:
        endpoint = _Endpoint(_Tools(startup).server())
    except ModuleNotFoundError as error:
        name = (error.name or "mcp").partition(".")[0]
        raise UsageError(
            f"SPECRAG_MCP is on and the package {name} is missing; install requirements-mcp.txt, or switch "
            "SPECRAG_MCP off."
        ) from error
    route = Route(PATH, endpoint=Guard(endpoint, login))
    return Served(routes=(route,), lifespan=endpoint.lifespan)


class _Endpoint:
    """The tools over HTTP, as long as the app lives."""

    def __init__(self, server: "Server[Any]") -> None:
        self._server = server
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def lifespan(self, _app: object) -> AsyncIterator[None]:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(self._server, stateless=True)
        async with manager.run():
            self._manager = manager
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._manager is not None, "requests come only while the app lives"
        await self._manager.handle_request(scope, receive, send)


class _Tools:
    """What is listed and called."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup
        self._told = {function.__name__: Told(function) for function in TOOLS}

    def server(self) -> "Server[Any]":
        import mcp_types  # noqa: F401 - an older `mcp`, which has none, is to be noticed at the start
        from mcp.server.lowlevel import Server

        return Server(
            "specrag",
            version=__version__,
            instructions="Answers and passages from collections of documents, with their sources.",
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(
        self, _context: "ServerRequestContext[Any]", _params: object
    ) -> "mcp_types.ListToolsResult":
        import mcp_types

        tools = [
            mcp_types.Tool(
                name=function.__name__,
                description=function.__doc__,
                input_schema=self._told[function.__name__].schema(),
                annotations=mcp_types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
            )
            for function in TOOLS
        ]
        return mcp_types.ListToolsResult(tools=tools)

    async def _call(
        self, context: "ServerRequestContext[Any]", params: "mcp_types.CallToolRequestParams"
    ) -> "mcp_types.CallToolResult":
        import mcp_types

        try:
            found = await self._found(context.request, params.name, params.arguments or {})
        except SpecragError as error:
            return mcp_types.CallToolResult(content=[_text(readable(str(error)))], is_error=True)
        except Exception:  # noqa: BLE001 - what a bug says may hold anything, so only the log has it
            _log.exception("the tool %r failed unexpectedly", params.name)
            sentence = "The tool failed unexpectedly; the log of the program says where."
            return mcp_types.CallToolResult(content=[_text(sentence)], is_error=True)
        told = _text(json.dumps(found, ensure_ascii=False))
        return mcp_types.CallToolResult(content=[told], structured_content=found)

    async def _found(self, request: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a tool finds for whoever sent a request.

        Raises:
            UsageError: there is no such tool, the program is not ready, or an argument is wrong.
        """
        told = self._told.get(name)
        if told is None:
            raise UsageError(f"There is no tool {name[:40]}; there is {', '.join(self._told)}.")
        if not self._startup.state.ready:
            raise UsageError(self._startup.state.message)
        assert isinstance(request, Request), "the tools are served over HTTP alone"
        asked = gr.Request(request=request, username=request.scope.get(USER))
        who = visitor_of(asked, self._startup.settings)
        watch(request)
        found: dict[str, Any] = await told.call(self._startup.parts, who, told.ordered(arguments))
        return found


def _text(text: str) -> "mcp_types.TextContent":
    import mcp_types

    return mcp_types.TextContent(type="text", text=text)
