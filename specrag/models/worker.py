"""One thread that runs every model of this process, one job at a time.

Two models that compute at once on the same cores are slower than one after the other, and the event loop of
the page must never wait for a tensor. A job gets an `Event` that is set when nobody wants its result any
more; it looks at it at every layer of a forward pass.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")
_END = object()


class Cancelled(Exception):
    """The job's result is no longer wanted."""


class Worker:
    """Runs jobs in their order of arrival. `pending` counts the running one and those that wait."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="specrag-models")
        self._lock = threading.Lock()
        self._pending = 0

    @property
    def pending(self) -> int:
        """Jobs that run or wait; 0 means that the models are free."""
        return self._pending

    def close(self) -> None:
        """Take no more jobs."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def call(self, job: Callable[[threading.Event], T]) -> T:
        """Run `job` and return its result; cancelling the caller sets the job's event."""
        stream: AsyncGenerator[T] = self.stream(lambda cancel, emit: emit(job(cancel)))
        async with aclosing(stream) as values:
            async for value in values:
                return value
        raise Cancelled

    async def stream(self, job: Callable[[threading.Event, Callable[[T], None]], None]) -> AsyncGenerator[T]:
        """Run `job(cancel, emit)` and yield what it emits; closing the iterator sets the event."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[object] = asyncio.Queue()
        cancel = threading.Event()

        def send(item: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def run() -> None:
            try:
                if not cancel.is_set():
                    job(cancel, send)
                send(_END)
            except Cancelled:
                send(_END)
            except BaseException as error:  # noqa: BLE001 - carried to the caller, where it is raised again
                send(_Raised(error))
            finally:
                with self._lock:
                    self._pending -= 1

        with self._lock:
            self._pending += 1
        self._pool.submit(run)
        try:
            while (item := await queue.get()) is not _END:
                if isinstance(item, _Raised):
                    raise item.error
                yield item  # type: ignore[misc]  # the queue holds T, _Raised and _END only
        finally:
            cancel.set()


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error
