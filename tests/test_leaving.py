"""A program that closes its connection: what it asked for stops, and the models are free for others."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
import pytest
from gradio_client import Client

from specrag.ui.endpoints.leaving import LEFT
from tests.api_page import ENDLESS, QUESTION, serving

ACCEPT: Final = {"accept": "application/json, text/event-stream"}
FREE_S: Final = 2.0
"""So soon after a program has left its run is over."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("home"), MCP="true", ABANDONED_S="0") as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    made = Client(url, verbose=False)
    yield made
    made.close()


def active(url: str) -> int:
    """Runs that go on."""
    return int(httpx.get(f"{url}/health").json()["active"]["runs"])


def wait_for(url: str, runs: int, *, within_s: float) -> None:
    """Wait until so many runs go on."""
    end = time.monotonic() + within_s
    while active(url) != runs:
        assert time.monotonic() < end, f"{active(url)} runs go on instead of {runs}"
        time.sleep(0.05)


@contextmanager
def waiting(url: str, endpoint: str, **values: object) -> Iterator[None]:
    """A program that has called an endpoint and is there until the end of the block."""
    with httpx.stream("GET", called(url, endpoint, **values), timeout=60):
        wait_for(url, 1, within_s=30)
        yield


def called(url: str, endpoint: str, **values: object) -> str:
    """Where the answer of an endpoint is fetched that has just been called."""
    address = f"{url}/gradio_api/call/v2/{endpoint}"
    return f"{address}/{httpx.post(address, json=values).json()['event_id']}"


def newest(client: Client) -> dict[str, Any]:
    """The trace of the run that was begun last."""
    found: dict[str, Any] = client.predict(limit=1, api_name="/runs")["runs"][0]
    trace: dict[str, Any] = client.predict(found["run_id"], api_name="/run")
    return trace


def test_the_run_of_a_program_that_leaves_is_stopped(url: str, client: Client) -> None:
    """It kept the models busy to its deadline, five minutes, for nobody."""
    with waiting(url, "ask", question=ENDLESS, pipeline="standard"):
        assert active(url) == 1
    wait_for(url, 0, within_s=FREE_S)
    told = newest(client)
    assert (told["question"], told["status"]) == (ENDLESS, "cancelled")
    assert told["error"]["message"] == LEFT


def test_a_fork_of_a_program_that_leaves_is_stopped(url: str, client: Client) -> None:
    parent = client.predict(QUESTION, pipeline="standard", api_name="/ask")["run_id"]
    with waiting(url, "fork", run_id=parent, step="retrieve", question=ENDLESS):
        pass
    wait_for(url, 0, within_s=FREE_S)
    told = newest(client)
    assert (told["parent"]["run_id"], told["status"]) == (parent, "cancelled")


def test_a_comparison_of_a_program_that_leaves_is_stopped(url: str, client: Client) -> None:
    """Its next run would have begun as soon as the first one was over."""
    with waiting(url, "compare", question=ENDLESS, pipelines=["standard", "speculative"]):
        pass
    wait_for(url, 0, within_s=FREE_S)
    # one of a visitor is under way at a time, so this one would be refused
    again = client.predict(QUESTION, ["standard", "speculative"], api_name="/compare")
    assert again["status"] == "done"
    assert again["turn"] == 1, "the comparison that was stopped is kept"


def test_a_program_that_fetches_later_has_not_left(url: str, client: Client) -> None:
    """Asking and fetching are two requests, and in between there is no connection at all."""
    answer = called(url, "ask", question=ENDLESS, pipeline="standard")
    wait_for(url, 1, within_s=30)
    end = time.monotonic() + FREE_S
    while time.monotonic() < end:
        assert active(url) == 1
        time.sleep(0.1)
    with httpx.stream("GET", answer, timeout=60):
        assert active(url) == 1
    wait_for(url, 0, within_s=FREE_S)
    assert newest(client)["error"]["message"] == LEFT


def test_the_run_of_a_tool_that_is_left_is_stopped(url: str, client: Client) -> None:
    """An agent that is ended in mid-answer."""
    pytest.importorskip("mcp", reason="pip install -r requirements-mcp.txt")
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ask", "arguments": {"question": ENDLESS, "pipeline": "standard"}},
    }
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/mcp", json=body, headers=ACCEPT, timeout=httpx.Timeout(30, read=1))
    wait_for(url, 0, within_s=FREE_S)
    assert newest(client)["question"] == ENDLESS


def test_a_program_that_stays_gets_its_answer(client: Client) -> None:
    """Who is still there must never be taken for gone."""
    jobs = [client.submit(QUESTION, pipeline="standard", api_name="/ask") for _ in range(4)]
    assert [job.result()["status"] for job in jobs] == ["done"] * 4
