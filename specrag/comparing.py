"""Comparisons as they happen: one question through several pipelines, one run after the other.

A comparison lives on the server as a run does: it goes on when the page is closed, any number of readers
follow it from wherever it is, and it ends by itself, by Stop, or when nobody has followed it for a while. Its
runs are ordinary runs. One comparison at a time uses the models; the next one waits until it is over.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from specrag.config import Settings
from specrag.errors import SpecragError, TraceError, UsageError
from specrag.events import Event
from specrag.fairness import Found, Wanted, find_passages, lineup, order_note, turn, warm_up
from specrag.library.visitors import VISITOR, Visitor
from specrag.pipelines.base import Pipeline, Request, Tools, check_question
from specrag.race import STOPPED, Live, Race, events_of, traces_of
from specrag.runs import Runs
from specrag.tracing.comparisons import Comparison, ComparisonStore, missing
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace
from specrag.types import PipelineName, RunStatus

_log = logging.getLogger(__name__)

RECENT = 8
"""Comparisons that a page lists."""
_BUG = "The comparison failed unexpectedly; the log of the program says where."
_INTERRUPTED = "The program ended before the comparison did; compare again."
_NOBODY = "\x00"
"""An owner that no comparison has."""
_LOOK_S = 1.0
"""How often it is counted which other runs use the models."""


class Comparisons:
    """The comparisons of this process. Everything here belongs to one event loop, that of `runs`."""

    def __init__(
        self,
        *,
        store: ComparisonStore,
        traces: TraceStore,
        runs: Runs,
        tools: Tools,
        pipeline: Callable[[PipelineName, Settings], Pipeline],
    ) -> None:
        """Put the parts together.

        Args:
            store: where comparisons are kept.
            traces: where their runs are kept.
            runs: where their runs happen.
            tools: what the pipelines work with; its settings say who sees what, and when nobody cares.
            pipeline: makes one for the settings of a run.
        """
        self._store = store
        self._traces = traces
        self._runs = runs
        self._tools = tools
        self._pipeline = pipeline
        self._shared = tools.settings.access == "shared"
        self._live: dict[str, Live] = {}
        self._track = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def expire(self, now: datetime) -> int:
        """Delete what visitors without a login have kept for their days; how many. From any thread."""
        days = timedelta(days=self._tools.settings.visitor_days)
        return self._store.expire(now - days, VISITOR)

    async def start(self, who: Visitor, wanted: Wanted, settings: Settings) -> str:
        """Begin a comparison; it goes on whether or not anybody follows it. Returns its id.

        Raises:
            UsageError: the question or the choice is none, or another comparison of theirs is under way.
        """
        self._loop = asyncio.get_running_loop()
        question = check_question(wanted.question or "", limit=settings.max_question_characters)
        names = lineup(wanted.pipelines)
        if any(live.starter == who.id for live in self._live.values()):
            raise UsageError("A comparison of yours is still under way; stop it, or wait until it is done.")
        tools = replace(self._tools, settings=settings)
        made = Comparison(
            id=uuid.uuid4().hex[:12],
            created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            question=question,
            collection=wanted.collection,
            owner=who.owner or "",
            pipelines=names,
            run_ids=tuple(uuid.uuid4().hex[:12] for _ in names),
            order_note=order_note(tools.drafter.info, tools.verifier.info),
        )
        live = self._live[made.id] = Live(made, starter=who.id, abandoned_s=settings.abandoned_s)
        try:  # it is known by now, so that a second press finds it
            live.comparison = await asyncio.to_thread(self._store.add, made)
        except BaseException:
            del self._live[made.id]
            raise
        request = Request(question=question, collection=wanted.collection, documents=wanted.documents)
        live.task = asyncio.create_task(self._compare(live, request, tools), name=f"compare-{made.id}")
        live.task.add_done_callback(partial(self._forget, live))
        live.wait_for_readers()
        return made.id

    async def follow(self, who: Visitor, identity: str, *, every_s: float) -> AsyncGenerator[Race]:
        """The race every `every_s` seconds, and once more at the end.

        Raises:
            TraceError: there is no such comparison, or it is somebody else's.
        """
        comparison = await self._readable(who, identity)
        live = self._live.get(identity)
        if live is not None:
            live.joined()
            try:
                async with aclosing(self._growing(live, every_s)) as races:
                    async for race in races:
                        yield race
            finally:
                live.left()
            comparison = live.comparison
        if comparison.status == "running":  # it has no end, so its process had one before
            comparison = replace(comparison, status="cancelled", error=_INTERRUPTED)
        traces = await asyncio.to_thread(traces_of, self._traces, comparison)
        yield Race(comparison=comparison, stage="ended", traces=traces)

    async def events(self, who: Visitor, identity: str) -> tuple[list[Event], ...]:
        """The events of its runs by column; empty where there is no run.

        Raises:
            TraceError: there is no such comparison, or it is somebody else's.
        """
        comparison = await self._readable(who, identity)
        return await asyncio.to_thread(events_of, self._traces, comparison)

    async def recent(self, who: Visitor, limit: int = RECENT) -> list[Comparison]:
        """Somebody's newest comparisons, those under way among them."""
        kept = await asyncio.to_thread(self._store.recent, self._owner(who), limit)
        return [self._live[one.id].comparison if one.id in self._live else one for one in kept]

    async def stop(self, who: Visitor, identity: str, *, reason: str = STOPPED) -> bool:
        """Stop the run that is on and leave the others out. Returns whether there was anything to stop."""
        live = self._live.get(identity)
        if live is None or not self._may_see(who, live.comparison.owner):
            return False
        await live.stop(reason)
        return True

    def give_up(self, who: Visitor, identity: str, *, reason: str) -> None:
        """The same for who cannot wait until it has stopped."""
        live = self._live.get(identity)
        if live is not None and self._may_see(who, live.comparison.owner):
            live.give_up(reason)

    async def delete(self, who: Visitor, identity: str) -> None:
        """Forget a comparison, also a damaged one, and stop it if it is under way; its runs stay.

        Raises:
            TraceError: there is no such comparison, or it is somebody else's.
        """
        await self._check(who, identity)
        await self.stop(who, identity)
        await asyncio.to_thread(self._store.delete, identity)

    def shut_down(self, timeout: float = 5.0) -> None:
        """Stop every comparison from another thread, before its runs are stopped one by one."""
        if self._loop is None or not self._live:
            return
        closing = asyncio.run_coroutine_threadsafe(self.close(), self._loop)
        try:
            closing.result(timeout)
        except TimeoutError:
            _log.warning("some comparisons did not stop in %g s", timeout)

    async def close(self) -> None:
        """Stop every comparison."""
        for live in list(self._live.values()):
            await live.stop("The server is shutting down.")

    async def _readable(self, who: Visitor, identity: str) -> Comparison:
        await self._check(who, identity)
        live = self._live.get(identity)
        return live.comparison if live else await asyncio.to_thread(self._store.load, identity)

    async def _check(self, who: Visitor, identity: str) -> None:
        """That somebody may see a comparison, read from its row: also of one that is damaged."""
        live = self._live.get(identity)
        owner = live.comparison.owner if live else await asyncio.to_thread(self._store.owner, identity)
        if not self._may_see(who, owner):
            raise TraceError(missing(identity))

    def _owner(self, who: Visitor) -> str | None:
        """Whose comparisons somebody sees; None for everybody's, as with runs."""
        return None if who.operator or self._shared else who.owner or _NOBODY

    def _may_see(self, who: Visitor, owner: str) -> bool:
        return self._owner(who) in (None, owner)

    def _forget(self, live: Live, task: asyncio.Task[None]) -> None:
        live.stage = "ended"
        self._live.pop(live.comparison.id, None)
        bug = None if task.cancelled() else task.exception()
        if bug is not None:
            _log.error("comparison %s failed unexpectedly", live.comparison.id, exc_info=bug)

    async def _compare(self, live: Live, request: Request, tools: Tools) -> None:
        status: RunStatus = "failed"
        error = _BUG
        try:
            async with self._track:
                await self._race(live, request, tools)
            status, error = "done", ""
        except asyncio.CancelledError:
            status, error = "cancelled", live.stop_reason
        except SpecragError as told:
            error = str(told)
        finally:
            live.change(status=status, error=error)
            # not `to_thread`: the task that it makes may be cancelled by the loop's end before it begins
            loop = asyncio.get_running_loop()
            await asyncio.shield(loop.run_in_executor(None, self._keep, live.comparison))

    async def _race(self, live: Live, request: Request, tools: Tools) -> None:
        async with turn(tools):  # given back before the first run, which waits for one of its own
            live.stage = "warming"
            await warm_up(tools)
            live.stage = "finding"
            found = await find_passages(tools, request)
        live.change(retrieve_ms=found.took_ms, passages=len(found.given.passages))
        live.stage = "running"
        for column in live.comparison.order:
            await self._run(live, column, found, request, tools.settings)

    async def _run(self, live: Live, column: int, found: Found, request: Request, settings: Settings) -> None:
        """One run from its beginning to its end; whoever stops the comparison stops it."""
        made = live.comparison
        asked = replace(request, run_id=made.run_ids[column], given=found.given)
        run_id = self._runs.start(self._pipeline(made.pipelines[column], settings), asked, owner=made.owner)
        live.change(begun=made.begun + 1)
        try:
            await asyncio.to_thread(self._keep, live.comparison)
            async with aclosing(self._runs.follow(run_id, every_s=_LOOK_S)) as traces:
                async for trace in traces:
                    if trace.status == "running":
                        live.change(others=max(live.comparison.others, self._runs.active - 1))
        except BaseException:
            await self._runs.stop(run_id, reason=live.stop_reason)
            raise

    def _keep(self, comparison: Comparison) -> None:
        try:
            self._store.save(comparison)
        except Exception:  # noqa: BLE001 - whatever the store does, a comparison has to end as it was
            _log.exception("comparison %s could not be kept", comparison.id)

    async def _growing(self, live: Live, every_s: float) -> AsyncGenerator[Race]:
        """Before the end: runs that are over as they ended, the one that is on as it grows."""
        seen: dict[str, Trace | None] = {}
        while live.stage != "ended":
            run_id = next((run_id for run_id in live.begun if run_id not in seen), None)
            if run_id is None:
                yield live.race(seen)
                await live.rest(every_s)
                continue
            newest: Trace | None = None
            try:
                async with aclosing(self._runs.follow(run_id, every_s=every_s)) as traces:
                    async for newest in traces:
                        yield live.race(seen | {run_id: newest})
            except TraceError:  # it was deleted while it was being compared
                newest = None
            seen[run_id] = newest
