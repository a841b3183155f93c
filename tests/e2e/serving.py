"""The real server in a process of its own, and the system's Chromium: what a visitor's machine and ours would run.

Used by the browser tests and by scripts/screenshots.py, so both start the program in the same way.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace

ROOT: Final = Path(__file__).resolve().parents[2]
MAX_FILE_MB: Final = 5
NO_CHROMIUM: Final = "Chromium is missing; install it with `apt-get install chromium`"
_CHROMIUM_ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_EXPECT_MS: Final = 15_000
_START_S: Final = 180.0
_STOP_S: Final = 20.0
_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that is ready for questions."""

    url: str
    home: Path

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    @property
    def uploads(self) -> Path:
        """Where gradio keeps the files that a page sends, until the program has taken them over."""
        return self.home / "gradio"

    def trace(self, run_id: str) -> Trace:
        """What the server has kept of a run."""
        return TraceStore(self.home / "traces.db").load(run_id)

    def active(self) -> dict[str, int]:
        """How many runs and model jobs are going on."""
        told: dict[str, int] = httpx.get(f"{self.url}/health").json()["active"]
        return told


@contextmanager
def serving(home: Path, *, embedder: Path, model: Path, **settings: str) -> Iterator[Server]:
    """Start `app.py` over an empty `home`, wait until it is ready, and stop it at the end.

    `settings` are further ones by their variable (`SPECRAG_CONCURRENT_RUNS="1"`).
    """
    port = free_port()
    server = Server(url=f"http://127.0.0.1:{port}", home=home)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    environment |= {
        "SPECRAG_HOME": str(home),
        "SPECRAG_EMBEDDER": str(embedder),
        "SPECRAG_DRAFTER": str(model),
        "SPECRAG_VERIFIER": str(model),
        "SPECRAG_PORT": str(port),
        "SPECRAG_MAX_FILE_MB": str(MAX_FILE_MB),
        "GRADIO_TEMP_DIR": str(server.uploads),
        **settings,
    }
    with (
        server.log.open("wb") as log,
        subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            _wait_until_ready(server, process)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium; see `chromium_path`."""
    expect.set_options(timeout=_EXPECT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(_CHROMIUM_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def chromium_path() -> str | None:
    """Where Chromium is, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _wait_until_ready(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            health = httpx.get(f"{server.url}/health").json()
        except httpx.TransportError:
            health = {}
        if health.get("status") == "ready":
            return
        if health.get("status") == "failed":
            raise RuntimeError(f"The server could not start: {health['message']}")
        time.sleep(_POLL_S)
    raise RuntimeError(f"The server was not ready in time:\n{server.log.read_text(errors='replace')}")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
