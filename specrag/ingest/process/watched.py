"""A child process under watch: silent for so long, so much memory, and stopped whenever its caller wants.

The watch is kept from outside, because a library that crashes or loops does not ask anybody. The child is
told nothing but its limits: no key of a server, no login, no token is in its environment.
"""

import contextlib
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Literal, TypeAlias

from specrag.config import Settings
from specrag.ingest.base import Cancelled, ReadingCancelled
from specrag.ingest.process.frames import Message, receive, send

Why: TypeAlias = Literal["unstarted", "silent", "memory", "died"]

_log = logging.getLogger(__name__)
_START_S = 60.0
"""Longest start of a child, on a machine with better things to do."""
_GLANCE_S = 0.05
_GRACE_S = 1.5
_MEGABYTE = 1_000_000
_BYTES_PER_CHARACTER = 8
_KNOWN = ("max_", "read_", "ocr")
"""Beginnings of the settings that a child needs."""
_ENVIRONMENT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")
_ENVIRONMENT_BEGINNINGS = ("LC_", "DYLD_", "COVERAGE_")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ChildStopped(Exception):
    """A child ended, or was ended, before it had answered."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why = why


class WatchedChild:
    """One child process; for one caller at a time."""

    def __init__(self, module: str, settings: Settings) -> None:
        """Start it; that it has started shows with the first answer.

        Args:
            module: what `python -m` runs; it speaks as `specrag.ingest.process.child` does.
            settings: the limits.
        """
        self._settings = settings
        self._answers: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._last_words = ""
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the parent
        )
        self._started = False
        self._listeners = [
            threading.Thread(target=listen, name="specrag-reading", daemon=True)
            for listen in (self._hear, self._overhear)
        ]
        for listener in self._listeners:
            listener.start()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    @property
    def memory(self) -> int:
        """Bytes of memory that it takes now; 0 where that cannot be told."""
        try:
            pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):  # no Linux, or just gone
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def ask(self, request: Message, cancelled: Cancelled) -> Generator[Message, None, None]:
        """The answers to a request: any number about pages, and a last one. Left early, the child is ended.

        Raises:
            ChildStopped: it was silent for too long, took too much memory, or died.
            ReadingCancelled: `cancelled` turned true.
        """
        finished = False
        try:
            if not self._started:
                self._start(cancelled)
            self._send(request)
            while not finished:
                answer = self._next(time.monotonic() + self._settings.read_timeout_s, cancelled)
                finished = "page" not in answer
                yield answer
        finally:
            if not finished or self.memory > self._allowed // 2:
                self.end()  # what it keeps of one file must not count against the next

    def leave(self) -> None:
        """Let it end by itself, which it does when it has nothing to do, and see to it."""
        self._hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self.end()

    def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        for listener in self._listeners:
            listener.join(_GLANCE_S)
        self._hang_up()

    def _hang_up(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    @property
    def _allowed(self) -> int:
        return self._settings.read_memory_mb * _MEGABYTE

    def _start(self, cancelled: Cancelled) -> None:
        known = {name for name in Settings.model_fields if name.startswith(_KNOWN)}
        try:
            self._send({"settings": self._settings.model_dump(include=known)})
            self._next(time.monotonic() + _START_S, cancelled)
        except ChildStopped as stopped:
            raise ChildStopped("unstarted") from stopped
        self._started = True

    def _send(self, message: Message) -> None:
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, message)
        except OSError as error:
            raise self._stopped("died") from error

    def _next(self, deadline: float, cancelled: Cancelled) -> Message:
        while True:
            if cancelled():
                raise ReadingCancelled
            if self.memory > self._allowed:
                raise self._stopped("memory")
            try:
                answer = self._answers.get(timeout=_GLANCE_S)
            except queue.Empty:
                if time.monotonic() > deadline:
                    raise self._stopped("silent") from None
                continue
            if answer is None:
                raise self._stopped("died")
            return answer

    def _stopped(self, why: Why) -> ChildStopped:
        self.end()
        _log.warning(
            "A reading process was stopped (%s, exit status %s): %s",
            why,
            self._process.returncode,
            self._last_words or "it left no message",
        )
        return ChildStopped(why)

    def _hear(self) -> None:
        assert self._process.stdout is not None
        limit = self._settings.max_characters * _BYTES_PER_CHARACTER + 100 * _MEGABYTE
        with self._process.stdout as stream:
            try:
                while (answer := receive(stream, limit)) is not None:
                    self._answers.put(answer)
            except (ValueError, TypeError):
                _log.warning("A reading process sent what is no message.")
        self._answers.put(None)

    def _overhear(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            for line in _lines(stream):
                self._last_words = line


def _lines(stream: IO[bytes]) -> Iterator[str]:
    """Lines that are not empty; an endless one comes in pieces."""
    while line := stream.readline(2000):
        if words := line.decode("utf-8", "replace").strip():
            yield words


def _environment() -> dict[str, str]:
    """What a program needs to run, and nothing that is secret; the numeric libraries keep to one thread."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _ENVIRONMENT or name.startswith(_ENVIRONMENT_BEGINNINGS)
    }
    paths = os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)
    return kept | dict.fromkeys(_ONE_THREAD, "1") | {"PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"}
