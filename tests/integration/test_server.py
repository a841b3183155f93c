"""The served program as a container runs it: it says how it is, and it stops in order when it is told to."""

import os
import signal
import time
from pathlib import Path

import httpx
import pytest
from gradio_client import Client

from specrag.tracing.store import TraceStore
from tests.e2e.serving import serving

pytestmark = pytest.mark.integration


def test_a_signal_stops_the_runs_keeps_their_traces_and_ends_the_process(
    tmp_path: Path, embedder_path: Path, model_path: Path
) -> None:
    """`docker stop` sends SIGTERM and kills ten seconds later; a run in flight must be kept by then."""
    with serving(tmp_path, embedder=embedder_path, model=model_path) as server:
        client = Client(server.url, verbose=False)
        client.submit("How much energy does the Larkspur 3 battery hold?", "sample", api_name="/ask")
        deadline = time.monotonic() + 30
        while server.active()["model_jobs"] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.active()["runs"] == 1
        (pid,) = _listening(server.url)
        os.kill(pid, signal.SIGTERM)
        began = time.monotonic()
        while _answers(server.url) and time.monotonic() - began < 10:
            time.sleep(0.05)
        assert time.monotonic() - began < 10
    (kept,) = TraceStore(tmp_path / "traces.db").recent()
    assert kept.status == "cancelled"
    assert "Traceback" not in server.log.read_text(errors="replace")


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=1).is_success
    except httpx.TransportError:
        return False


def _listening(url: str) -> list[int]:
    """The process that serves `url`, found by its environment."""
    port = url.rsplit(":", 1)[1].strip("/")
    found = []
    for folder in Path("/proc").iterdir():
        try:
            environment = (folder / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if f"SPECRAG_PORT={port}\0" in environment and "app.py" in (folder / "cmdline").read_text():
            found.append(int(folder.name))
    return found
