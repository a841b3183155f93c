"""Runs live here, on the server, and not in the page that started them.

A run is a task that records events; any number of readers follow the recording from its beginning, so a page
that reloads picks up where the run is. A run ends by itself, by Stop, by its deadline, or when nobody has
followed it for a while, since a closed page should not keep a model busy; its trace is kept in every case.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from specrag.errors import SpecragError
from specrag.pipelines.base import Pipeline, Request
from specrag.recording import Recording
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace, TraceFold, fold

_log = logging.getLogger(__name__)

REPLACED = "A new question took its place."
"""Why a run was stopped when its page asked another one."""
KEPT = 100
"""Finished runs whose event logs stay in memory; older ones are read from the store."""


class Runs:
    """The runs of this process. Everything here belongs to one event loop."""

    def __init__(self, store: TraceStore, *, deadline_s: float, abandoned_s: float = 0.0) -> None:
        """`abandoned_s` is how long a run goes on that nobody follows; 0 lets it come to its end."""
        self._store = store
        self._deadline_s = deadline_s
        self._abandoned_s = abandoned_s
        self._live: OrderedDict[str, _Run] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def active(self) -> int:
        """Runs that have not ended, those that wait for their turn among them."""
        return sum(not run.ended for run in self._live.values())

    def start(self, pipeline: Pipeline, request: Request) -> str:
        """Begin a run; it goes on whether or not anybody follows it. Returns its id."""
        self._loop = asyncio.get_running_loop()
        run = _Run()
        self._live[request.run_id] = run
        while len(self._live) > KEPT and next(iter(self._live.values())).ended:
            self._live.popitem(last=False)
        run.task = asyncio.create_task(self._run(run, pipeline, request), name=f"run-{request.run_id}")
        self._wait_for_readers(run)
        return request.run_id

    async def follow(self, run_id: str, *, every_s: float) -> AsyncGenerator[Trace]:
        """The trace every `every_s` seconds, at the clock of that moment, and once more at the end.

        Raises:
            TraceError: there is no such run.
        """
        run = self._live.get(run_id)
        if run is None or run.task is None:
            yield await asyncio.to_thread(self._store.load, run_id)
            return
        run.readers += 1
        try:
            async with aclosing(_growing(run, run.task, every_s)) as traces:
                async for trace in traces:
                    yield trace
        finally:
            run.readers -= 1
            self._wait_for_readers(run)

    def _wait_for_readers(self, run: "_Run") -> None:
        """Give a run up if nobody follows it for so long."""
        if not self._abandoned_s or run.ended or run.readers:
            return

        def give_up() -> None:
            if run.task is not None and not run.ended and not run.readers and left == run.left:
                run.stop_reason = (
                    f"Nobody followed the run for {self._abandoned_s:g} s (SPECRAG_ABANDONED_S)."
                )
                run.task.cancel()

        run.left = left = run.left + 1
        asyncio.get_running_loop().call_later(self._abandoned_s, give_up)

    async def stop(self, run_id: str, *, reason: str = "Stopped by the visitor.") -> bool:
        """Stop a run and wait until its task has ended. Returns whether there was anything to stop."""
        run = self._live.get(run_id)
        if run is None or run.ended or run.task is None:
            return False
        run.stop_reason = reason
        run.task.cancel()
        await asyncio.wait([run.task])
        return True

    def shut_down(self, timeout: float = 5.0) -> None:
        """Stop every run from another thread, so that each is kept before the process ends."""
        if self._loop is None or not self.active:
            return
        closing = asyncio.run_coroutine_threadsafe(self.close(), self._loop)
        try:
            closing.result(timeout)
        except TimeoutError:
            _log.warning("some runs did not stop in %g s and are not kept", timeout)

    async def close(self) -> None:
        """Stop every run."""
        for run_id in list(self._live):
            await self.stop(run_id, reason="The server is shutting down.")

    async def _run(self, run: "_Run", pipeline: Pipeline, request: Request) -> None:
        log = run.recording
        try:
            await log.record(pipeline, request, deadline_s=self._deadline_s)
        except asyncio.CancelledError:
            log.cancel(run.stop_reason)
        try:
            # not `to_thread`: the task that it makes may be cancelled by the loop's end before it begins
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._keep, log))
        except SpecragError:
            _log.exception("run %s could not be kept", request.run_id)
        finally:
            run.done = True

    def _keep(self, log: Recording) -> None:
        if log.complete:
            self._store.save(fold(log.events), log.events)


class _Run:
    """A recording with the task that makes it."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.done = False
        self.stop_reason = "The run was cancelled."
        self.task: asyncio.Task[None] | None = None
        self.readers = 0
        self.left = 0
        """How often the last reader has left."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come; a task that is cancelled before it began never sets `done`."""
        return self.done or (self.task is not None and self.task.done())


async def _growing(run: _Run, task: asyncio.Task[None], every_s: float) -> AsyncGenerator[Trace]:
    log, folding = run.recording, TraceFold()
    seen = 0
    while True:
        ended = run.ended
        for event in log.events[seen:]:
            folding.apply(event)
        seen = len(log.events)
        if seen:
            yield folding.trace if ended else replace(folding.trace, elapsed_ms=log.now_ms)
        if ended:
            return
        await asyncio.wait([task], timeout=every_s)
