"""The events of one run as they come, and a last one for a run that is ended from outside.

A pipeline tells its own end; what it cannot tell is that it was stopped, took too long or has a bug. Whoever
runs it, the page's server, the command line or the Python API, records it here, so that every story has an
end and is kept.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from specrag.events import Event, Queued, RunCancelled, RunFailed, RunFinished
from specrag.pipelines.base import Pipeline, Request
from specrag.types import ErrorInfo

_log = logging.getLogger(__name__)


class Recording:
    """The log of one run. Its clock starts when the recording is made."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._started = time.perf_counter()

    @property
    def now_ms(self) -> float:
        """Milliseconds since the run was started, never before its last event."""
        clock = (time.perf_counter() - self._started) * 1000
        return max(clock, self.events[-1].at_ms if self.events else 0.0)

    @property
    def complete(self) -> bool:
        """Whether the last event is the end of a run."""
        return bool(self.events) and isinstance(self.events[-1], RunFinished | RunFailed | RunCancelled)

    def cancel(self, reason: str) -> None:
        """End the story here; does nothing to one that has ended or that never began."""
        self.close(RunCancelled(at_ms=self.now_ms, reason=reason))

    def close(self, event: RunCancelled | RunFailed) -> None:
        """Put the last event; a run that never told of its start has no story to end."""
        if self.events and not self.complete:
            self.events.append(event)

    async def stream(self, pipeline: Pipeline, request: Request) -> AsyncGenerator[Event]:
        """Run at the reader's pace; closing it closes the pipeline. A bug ends the run and is logged."""
        bug: str | None = None
        try:
            async with aclosing(pipeline.run(request)) as events:
                async for event in events:
                    self.events.append(event)
                    yield event
        except Exception as error:  # noqa: BLE001 - a bug must not leave a run without its end
            _log.exception("run %s failed unexpectedly", request.run_id)
            bug = type(error).__name__
        if bug is not None and self.events and not self.complete:
            message = f"The run failed unexpectedly ({bug}); the log of the program says where."
            self.close(RunFailed(at_ms=self.now_ms, error=ErrorInfo(type="internal", message=message)))
            yield self.events[-1]

    async def record(
        self,
        pipeline: Pipeline,
        request: Request,
        *,
        deadline_s: float,
        tell: Callable[[Event], None] = lambda _: None,
    ) -> None:
        """Run to the end, for at most `deadline_s` seconds; a wait for the run's turn does not count.

        `tell` hears every event as it comes.
        """
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(deadline_s)
        try:
            async with limit, aclosing(self.stream(pipeline, request)) as events:
                async for event in events:
                    tell(event)
                    if isinstance(event, Queued):
                        limit.reschedule(None if event.ahead else loop.time() + deadline_s)
        except TimeoutError:
            if not limit.expired():
                raise
            self.cancel(f"The run took longer than {deadline_s:g} s and was stopped (SPECRAG_DEADLINE_S).")
