"""One thread that runs every model of this process, shared fairly between the jobs that wait for it.

Two models that compute at once on the same cores are slower than one after the other, and the event loop of
the page must never wait for a tensor. Loading and embedding happen here as well: OpenMP gives every thread
that computes helpers of its own, and as soon as there are more of them than cores all of them sleep between
two products, which made decoding 1.6 times slower.

A job is a generator: each step is one forward pass, and after every step the job that has had the least time
goes on. A job that starts later begins with what the least served one has had, so it neither waits for the
others to end nor holds them up.

A job gets an `Event` that is set when nobody wants its result any more; it is looked at in every layer of a
forward pass, and a job that is not computing at that moment is dropped at once.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from specrag.errors import ModelError

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, None]
Job: TypeAlias = Callable[[threading.Event, Callable[[T], None]], Steps]
"""Given its cancel event and where its results go, the steps of a job."""
_END = object()


class Cancelled(Exception):
    """The job's result is no longer wanted."""


class Worker:
    """Runs jobs step by step. `pending` counts those that have not ended."""

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Condition()
        self._open: list[_Task] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def pending(self) -> int:
        """Jobs that run or wait; 0 means that the models are free."""
        return len(self._open)

    def close(self) -> None:
        """Take no more jobs and drop those that wait."""
        with self._lock:
            self._closed = True
            for task in self._open:
                task.cancel.set()
            self._lock.notify()

    async def call(self, steps: Job[T]) -> T:
        """Run a job that emits one result; cancelling the caller sets the job's event."""
        stream = self.stream(steps)
        try:
            async for value in stream:
                return value
        finally:
            await stream.aclose()
        raise Cancelled

    async def stream(self, steps: Job[T]) -> AsyncGenerator[T]:
        """Run a job and yield what it emits; closing the iterator sets its event."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[object] = asyncio.Queue()

        def send(item: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(queue.put_nowait, item)

        task = _Task(steps, send)
        self._enter(task)
        try:
            while (item := await queue.get()) is not _END:
                if isinstance(item, _Raised):
                    raise item.error
                yield item  # type: ignore[misc]  # the queue holds T, _Raised and _END only
        finally:
            self._withdraw(task)

    def run(self, work: Callable[[], T]) -> T:
        """Do `work` on the thread, as a job of one step, and wait for it; not for callers on an event loop.

        Raises:
            ModelError: the worker was closed before its turn came.
        """
        if threading.current_thread() is self._thread:
            return work()
        result: Future[T] = Future()

        def job(_: threading.Event, emit: Callable[[T], None]) -> Steps:
            emit(work())
            yield

        def settle(item: object) -> None:
            if result.done():
                return
            if isinstance(item, _Raised):
                result.set_exception(item.error)
            elif item is _END:
                result.set_exception(ModelError("The models were closed before this was computed."))
            else:
                result.set_result(item)  # type: ignore[arg-type]  # what `work` returned

        self._enter(_Task(job, settle))
        return result.result()

    def _enter(self, task: "_Task") -> None:
        with self._lock:
            if self._closed:
                raise Cancelled
            task.served = min((other.served for other in self._open), default=0.0)
            self._open.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="specrag-models", daemon=True)
                self._thread.start()
            self._lock.notify()

    def _withdraw(self, task: "_Task") -> None:
        """Nobody listens any more: drop the job, or let its running step find out."""
        task.cancel.set()
        with self._lock:
            if task in self._open and not task.computing:
                self._open.remove(task)
                task.close()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            begin = self._clock()
            going_on = task.step()
            task.served += self._clock() - begin
            with self._lock:
                task.computing = False
                if not going_on or task.cancel.is_set():
                    self._open.remove(task)
                    task.close()

    def _next(self) -> "_Task | None":
        """The job that has had the least time; the longest waiting one among equals."""
        with self._lock:
            self._lock.wait_for(lambda: self._open or self._closed)
            if not self._open:
                return None
            task = min(self._open, key=lambda one: one.served)
            # among equally served jobs the one that went last must not go again
            self._open.remove(task)
            self._open.append(task)
            task.computing = True
            return task


class _Task:
    """A job on its way."""

    def __init__(self, steps: Job[Any], send: Callable[[object], None]) -> None:
        self.cancel = threading.Event()
        self.served = 0.0
        """Seconds of computing that it has had, counted from what the least served one had when it came."""
        self.computing = False
        self._send = send
        self._steps = steps(self.cancel, send)

    def step(self) -> bool:
        """One step; whether another one follows."""
        if self.cancel.is_set():
            return False
        try:
            next(self._steps)
        except (StopIteration, Cancelled):
            self._send(_END)
            return False
        except BaseException as error:  # noqa: BLE001 - carried to the caller, where it is raised again
            self._send(_Raised(error))
            return False
        return True

    def close(self) -> None:
        """Let go of what the steps hold."""
        self._steps.close()
        self._send(_END)


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error
