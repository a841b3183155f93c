"""One vLLM server as a process: started, waited for, asked how busy it is, stopped, or killed like a crash.

The key goes through the environment, never onto the command line, where every user of the machine can read.
"""

import http.client
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from specrag.errors import ModelError, ServerUnreachable
from specrag.vllm import group
from specrag.vllm.machine import ensure_free
from specrag.vllm.plan import ServerPlan

READY_S = 900.0
"""Longest wait for a start; a large model may be read from a slow disk."""
STOP_S = 20.0
KILL_S = 10.0
ASK_S = 2.0
LOOK_EVERY_S = 0.25
TAIL_LINES = 15
BUSY = re.compile(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)
"""Requests that the server works on or keeps waiting, one line for each engine."""


class VllmServer:
    """A server of a plan. It may be started again after it was stopped or killed, at the same address."""

    def __init__(self, plan: ServerPlan, *, python: Path, log: Path, key: str | None = None) -> None:
        self.plan = plan
        self.log = log
        self._python = python
        self._key = key
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def url(self) -> str:
        """The base URL, ending in /v1."""
        return self.plan.url

    @property
    def model(self) -> str:
        """The name that requests must give."""
        return self.plan.model.name

    @property
    def pid(self) -> int | None:
        """The process that listens, while there is one."""
        return self._process.pid if self.alive and self._process is not None else None

    @property
    def alive(self) -> bool:
        """Whether the process runs; it may not be ready yet."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process and return at once.

        Raises:
            UsageError: something else listens on the port, and would be taken for this server, or the host
                is not this machine.
            ModelError: the interpreter cannot be run.
        """
        if self.alive:
            return
        ensure_free(self.plan.host, self.plan.port)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own command line, without a shell
                    self.plan.command(str(self._python)),
                    cwd=self.log.parent,  # away from any folder whose files Python could import
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise ModelError(f"{self._python} cannot be run ({error.strerror}).") from error

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until the server answers.

        Raises:
            ModelError: its process ended; the message brings the last lines of its log.
            ServerUnreachable: it did not answer in time.
        """
        deadline = time.monotonic() + timeout_s
        while not self.check():
            if time.monotonic() > deadline:
                raise ServerUnreachable(
                    f"The {self.plan.role}'s server did not answer within {timeout_s:.0f} s; see {self.log}."
                )
            self.pause(LOOK_EVERY_S)

    def check(self) -> bool:
        """Whether the server is ready.

        Raises:
            ModelError: its process ended; the message brings the last lines of its log.
        """
        self.ensure_alive()
        return self._get("/health") is not None

    def ensure_alive(self) -> None:
        """Make sure that the process runs.

        Raises:
            ModelError: it ended; the message brings the last lines of its log.
        """
        if not self.alive:
            raise ModelError(
                f"The {self.plan.role}'s server at {self.url} {self._end()}; the end of {self.log}:\n"
                f"{self.tail()}"
            )

    def running(self) -> int:
        """Requests that it works on or keeps waiting.

        Raises:
            ServerUnreachable: it does not answer.
        """
        told = self._get("/metrics")
        if told is None:
            raise ServerUnreachable(f"The {self.plan.role}'s server at {self.url} does not answer.")
        return round(sum(float(count) for count in BUSY.findall(told)))

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines that it wrote since its start."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._log_start)
                written = log.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join([line for line in written.splitlines() if line.strip()][-lines:])

    def ask_to_stop(self) -> None:
        """Begin an orderly stop, and return at once."""
        if self.alive and self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self, within_s: float = STOP_S) -> None:
        """Stop in order, with all workers; whoever is still there after `within_s` seconds is killed."""
        if self._process is None:
            return
        self.ask_to_stop()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also when a second Ctrl-C ends the wait
            self.kill()

    def kill(self) -> None:
        """End it as a crash does: no request is finished, every connection breaks.

        Raises:
            ModelError: a process cannot be ended.
        """
        if self._process is None:
            return
        gone = group.end(self._process.pid, within_s=KILL_S)
        self._process.wait(KILL_S)
        if not gone:
            raise ModelError(f"The {self.plan.role}'s server (process {self._process.pid}) cannot be ended.")

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than the process lives."""
        if self._process is None:
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def _end(self) -> str:
        if self._process is None:
            return "was never started"
        code = self._process.returncode
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def _environment(self) -> dict[str, str]:
        """Ours without keys, which may be another server's, and without a path to our packages."""
        left_out = ("SPECRAG_", "VLLM_API_KEY", "PYTHONPATH", "PYTHONHOME")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        kept |= {variable.name: variable.value for variable in self.plan.environment}
        kept |= {"PYTHONUNBUFFERED": "1"}
        return kept | ({"VLLM_API_KEY": self._key} if self._key else {})

    def _get(self, path: str) -> str | None:
        """The text at `path`, or None. These paths want no key."""
        connection = http.client.HTTPConnection(self.plan.reachable_host, self.plan.port, timeout=ASK_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return text if answer.status == http.HTTPStatus.OK else None
