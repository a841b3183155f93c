"""A process that listens as vLLM does, in a tenth of a second: run as `--python` of `specrag vllm`.

It answers /health and /metrics, starts a worker as vLLM starts its engine, and says what it was told in a file.
`TOY_FAILS=1`, or a file `toy-fails` where it runs, makes it complain and end before it listens.
"""

import json
import os
import stat
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the toy runs as a script, away from our packages
    from specrag.vllm.server import VllmServer

METRICS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="toy"} 2.0
vllm:num_requests_waiting{engine="0",model_name="toy"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="toy",reason="capacity"} 1.0
"""


def make_toy(folder: Path) -> Path:
    """An executable that takes the arguments of a Python interpreter."""
    path = folder / "toy-python"
    path.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n', encoding="utf-8"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def known(server: "VllmServer") -> dict[str, Any]:
    """What the toy of a server wrote down."""
    loaded: dict[str, Any] = json.loads((server.log.parent / f"toy-{server.plan.port}.json").read_text())
    return loaded


def is_running(pid: int) -> bool:
    """Whether it runs; one that only waits to be collected by its parent does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = {"/health": "", "/metrics": METRICS}.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""


def main(words: list[str]) -> None:
    told = dict(pairwise(words))
    if os.environ.get("TOY_FAILS") or Path("toy-fails").exists():
        sys.stderr.write("loading weights\nValueError: this toy does not know the architecture\n")
        sys.exit(3)
    port = int(told["--port"])
    server = ThreadingHTTPServer((told["--host"], port), _Handler)
    worker = subprocess.Popen(["sleep", "600"])
    known = {"words": words, "environment": dict(os.environ), "pids": [os.getpid(), worker.pid]}
    Path(f"toy-{port}.json").write_text(json.dumps(known), encoding="utf-8")
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
