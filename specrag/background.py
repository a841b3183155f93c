"""An event loop in a thread of its own, so that plain calls work even where a loop is running already.

A notebook cell runs inside a loop and cannot start another one; a coroutine handed to this thread does not
care. The thread is a daemon and begins with the first call.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Runs coroutines and waits for them; `close` cancels what is still running and ends the thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of `coroutine`. Leaving early, by Ctrl-C for one, cancels it."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="specrag-loop", daemon=True)
                self._thread.start()
        loop, _ = self._loop.result()
        running = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            return running.result()
        finally:
            running.cancel()

    def close(self) -> None:
        """End the thread; does nothing if it never began."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            loop, closing = self._loop.result()
            loop.call_soon_threadsafe(closing.set)
            thread.join()
            self._loop = Future()

    def _serve(self) -> None:
        asyncio.run(self._until_closed())

    async def _until_closed(self) -> None:
        closing = asyncio.Event()
        self._loop.set_result((asyncio.get_running_loop(), closing))
        await closing.wait()
