"""A real Chroma server on loopback, which a test may kill and start again."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from specrag.retrieval.address import ChromaServer

_READY_S = 60.0


class ChromaProcess:
    """`chroma run` with a folder and a port of its own; the port stays the same over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            self.port: int = listening.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def place(
        self, *, database: str = "default_database", patience_s: float = 30.0, silence_s: float = 600.0
    ) -> ChromaServer:
        """How a store reaches this server."""
        return ChromaServer(url=self.url, database=database, patience_s=patience_s, silence_s=silence_s)

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1"]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port), "--path", str(self._folder / "data")],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        late = time.monotonic() + _READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > late:
                raise RuntimeError((self._folder / "server.log").read_text(errors="replace"))
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL: what the server had handed to the operating system stays, as it would not after a power cut."""
        self.stop(signal.SIGKILL)

    def pause(self) -> None:
        """Let it fall silent: connections are taken, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, what: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(what)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v2/heartbeat", timeout=1).is_success
        except httpx.TransportError:
            return False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
