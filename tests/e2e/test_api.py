"""A program asks through the same server as the page, with the same choices and under the same checks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from gradio_client import Client
from playwright.sync_api import expect

from specrag.tracing.codec import from_json
from specrag.tracing.trace import Trace
from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser
QUESTION = "Who founded Larkspur Works?"


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    made = Client(server.url, verbose=False)
    yield made
    made.close()


def _trace(told: dict[str, Any]) -> Trace:
    assert told["schema"] == "specrag.trace/1"
    return from_json(json.dumps(told))


def test_a_program_gets_the_whole_trace_and_a_visitor_can_open_it(client: Client, arrive: Arrive) -> None:
    trace = _trace(client.predict(QUESTION, "sample", api_name="/ask"))
    assert (trace.status, trace.question, trace.pipeline) == ("done", QUESTION, "speculative")
    assert len(trace.drafts) == 4
    visitor = arrive()
    visitor.open(run=trace.run_id)
    expect(visitor.cards).to_have_count(4)


def test_a_program_chooses_pipeline_and_options(client: Client) -> None:
    standard = _trace(client.predict(QUESTION, pipeline="standard", api_name="/ask"))
    assert standard.pipeline == "standard"
    assert not standard.drafts
    two = _trace(
        client.predict(
            QUESTION, drafts=2, partition="contiguous", preset="paper", focus=True, api_name="/ask"
        )
    )
    assert len(two.drafts) == 2
    assert (two.config["partition"], two.config["preset"]) == ("contiguous", "paper")
    assert two.config["focus_sentences"] == 3
