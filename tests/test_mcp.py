"""The tools over MCP, used by a real client of the package; with a login nobody else gets near them."""

import base64
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.library.visitors import USER
from specrag.startup import Startup
from specrag.tracing.store import TraceStore
from specrag.ui.mcp import served
from tests.api_page import ANSWER, QUESTION, ROOT, serving

pytest.importorskip("mcp", reason="pip install -r requirements-mcp.txt")

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

ANN, BEN = ("ann", "secret:with:colons"), ("ben", "geheim-ü")
LOGIN = f"{ANN[0]}:{ANN[1]},{BEN[0]}:{BEN[1]}"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def open_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page that lets everybody in."""
    with serving(tmp_path_factory.mktemp("open"), MCP="true") as url:
        yield url


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page with a login keeps what it has."""
    return tmp_path_factory.mktemp("login")


@pytest.fixture(scope="module")
def login_url(home: Path) -> Iterator[str]:
    """A page with a login."""
    with serving(home, MCP="true", ACCESS="login", LOGIN=LOGIN) as url:
        yield url


def _header(scheme: str, name: str, password: str) -> dict[str, str]:
    token = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"authorization": f"{scheme} {token}"}


@asynccontextmanager
async def connected(
    url: str, headers: dict[str, str] | None = None, mode: str = "auto"
) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers or {}, timeout=120) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]  # our refusals are texts


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_there_are_three_tools_and_nothing_else(open_url: str, mode: str) -> None:
    """Old clients and new ones; gradio would have made a tool of each endpoint, deletion included."""
    async with connected(open_url, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"ask", "search", "documents"}
        assert tools["ask"].input_schema["required"] == ["question"]
        assert tools["search"].input_schema["properties"]["limit"]["maximum"] == 50
        capabilities = client.server_capabilities
        assert (capabilities.resources, capabilities.prompts) == (None, None)


async def test_the_tools_answer(open_url: str) -> None:
    async with connected(open_url) as client:
        answer = await called(client, "ask", question=QUESTION)
        assert (answer["status"], answer["answer"], answer["error"]) == ("done", ANSWER, None)
        assert all(source["text"] and source["title"] for source in answer["sources"])
        found = await called(client, "search", question=QUESTION, limit=2)
        assert len(found["passages"]) == 2
        shelves = (await called(client, "documents"))["collections"]
        assert shelves[0]["name"] == "sample"
        listed = (await called(client, "documents", collection="sample"))["documents"]
        assert len(listed) == shelves[0]["documents"]


async def test_what_cannot_be_is_one_sentence(open_url: str) -> None:
    async with connected(open_url) as client:
        assert "There is no collection" in await refused(client, "search", question="Who?", collection="x")
        assert "The argument question is missing" in await refused(client, "search")
        assert "There is no argument color" in await refused(client, "search", question="Who?", color=1)
        assert "The argument limit cannot be used" in await refused(client, "search", question="?", limit=51)
        assert "The argument question cannot be used" in await refused(client, "ask", question=["a"])
        assert "There is no tool delete_runs" in await refused(client, "delete_runs", run_ids=["a"])


@pytest.mark.parametrize("scheme", ["Basic", "Bearer", "basic"])
async def test_with_a_login_its_users_get_in_and_keep_their_runs(
    login_url: str, home: Path, scheme: str
) -> None:
    async with connected(login_url, _header(scheme, *ANN)) as client:
        answer = await called(client, "ask", question=QUESTION, pipeline="standard")
        assert answer["status"] == "done"
        assert TraceStore(home / "traces.db").summary(answer["run_id"]).owner == f"{USER}{ANN[0]}"
        assert len((await called(client, "documents"))["collections"]) == 2


@pytest.mark.parametrize(
    "headers",
    [
        {},
        _header("Basic", "ann", "wrong"),
        _header("Basic", "nobody", ANN[1]),
        _header("Basic", "ben", ANN[1]),
        _header("Basic", "", ""),
        _header("Digest", *ANN),
        {"authorization": "Basic"},
        {"authorization": "Basic not-base64!"},
        {"authorization": "Basic " + "A" * 1_000},
        {"authorization": f"Bearer {ANN[0]}:{ANN[1]}"},
        {"cookie": "access-token=guessed"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_with_a_login_nobody_else_gets_near_a_tool(
    login_url: str, headers: dict[str, str], method: str
) -> None:
    """Gradio's own tools answer everybody even where its page has a login."""
    answer = httpx.request(method, f"{login_url}/mcp", json=HELLO, headers={**ACCEPT, **headers})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert "ask" not in answer.text


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null"])
def test_no_page_in_a_browser_uses_the_tools(open_url: str, origin: str) -> None:
    """A page of somebody else would use them with the rights of the browser that shows it."""
    answer = httpx.post(f"{open_url}/mcp", json=HELLO, headers={**ACCEPT, "origin": origin})
    assert answer.status_code == 403
    same = httpx.post(f"{open_url}/mcp", json=HELLO, headers={**ACCEPT, "origin": open_url})
    assert same.status_code == 403


@pytest.mark.parametrize("path", ["/gradio_api/mcp/", "/gradio_api/mcp/sse", "/gradio_api/mcp/schema"])
def test_gradios_own_tools_are_not_served(open_url: str, path: str) -> None:
    answer = httpx.post(f"{open_url}{path}", json=HELLO, headers=ACCEPT)
    assert answer.status_code in (404, 405)


def test_it_is_off_unless_it_is_wanted() -> None:
    off = served(Startup(load_settings({})), None)
    assert (off.routes, off.options) == ((), {})


def test_a_missing_package_is_one_sentence_at_the_start(tmp_path: Path) -> None:
    """In a process of its own, where the package cannot be found."""
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from specrag.config import load_settings\n"
        "from specrag.startup import Startup\n"
        "from specrag.ui.mcp import served\n"
        f"served(Startup(load_settings({{}}, mcp=True, home={str(tmp_path)!r})), None)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert UsageError.__name__ in ended.stderr
    assert "SPECRAG_MCP is on and the package mcp is missing; install requirements-mcp.txt" in ended.stderr
