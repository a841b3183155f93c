"""A program asks through the same server as the page."""

import json

import pytest
from gradio_client import Client

from specrag.tracing.codec import from_json
from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser


def test_a_program_gets_the_whole_trace_and_a_visitor_can_open_it(server: Server, arrive: Arrive) -> None:
    question = "Who founded Larkspur Works?"
    client = Client(server.url, verbose=False)
    try:
        told = client.predict(question, "sample", api_name="/ask")
    finally:
        client.close()
    assert told["schema"] == "specrag.trace/1"
    trace = from_json(json.dumps(told))
    assert (trace.status, trace.question) == ("done", question)
    assert len(trace.drafts) == 4
    visitor = arrive()
    visitor.open(run=trace.run_id)
    assert visitor.cards.count() == 4
