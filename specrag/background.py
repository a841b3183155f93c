"""Work away from the caller's loop: a loop in a thread of its own, and single calls that nobody waits for.

A notebook cell runs inside a loop and cannot start another one; a coroutine handed to the loop here does not
care. The threads are daemons and begin when they are needed, so neither Ctrl-C nor the end of the process
waits for a download.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from specrag.errors import UsageError

T = TypeVar("T")
CLOSED = "This Rag is closed; make a new one."


class Background:
    """Runs coroutines and waits for them; `close` cancels what is still running, and is for good."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serving: _Serving | None = None
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of `coroutine`. Leaving early, by Ctrl-C for one, cancels it.

        Raises:
            UsageError: this was closed before.
            concurrent.futures.CancelledError: this was closed meanwhile.
        """
        running = self._enter(coroutine)
        try:
            return running.result()
        finally:
            running.cancel()

    def close(self) -> None:
        """Take no more coroutines, cancel those that run, and wait until they and the thread have ended."""
        with self._lock:
            if self._serving is not None and not self._closed:
                self._serving.end()
            self._closed = True
        if self._serving is not None:
            self._serving.join()

    def _enter(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Under the lock, so that what is taken reaches the loop before the word that it has to end."""
        with self._lock:
            if self._closed:
                coroutine.close()
                raise UsageError(CLOSED)
            if self._serving is None:
                self._serving = _Serving()
            return asyncio.run_coroutine_threadsafe(coroutine, self._serving.loop)


class _Serving:
    """A loop and the thread that runs it: both are there from the beginning, and end together."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="specrag-loop", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Cancel what runs, after all that was handed over before."""
        self.loop.call_soon_threadsafe(self._closing.set)

    def join(self) -> None:
        """Wait until the loop is closed."""
        self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._until_closing())

    async def _until_closing(self) -> None:
        await self._closing.wait()


async def detached(work: Callable[[], T]) -> T:
    """`work`, on a thread of its own; whoever stops waiting leaves it to itself.

    A loop that is closed waits for its executor, and so does the process at its end; for this thread neither.
    """
    result: Future[T] = Future()

    def do() -> None:
        result.set_running_or_notify_cancel()  # from here on a cancelled caller does not touch the result
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - carried to the caller, where it is raised again
            result.set_exception(error)
        else:
            result.set_result(value)

    threading.Thread(target=do, name="specrag-detached", daemon=True).start()
    return await asyncio.wrap_future(result)
