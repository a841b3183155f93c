"""The served program over model servers that are late, die or are busy when it is told to stop."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client

from specrag.config import load_settings
from specrag.startup import Startup
from specrag.types import Part
from tests.e2e.serving import Server, serving
from tests.fake_server import FakeServer, Fault
from tests.fake_server.rig import ANSWER, KEY
from tests.integration.test_server import _answers, _listening

pytestmark = pytest.mark.integration
QUESTION = "How much energy does the Larkspur 3 battery hold?"
KEYS = {"SPECRAG_DRAFTER_KEY": KEY, "SPECRAG_VERIFIER_KEY": KEY}


def write(text: str) -> Mapping[Part, str]:
    return {"rationale": " The battery holds 640 watt-hours.", "answer": f" {ANSWER}"}


def soon(condition: Callable[[], bool], within_s: float) -> bool:
    limit = time.monotonic() + within_s
    while not condition() and time.monotonic() < limit:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def models() -> Iterator[tuple[FakeServer, FakeServer, FakeServer]]:
    """Two drafters and a verifier."""
    with ExitStack() as held:
        names = ("toy-1b", "toy-1b", "toy-7b")
        one, two, three = (held.enter_context(FakeServer(write, model=name, key=KEY)) for name in names)
        yield one, two, three


@contextmanager
def served(
    home: Path, embedder: Path, models: tuple[FakeServer, FakeServer, FakeServer]
) -> Iterator[tuple[Server, Client]]:
    one, two, three = models
    settings = {
        "SPECRAG_DRAFTER_URL": f"{one.url},{two.url}",
        "SPECRAG_VERIFIER_URL": three.url,
        "SPECRAG_DRAFTER": "toy-1b",
        "SPECRAG_VERIFIER": "toy-7b",
        **KEYS,
    }
    with serving(home, embedder=embedder, model=embedder, **settings) as server:
        client = Client(server.url, verbose=False)
        yield server, client
        client.close()
        assert KEY not in server.log.read_text(errors="replace")
        assert "Traceback" not in server.log.read_text(errors="replace")


def answer(trace: dict[str, Any]) -> str:
    assert KEY not in str(trace)
    text: str = trace["answer"]["text"]
    return text


def test_the_start_waits_for_servers_that_are_away_and_says_so(
    tmp_path: Path, embedder_path: Path, models: tuple[FakeServer, FakeServer, FakeServer]
) -> None:
    one, _, three = models
    one.stop()
    settings = load_settings(
        {},
        home=tmp_path,
        embedder=str(embedder_path),
        drafter_url=one.url,
        verifier_url=three.url,
        drafter_key=KEY,
        verifier_key=KEY,
    )
    startup = Startup(settings)
    startup.begin()
    try:
        assert soon(lambda: startup.state.waiting, 60)
        assert one.url in startup.state.message
        assert "SPECRAG_DRAFTER_URL" in startup.state.message
        one.start()
        assert soon(lambda: startup.state.ready, 30), startup.state.message
        assert startup.parts.drafter.info.name == "toy-1b"
    finally:
        startup.close()
        startup.wait(10)
        startup.parts.close()
    assert soon(lambda: not any(server.open_connections for server in models), 2)


def test_a_program_is_answered_while_servers_die_and_the_key_stays_secret(
    tmp_path: Path, embedder_path: Path, models: tuple[FakeServer, FakeServer, FakeServer]
) -> None:
    one, _, verifier = models
    with served(tmp_path, embedder_path, models) as (server, client):
        assert answer(client.predict(QUESTION, "sample", api_name="/ask")) == ANSWER
        one.fault = Fault(kind="crash", after_tokens=3)
        trace = client.predict(QUESTION, "sample", api_name="/ask")
        assert answer(trace) == ANSWER
        assert all(draft["error"] is None for draft in trace["drafts"])
        verifier.stop()
        trace = client.predict(QUESTION, "sample", api_name="/ask")
        assert answer(trace) == ANSWER
        assert verifier.url in trace["decision"]["reason"]
        assert server.active()["server_prompts"] == 0
        verifier.start()
        trace = client.predict(QUESTION, "sample", api_name="/ask")
        assert "not verified" not in trace["decision"]["reason"]


def test_a_program_that_is_told_to_stop_frees_the_servers(
    tmp_path: Path, embedder_path: Path, models: tuple[FakeServer, FakeServer, FakeServer]
) -> None:
    """`docker stop`: what the servers do for this program ends with it, within a second."""
    with served(tmp_path, embedder_path, models) as (server, client):
        for one in models:
            one.api.pace_s = 0.2
        client.submit(QUESTION, "sample", api_name="/ask")
        assert soon(lambda: sum(one.running for one in models) >= 2, 30)
        assert server.active()["server_prompts"] >= 2
        (pid,) = _listening(server.url)
        os.kill(pid, signal.SIGTERM)
        assert soon(lambda: not any(one.running for one in models), 1.5)
        assert soon(lambda: not _answers(server.url), 10)
        assert soon(lambda: not any(one.open_connections for one in models), 5)
