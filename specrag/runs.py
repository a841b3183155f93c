"""Runs live here, on the server, and not in the page that started them.

A run is a task that records events; any number of readers follow the recording from its beginning, so a page
that reloads picks up where the run is. A run ends by itself, by Stop, by its deadline, or when nobody has
followed it for a while, since a closed page should not keep a model busy; its trace is kept in every case.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace

from specrag.errors import TraceError
from specrag.events import Event
from specrag.pipelines.base import Pipeline, Request
from specrag.recording import Recording
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace, TraceFold, fold

_log = logging.getLogger(__name__)

DELETED = "It was deleted while it was going on."
"""Why a run was stopped that somebody deleted."""
REPLACED = "A new question took its place."
"""Why a run was stopped when its page asked another one."""
UNKEPT = 20
"""Finished runs that could not be kept and stay in memory; every other one is read from the store."""


class Runs:
    """The runs of this process. Everything here belongs to one event loop."""

    def __init__(
        self,
        store: TraceStore,
        *,
        deadline_s: float,
        abandoned_s: float = 0.0,
        kept: Callable[[Trace, Sequence[Event]], None] | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            store: where runs are kept.
            deadline_s: a run that takes longer is stopped.
            abandoned_s: how long a run goes on that nobody follows; 0 lets it come to its end.
            kept: hears of every run when it has been kept, in a thread of its own; must not raise.
        """
        self._store = store
        self._kept = kept
        self._deadline_s = deadline_s
        self._abandoned_s = abandoned_s
        self._live: OrderedDict[str, _Run] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None
        # of its own: threads that wait for runs to stop must not take those that keep them
        self._keepers = ThreadPoolExecutor(2, thread_name_prefix="specrag-keep")

    @property
    def active(self) -> int:
        """Runs that have not ended, those that wait for their turn among them."""
        return sum(not run.ended for run in self._live.values())

    def start(self, pipeline: Pipeline, request: Request, *, owner: str = "") -> str:
        """Begin a run; it goes on whether or not anybody follows it. Returns its id.

        `owner` is whose run it is; an empty one makes it the operator's.
        """
        self._loop = asyncio.get_running_loop()
        self._forget()
        run = _Run(owner)
        self._live[request.run_id] = run
        run.task = asyncio.create_task(self._run(run, pipeline, request), name=f"run-{request.run_id}")
        self._wait_for_readers(run)
        return request.run_id

    def owner(self, run_id: str) -> str | None:
        """Whose a run is that goes on here; None if no such run does."""
        run = self._live.get(run_id)
        return None if run is None else run.owner

    def live(self, owner: str | None) -> list[str]:
        """Ids of the runs of an owner (None: of everybody) that have not ended, oldest first."""
        return [
            run_id for run_id, run in list(self._live.items()) if not run.ended and owner in (None, run.owner)
        ]

    def recorded(self, run_id: str) -> list[Event] | None:
        """The events so far of a run that goes on here; None if no such run does. From any thread."""
        run = self._live.get(run_id)
        return None if run is None else list(run.recording.events)

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
        task = self.give_up(run_id, reason=reason)
        if task is None:
            return False
        await asyncio.wait([task])
        return True

    def give_up(self, run_id: str, *, reason: str) -> "asyncio.Task[None] | None":
        """The same without the wait. Returns the task that comes to its end; None if nothing goes on."""
        run = self._live.get(run_id)
        if run is None or run.ended or run.task is None:
            return None
        run.stop_reason = reason
        if not run.keeping:  # it is over, and who would cancel it now left the store at work behind its back
            run.task.cancel()
        return run.task

    def drop(self, run_id: str, *, timeout: float = 30.0) -> bool:
        """Stop a run and let go of it, from another thread; whether it was nowhere but here, not kept.

        Raises:
            TraceError: the run has not stopped within `timeout` seconds.
        """
        if self._loop is None or self.owner(run_id) is None:
            return False
        stopping = asyncio.run_coroutine_threadsafe(self._drop(run_id), self._loop)
        try:
            return stopping.result(timeout)
        except TimeoutError:
            raise TraceError(
                f"The run {run_id} does not stop; it is still at work, so try again in a moment."
            ) from None

    async def _drop(self, run_id: str) -> bool:
        await self.stop(run_id, reason=DELETED)
        return self._live.pop(run_id, None) is not None

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
        run.keeping = True
        try:
            # not `to_thread`: the task that it makes may be cancelled by the loop's end before it begins
            keeping = asyncio.get_running_loop().run_in_executor(self._keepers, self._keep, run)
            kept = await asyncio.shield(keeping)
        except Exception:  # noqa: BLE001 - whatever the store does, a run that is over has to end as it was
            _log.exception("The run %s could not be kept, and is lost when the program ends.", request.run_id)
        else:
            if kept:
                self._live.pop(request.run_id, None)
        finally:
            run.done = True
            self._forget()

    def _keep(self, run: "_Run") -> bool:
        """Put a run into the store; False for one that never told of its start."""
        log = run.recording
        if not log.complete:
            return False
        trace = fold(log.events)
        self._store.save(trace, log.events, owner=run.owner)
        self._tell(trace, log.events)
        return True

    def _tell(self, trace: Trace, events: Sequence[Event]) -> None:
        if self._kept is None:
            return
        try:
            self._kept(trace, events)
        except Exception:  # noqa: BLE001 - the run is kept, whatever becomes of it elsewhere
            _log.exception("The run %s is kept, but who hears of kept runs failed.", trace.run_id)

    def _forget(self) -> None:
        """Let go of the oldest runs that have ended and are kept nowhere."""
        ended = [run_id for run_id, run in self._live.items() if run.ended]
        for run_id in ended[:-UNKEPT]:
            del self._live[run_id]


class _Run:
    """A recording with the task that makes it."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.recording = Recording()
        self.done = False
        self.keeping = False
        """Whether nothing more will be recorded, and the store is at work."""
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
