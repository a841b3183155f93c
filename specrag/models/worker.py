"""One thread that runs every model of this process, shared fairly between the jobs that wait for it.

Two models that compute at once on the same cores are slower than one after the other, and the event loop of
the page must never wait for a tensor. Loading and embedding happen here as well: OpenMP gives every thread
that computes helpers of its own, and as soon as there are more of them than cores all of them sleep between
two products, which made decoding 1.6 times slower.

A job is a generator: each step is one forward pass, and after every step the job that has had the least time
goes on. A job that starts later begins level with the others, so it neither waits for them to end nor holds
them up; and whoever sends one short job after another (a file that is indexed batch by batch) is charged for
all of them.

A job gets an `Event` that is set when nobody wants its result any more; it is looked at in every layer of a
forward pass, and a job that is not computing at that moment is dropped at once.
"""

import asyncio
import atexit
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from contextlib import aclosing, suppress
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

from specrag.errors import ModelError

_log = logging.getLogger(__name__)

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, None]
Job: TypeAlias = Callable[[threading.Event, Callable[[T], None]], Steps]
"""Given its cancel event and where its results go, the steps of a job."""
_END = object()
_LEAVE_S = 10.0
"""How long the end of the process waits for a step to notice that nobody wants it."""


class Cancelled(Exception):
    """The job's result is no longer wanted."""


class Worker:
    """Runs jobs step by step. `pending` counts those that have not ended."""

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Condition()
        self._open: list[_Task] = []
        self._level = 0.0
        """Seconds that the least served job had had at the latest choice; it never falls."""
        self._charged: WeakKeyDictionary[object, float] = WeakKeyDictionary()
        """What the latest job of each asyncio task or thread has had."""
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
                task.reason = _closed()
                task.cancel.set()
            self._lock.notify()

    def leave(self) -> None:
        """Close, and wait for the step that is computing: before the process ends.

        A thread that comes back from a tensor to an interpreter that has gone ends the process with SIGABRT.
        """
        self.close()
        if self._thread is not None:
            self._thread.join(_LEAVE_S)

    async def call(self, steps: Job[T]) -> T:
        """Run a job that emits one result; cancelling the caller sets the job's event."""
        async with aclosing(self.stream(steps)) as stream:
            found = [value async for value in stream]
        if not found:
            raise _closed()
        return found[-1]

    async def stream(self, steps: Job[T]) -> AsyncGenerator[T]:
        """Run a job and yield what it emits; closing the iterator sets its event."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[object] = asyncio.Queue()

        def send(item: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(queue.put_nowait, item)

        task = _Task(steps, send, client=asyncio.current_task())
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
        found: list[T] = []

        def job(_: threading.Event, __: Callable[[T], None]) -> Steps:
            found.append(work())
            yield from ()  # it ends with its one step

        def settle(item: object) -> None:
            if result.done():
                return
            if isinstance(item, _Raised):
                result.set_exception(item.error)
            elif found:  # told at the end, when it has been charged: the next one may follow at once
                result.set_result(found[0])
            else:
                result.set_exception(_closed())

        self._enter(_Task(job, settle, client=threading.current_thread()))
        return result.result()

    def _enter(self, task: "_Task") -> None:
        with self._lock:
            if self._closed:
                raise _closed()
            task.served = max(self._level, self._charged.get(task.client, 0.0))
            self._open.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="specrag-models", daemon=True)
                self._thread.start()
                atexit.register(_leave, ref(self))
            self._lock.notify()

    def _withdraw(self, task: "_Task") -> None:
        """Nobody listens any more: drop the job, or let its running step find out."""
        task.cancel.set()
        with self._lock:
            if task in self._open and not task.computing:
                self._remove(task)

    def _remove(self, task: "_Task") -> None:
        """Under the lock: the job has ended."""
        self._open.remove(task)
        task.close()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            begin = self._clock()
            going_on = task.step()
            with self._lock:
                task.served += self._clock() - begin
                self._charged[task.client] = task.served
                task.computing = False
                if not going_on or task.cancel.is_set():
                    self._remove(task)

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
            self._level = max(self._level, task.served)
            task.computing = True
            return task


class _Task:
    """A job on its way."""

    def __init__(self, steps: Job[Any], send: Callable[[object], None], *, client: object) -> None:
        self.cancel = threading.Event()
        self.client = client
        """Who is charged: the asyncio task or thread that asked."""
        self.served = 0.0
        """Seconds of computing, counted from the level at which it came in."""
        self.computing = False
        self.reason: ModelError | None = None
        """Why it was ended from outside, for somebody who still listens."""
        self._send = send
        self._steps = steps(self.cancel, send)

    def step(self) -> bool:
        """One step; whether another one follows."""
        if self.cancel.is_set():
            return False
        try:
            next(self._steps)
        except (StopIteration, Cancelled):
            return False
        except BaseException as error:  # noqa: BLE001 - carried to the caller, where it is raised again
            self._send(_Raised(error))
            return False
        return True

    def close(self) -> None:
        """Let go of what the steps hold, and tell whoever listens that nothing follows."""
        try:
            self._steps.close()
        except Exception:  # noqa: BLE001 - the thread serves everybody and must outlive one job
            _log.exception("a job of the models could not be closed")
        self._send(_END if self.reason is None else _Raised(self.reason))


def _leave(worker: "ref[Worker]") -> None:
    there = worker()  # its thread holds it as long as it runs
    if there is not None:
        there.leave()


def _closed() -> ModelError:
    return ModelError("The models were closed before this was computed.")


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error
