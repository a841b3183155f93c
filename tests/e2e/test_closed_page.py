"""A page that is closed in the middle of a run: nobody follows it any more, and the models are free again."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.e2e.serving import Server, serving
from tests.e2e.visitor import Visitor

pytestmark = pytest.mark.browser
ABANDONED_S = 0.5
NOTICED_S = 2.0
"""A closed connection is seen at the page's next update; then the models' running step ends."""


@pytest.fixture
def patient_server(
    browser: Browser, tmp_path: Path, embedder_path: Path, model_path: Path
) -> Iterator[Server]:
    """Runs that take long enough to walk away from, on a server that waits half a second for somebody."""
    settings = {
        "SPECRAG_ABANDONED_S": str(ABANDONED_S),
        "SPECRAG_DRAFTS": "16",
        "SPECRAG_RETRIEVE": "16",
        "SPECRAG_PASSAGES_PER_DRAFT": "4",
    }
    with serving(tmp_path, embedder=embedder_path, model=model_path, **settings) as started:
        yield started


def test_a_closed_page_frees_the_models_and_the_run_is_kept(browser: Browser, patient_server: Server) -> None:
    server = patient_server
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        visitor.ask("Who founded Larkspur Works?")
        visitor.wait_for_writing()
        run_id = visitor.run_id
        assert server.active()["runs"] == 1
    closed = time.monotonic()
    while server.active()["runs"] and time.monotonic() < closed + ABANDONED_S + NOTICED_S:
        time.sleep(0.05)
    assert server.active() == {"runs": 0, "model_jobs": 0, "server_prompts": 0}
    trace = server.trace(run_id)
    assert trace.status == "cancelled"
    assert trace.error is not None
    assert "SPECRAG_ABANDONED_S" in trace.error.message
