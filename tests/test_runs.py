"""Runs on the server: followed from anywhere, stopped at once, kept in every case."""

import asyncio
import errno
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.errors import TraceError
from specrag.events import Event, RunStarted
from specrag.library.visitors import Visitor
from specrag.models.base import Conversation, Line, Output
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Request
from specrag.pipelines.speculative import SpeculativePipeline
from specrag.recording import Recording
from specrag.retrieval.chroma import ChromaStore
from specrag.runs import UNKEPT, Runs
from specrag.tracing.history import History
from specrag.tracing.store import RunFilter, TraceStore
from specrag.tracing.trace import Trace, fold
from specrag.turnstile import Turnstile
from tests.test_speculative import QUESTION, extract
from tests.toys import filled_store, pipeline, tools


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(TraceStore(tmp_path / "traces.db"), deadline_s=20)


def request(run_id: str = "r1") -> Request:
    return Request(question=QUESTION, collection="documents", run_id=run_id)


class Endless:
    """A pipeline that never ends by itself, and notices when it is closed."""

    name = "speculative"

    def __init__(self, inner: SpeculativePipeline) -> None:
        self._inner = inner
        self.closed = asyncio.Event()

    async def run(self, asked: Request) -> AsyncGenerator[object]:
        try:
            async with aclosing(self._inner.run(asked)) as events:
                yield await anext(events)
                await asyncio.Event().wait()
        finally:
            self.closed.set()


async def last(runs: Runs, run_id: str) -> Trace:
    trace: Trace | None = None
    async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        async for newest in traces:
            trace = newest
    assert trace is not None
    return trace


async def test_two_readers_see_the_same_end_and_the_store_keeps_it(runs: Runs, store: ChromaStore) -> None:
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    first, second = await asyncio.gather(last(runs, run_id), last(runs, run_id))
    assert first == second
    assert first.status == "done"
    assert runs._store.load(run_id) == first
    assert runs.active == 0


async def test_a_run_goes_on_when_its_reader_leaves(runs: Runs, store: ChromaStore) -> None:
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        await anext(traces)
    assert (await last(runs, run_id)).status == "done"


async def test_a_run_that_is_no_longer_in_memory_is_read_from_the_store(
    runs: Runs, store: ChromaStore, tmp_path: Path
) -> None:
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    kept = await last(runs, run_id)
    restarted = Runs(TraceStore(tmp_path / "traces.db"), deadline_s=20)
    assert await last(restarted, run_id) == kept


async def test_an_unknown_run_is_one_sentence(runs: Runs) -> None:
    with pytest.raises(TraceError, match="There is no run “nothing”"):
        await last(runs, "nothing")


async def test_stop_closes_the_pipeline_and_keeps_the_trace(runs: Runs, store: ChromaStore) -> None:
    endless = Endless(pipeline(store, ScriptedModel(extract)))
    run_id = runs.start(endless, request())  # type: ignore[arg-type]  # events of any kind
    async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        await anext(traces)
    assert await runs.stop(run_id)
    assert endless.closed.is_set()
    assert runs.active == 0
    trace = await last(runs, run_id)
    assert trace.status == "cancelled"
    assert trace.error is not None
    assert trace.error.message == "Stopped by the visitor."
    assert runs._store.load(run_id).status == "cancelled"
    assert not await runs.stop(run_id)


async def test_a_deadline_ends_a_run(tmp_path: Path, store: ChromaStore) -> None:
    runs = Runs(TraceStore(tmp_path / "traces.db"), deadline_s=0.05)
    endless = Endless(pipeline(store, ScriptedModel(extract)))
    trace = await last(runs, runs.start(endless, request()))  # type: ignore[arg-type]  # events of any kind
    assert trace.status == "cancelled"
    assert trace.error is not None
    assert "SPECRAG_DEADLINE_S" in trace.error.message


async def test_the_clock_of_a_live_run_moves_between_events(runs: Runs, store: ChromaStore) -> None:
    endless = Endless(pipeline(store, ScriptedModel(extract)))
    run_id = runs.start(endless, request())  # type: ignore[arg-type]  # events of any kind
    times: list[float] = []
    async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        async for trace in traces:
            times.append(trace.elapsed_ms)
            if len(times) == 3:
                break
    await runs.close()
    assert times[0] < times[1] < times[2]


class Broken:
    """A pipeline with a bug."""

    name = "speculative"

    async def run(self, asked: Request) -> AsyncGenerator[object]:
        yield RunStarted(
            at_ms=0, run_id=asked.run_id, pipeline="speculative", question=asked.question, created_at="2026"
        )
        raise ZeroDivisionError


async def test_a_bug_ends_the_run_and_its_readers(runs: Runs) -> None:
    """A reader that waits for an event that never comes would wait for ever."""
    trace = await last(runs, runs.start(Broken(), request()))  # type: ignore[arg-type]  # events of any kind
    assert trace.status == "failed"
    assert trace.error is not None
    assert "unexpectedly" in trace.error.message


async def test_a_bug_is_the_last_event_for_whoever_reads_the_stream(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The Python API and the command line used to lose the run; the log has the place of the bug."""
    log = Recording()
    async with aclosing(log.stream(Broken(), request())) as events:  # type: ignore[arg-type]  # events of any kind
        seen = [event async for event in events]
    assert seen == log.events
    assert log.complete
    trace = fold(seen)
    assert (trace.status, trace.error and trace.error.type) == ("failed", "internal")
    assert trace.error is not None
    assert "ZeroDivisionError" in trace.error.message
    assert "ZeroDivisionError" in caplog.text


async def test_a_run_that_is_stopped_before_it_began_leaves_nobody_waiting(
    runs: Runs, store: ChromaStore
) -> None:
    """Its task never runs a line; a reader used to look at it again and again without end."""
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    assert await runs.stop(run_id)
    async with asyncio.timeout(5), aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        assert [trace async for trace in traces] == []
    assert runs.active == 0


class Mute:
    """A pipeline whose bug comes before its first event."""

    name = "speculative"

    async def run(self, asked: Request) -> AsyncGenerator[object]:
        yield 1 // len(asked.question[:0])


async def test_a_bug_before_the_first_event_leaves_nobody_waiting(runs: Runs) -> None:
    run_id = runs.start(Mute(), request())  # type: ignore[arg-type]  # events of any kind
    async with asyncio.timeout(5), aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        assert [trace async for trace in traces] == []
    assert runs.active == 0


class Held(ScriptedModel):
    """Begins to write when it is let go."""

    def __init__(self) -> None:
        super().__init__(extract)
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        self.asked.set()
        await self.go.wait()
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for output in outputs:
                yield output


class InLine:
    """Three runs of which one may run at a time: the first holds the model, the others wait in line."""

    def __init__(self, runs: Runs, store: ChromaStore) -> None:
        self.runs = runs
        self.model = Held()
        self.turnstile = Turnstile(1)
        self._store = store

    async def form(self) -> None:
        """Start all three and wait until each knows its place."""
        made = SpeculativePipeline(tools(self._store, self.model, turnstile=self.turnstile))
        for number in (1, 2, 3):
            self.runs.start(made, request(f"r{number}"))
        async with asyncio.timeout(20):
            await self.model.asked.wait()
            for number in (2, 3):
                await self.trace(f"r{number}", ahead=number - 1)

    async def trace(self, run_id: str, *, ahead: int) -> Trace:
        """The first trace of a run that waits behind so many."""
        async with aclosing(self.runs.follow(run_id, every_s=0.01)) as traces:
            async for trace in traces:
                if trace.ahead == ahead and trace.spans[-1].name == "queue":
                    return trace
        raise AssertionError(f"{run_id} ended and never waited behind {ahead}")


@pytest.fixture
async def line(runs: Runs, store: ChromaStore) -> AsyncGenerator[InLine]:
    made = InLine(runs, store)
    await made.form()
    yield made
    await runs.close()


async def test_a_waiting_run_is_active_and_its_readers_see_how_many_are_ahead(line: InLine) -> None:
    assert line.runs.active == 3
    waiting = await line.trace("r3", ahead=2)
    assert waiting.status == "running"
    assert not waiting.passages
    line.model.go.set()
    ended = await asyncio.gather(*(last(line.runs, f"r{number}") for number in (1, 2, 3)))
    assert [trace.status for trace in ended] == ["done"] * 3
    assert [trace.ahead for trace in ended] == [0, 0, 0]
    assert line.runs.active == 0


async def test_stop_ends_a_waiting_run_and_moves_the_others_up(line: InLine) -> None:
    assert await line.runs.stop("r2")
    assert line.runs.active == 2
    stopped = await last(line.runs, "r2")
    assert stopped.status == "cancelled"
    assert all(span.end_ms is not None for span in stopped.spans)
    assert line.runs._store.load("r2") == stopped
    await line.trace("r3", ahead=1)
    line.model.go.set()
    assert (await last(line.runs, "r3")).status == "done"


async def test_stop_of_the_running_one_lets_the_next_begin(line: InLine) -> None:
    line.model.asked.clear()
    assert await line.runs.stop("r1")
    async with asyncio.timeout(20):
        await line.model.asked.wait()
    assert (line.turnstile.active, line.turnstile.waiting) == (1, 1)


async def test_a_shut_down_keeps_the_waiting_runs_too(line: InLine) -> None:
    """It is called from the thread of a signal, while the loop goes on."""
    await asyncio.to_thread(line.runs.shut_down)
    assert line.runs.active == 0
    for run_id in ("r1", "r2", "r3"):
        kept = line.runs._store.load(run_id)
        assert kept.error is not None
        assert kept.error.message == "The server is shutting down."
    assert (line.turnstile.active, line.turnstile.waiting) == (0, 0)


async def test_the_wait_for_its_turn_does_not_count_against_a_run(tmp_path: Path, store: ChromaStore) -> None:
    """The run ahead uses up its whole deadline; the one behind it has waited as long and is answered."""
    runs = Runs(TraceStore(tmp_path / "traces.db"), deadline_s=1.5)
    turnstile = Turnstile(1)
    held, free = Held(), ScriptedModel(extract)
    first = runs.start(SpeculativePipeline(tools(store, held, turnstile=turnstile)), request("r1"))
    await held.asked.wait()
    second = runs.start(SpeculativePipeline(tools(store, free, turnstile=turnstile)), request("r2"))
    ended = await asyncio.gather(last(runs, first), last(runs, second))
    assert [trace.status for trace in ended] == ["cancelled", "done"]


async def abandoned(tmp_path: Path, store: ChromaStore) -> tuple[Runs, Endless]:
    runs = Runs(TraceStore(tmp_path / "traces.db"), deadline_s=20, abandoned_s=0.2)
    return runs, Endless(pipeline(store, ScriptedModel(extract)))


async def test_a_run_whose_page_is_closed_is_given_up_and_kept(tmp_path: Path, store: ChromaStore) -> None:
    """A closed tab must not keep a model busy until the deadline."""
    runs, endless = await abandoned(tmp_path, store)
    run_id = runs.start(endless, request())  # type: ignore[arg-type]
    async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        await anext(traces)
        await asyncio.sleep(0.4)  # as long as somebody follows it goes on
        assert not endless.closed.is_set()
    await asyncio.wait_for(endless.closed.wait(), 2)
    trace = await last(runs, run_id)
    assert trace.status == "cancelled"
    assert trace.error is not None
    assert "SPECRAG_ABANDONED_S" in trace.error.message
    assert runs.active == 0


async def test_a_page_that_comes_back_in_time_keeps_its_run(tmp_path: Path, store: ChromaStore) -> None:
    """A reload, or a connection that was lost for a moment."""
    runs, endless = await abandoned(tmp_path, store)
    run_id = runs.start(endless, request())  # type: ignore[arg-type]
    for _ in range(4):
        async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
            await anext(traces)
        await asyncio.sleep(0.12)
        assert not endless.closed.is_set()
    await runs.stop(run_id)


async def test_a_run_that_nobody_ever_follows_is_given_up(tmp_path: Path, store: ChromaStore) -> None:
    runs, endless = await abandoned(tmp_path, store)
    runs.start(endless, request())  # type: ignore[arg-type]
    await asyncio.wait_for(endless.closed.wait(), 2)


async def test_one_of_two_readers_is_enough(tmp_path: Path, store: ChromaStore) -> None:
    runs, endless = await abandoned(tmp_path, store)
    run_id = runs.start(endless, request())  # type: ignore[arg-type]
    async with aclosing(runs.follow(run_id, every_s=0.01)) as stays:
        await anext(stays)
        async with aclosing(runs.follow(run_id, every_s=0.01)) as goes:
            await anext(goes)
        await asyncio.sleep(0.4)
        assert not endless.closed.is_set()
    await asyncio.wait_for(endless.closed.wait(), 2)


async def test_a_run_knows_whose_it_is_as_long_as_it_goes_on(runs: Runs, store: ChromaStore) -> None:
    endless = Endless(pipeline(store, ScriptedModel(extract)))
    run_id = runs.start(endless, request(), owner="visitor:a")  # type: ignore[arg-type]
    assert runs.owner(run_id) == "visitor:a"
    assert (runs.live("visitor:a"), runs.live(None), runs.live("")) == ([run_id], [run_id], [])
    assert runs.owner("nothing") is None
    async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
        await anext(traces)
    await runs.stop(run_id)
    assert runs.owner(run_id) is None
    assert runs._store.summary(run_id).owner == "visitor:a"


async def test_runs_that_have_ended_leave_nothing_in_memory(runs: Runs, store: ChromaStore) -> None:
    """The event logs of a hundred runs used to stay, some hundred kilobytes each."""
    for number in range(3):
        await last(runs, runs.start(pipeline(store, ScriptedModel(extract)), request(f"r{number}")))
    assert not runs._live
    assert (await last(runs, "r0")).status == "done"


async def test_runs_that_never_began_do_not_pile_up(runs: Runs) -> None:
    for number in range(3 * UNKEPT):
        run_id = runs.start(Mute(), request(f"r{number}"))  # type: ignore[arg-type]
        async with aclosing(runs.follow(run_id, every_s=0.01)) as traces:
            assert [trace async for trace in traces] == []
    assert len(runs._live) <= UNKEPT + 1


async def test_a_run_that_cannot_be_kept_is_still_shown(tmp_path: Path, store: ChromaStore) -> None:
    """A full disk must not take the answer away from the page that waits for it."""
    path = tmp_path / "traces.db"
    runs = Runs(TraceStore(path), deadline_s=20)
    path.write_bytes(b"no database any more, and long enough to be taken for one" * 100)
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    assert (await last(runs, run_id)).status == "done"
    assert (await last(runs, run_id)).status == "done"


class BrokenStore(TraceStore):
    """Fails in a way that nobody has thought of."""

    def save(self, trace: Trace, events: Sequence[Event], *, owner: str = "", imported: bool = False) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


async def test_whatever_the_store_does_a_run_ends_as_it_was_and_can_be_deleted(
    tmp_path: Path, store: ChromaStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Its task died of what was no error of ours, and its trace stayed in memory whatever anybody did."""
    broken = BrokenStore(tmp_path / "traces.db")
    runs = Runs(broken, deadline_s=20)
    history = History(broken, runs, load_settings({}))
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    assert (await last(runs, run_id)).status == "done"
    assert runs.active == 0
    assert "The run r1 could not be kept" in caplog.text
    await runs.close()
    assert history.trace(Visitor(id="ann"), run_id).status == "done"
    assert await asyncio.to_thread(history.delete, Visitor(id="ann"), [run_id, run_id]) == 1
    with pytest.raises(TraceError, match="There is no run"):
        history.trace(Visitor(id="ann"), run_id)
    assert await asyncio.to_thread(history.delete, Visitor(id="ann"), [run_id]) == 0


async def test_who_listens_hears_of_every_run_that_was_kept(tmp_path: Path, store: ChromaStore) -> None:
    heard: list[tuple[Trace, Sequence[Event]]] = []
    runs = Runs(
        TraceStore(tmp_path / "traces.db"),
        deadline_s=20,
        kept=lambda trace, events: heard.append((trace, events)),
    )
    done = await last(runs, runs.start(pipeline(store, ScriptedModel(extract)), request("r1")))
    endless = Endless(pipeline(store, ScriptedModel(extract)))
    stopped = runs.start(endless, request("r2"))  # type: ignore[arg-type]
    async with aclosing(runs.follow(stopped, every_s=0.01)) as traces:
        await anext(traces)
    await runs.stop(stopped)
    assert [trace.status for trace, _ in heard] == ["done", "cancelled"]
    assert heard[0][0] == done == fold(heard[0][1])


async def test_a_listener_that_fails_costs_no_run(
    tmp_path: Path, store: ChromaStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The run was kept, called lost, and counted twice when it was deleted."""

    def broken(_trace: Trace, _events: Sequence[Event]) -> None:
        raise OSError(errno.ECONNREFUSED, "Connection refused")

    kept = TraceStore(tmp_path / "traces.db")
    runs = Runs(kept, deadline_s=20, kept=broken)
    history = History(kept, runs, load_settings({}))
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    assert (await last(runs, run_id)).status == "done"
    await runs.close()
    assert "could not be kept" not in caplog.text
    assert "who hears of kept runs failed" in caplog.text
    assert await asyncio.to_thread(history.delete, Visitor(id="ann"), [run_id]) == 1


async def test_a_slow_reader_slows_no_run(runs: Runs, store: ChromaStore) -> None:
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    async with aclosing(runs.follow(run_id, every_s=0.01)) as slow:
        await anext(slow)  # and does not read on
        assert (await last(runs, run_id)).status == "done"
        assert runs.active == 0
        assert [trace async for trace in slow][-1].status == "done"


class SlowStore(TraceStore):
    """Keeps a run when it is told to, and says when it is asked."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked, self.told = threading.Event(), threading.Event()

    def save(self, trace: Trace, events: Sequence[Event], *, owner: str = "", imported: bool = False) -> None:
        self.asked.set()
        assert self.told.wait(20)
        super().save(trace, events, owner=owner, imported=imported)


async def test_a_run_that_is_deleted_while_it_is_being_kept_does_not_come_back(
    tmp_path: Path, store: ChromaStore
) -> None:
    """Stop cancelled a run that was over; the store was still at work, and the run was back after its deletion."""
    slow = SlowStore(tmp_path / "traces.db")
    runs = Runs(slow, deadline_s=20)
    history = History(slow, runs, load_settings({}))
    run_id = runs.start(pipeline(store, ScriptedModel(extract)), request())
    assert await asyncio.to_thread(slow.asked.wait, 20)
    deleting = asyncio.create_task(asyncio.to_thread(history.delete, Visitor(id="ann"), [run_id]))
    await asyncio.wait([deleting], timeout=0.2)
    assert not deleting.done()
    slow.told.set()
    assert await deleting == 1
    assert runs.owner(run_id) is None
    assert history.find(Visitor(id="ann"), RunFilter()) == ([], 0)
