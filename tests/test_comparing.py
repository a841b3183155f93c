"""Comparisons on the server: one run after the other on the same passages, followed, stopped and kept."""

import asyncio
import errno
import sqlite3
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from specrag.build import PIPELINES
from specrag.comparing import Comparisons
from specrag.config import Settings
from specrag.errors import ModelError, TraceError, UsageError
from specrag.fairness import COLUMNS, Wanted, lineup, order_note
from specrag.library.visitors import OPERATOR, Visitor
from specrag.models.base import Conversation, Line, Output
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Pipeline, Tools
from specrag.race import Race
from specrag.retrieval.chroma import ChromaStore
from specrag.runs import Runs
from specrag.tracing.comparisons import Comparison, ComparisonStore, order_of
from specrag.tracing.store import TraceStore
from specrag.turnstile import Turnstile
from specrag.types import ModelInfo, PipelineName
from tests.test_speculative import QUESTION, extract
from tests.toys import filled_store, tools

ANYBODY = Visitor(id="anybody")
ANN, BEN = (Visitor(id=name, owner=f"visitor:{name}") for name in ("ann", "ben"))
BOTH: tuple[PipelineName, ...] = ("standard", "speculative")


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


class Waiting(ScriptedModel):
    """Can be held; `writing` tells how many generations are open now, `held` that one waits."""

    def __init__(self) -> None:
        super().__init__(extract)
        self.go = asyncio.Event()
        self.held = asyncio.Event()
        self.go.set()
        self.writing = 0
        self.most = 0
        self.broken = 0
        """Which generation fails, counted from 1; the first one is the warm-up."""
        self._free = 0

    def hold(self, *, after: int) -> None:
        """Let so many more generations through, the warm-up among them, and the others wait."""
        self._free = after
        self.held.clear()
        self.go.clear()

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        self.writing += 1
        self.most = max(self.most, self.writing)
        self.broken -= 1
        try:
            if self.broken == 0:
                raise ModelError("The model ran out of memory.")
            if self._free > 0:
                self._free -= 1
            elif not self.go.is_set():
                self.held.set()
                await self.go.wait()
            async with aclosing(super().generate(conversations, lines)) as outputs:
                async for output in outputs:
                    yield output
        finally:
            self.writing -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Comparisons with all that they are made of."""

    comparisons: Comparisons
    runs: Runs
    traces: TraceStore
    model: Waiting
    tools: Tools

    async def start(
        self, who: Visitor = ANYBODY, pipelines: Sequence[object] = BOTH, question: str = QUESTION
    ) -> str:
        wanted = Wanted(question=question, collection="documents", pipelines=pipelines)
        return await self.comparisons.start(who, wanted, self.tools.settings)

    async def last(self, identity: str, who: Visitor = ANYBODY) -> Race:
        return (await self.all(identity, who))[-1]

    async def all(self, identity: str, who: Visitor = ANYBODY) -> list[Race]:
        async with aclosing(self.comparisons.follow(who, identity, every_s=0.01)) as races:
            return [race async for race in races]


def rig(
    store: ChromaStore,
    home: Path,
    *,
    comparison_store: type[ComparisonStore] = ComparisonStore,
    **settings: Any,
) -> Rig:
    model = Waiting()
    made = tools(store, model, **settings)
    traces = TraceStore(home / "traces.db")
    runs = Runs(traces, deadline_s=20)

    def pipeline(name: PipelineName, _: Settings) -> Pipeline:
        return PIPELINES[name](made)

    kept = comparison_store(home / "traces.db", most=100)
    comparisons = Comparisons(store=kept, traces=traces, runs=runs, tools=made, pipeline=pipeline)
    return Rig(comparisons=comparisons, runs=runs, traces=traces, model=model, tools=made)


@pytest.fixture
def rigged(store: ChromaStore, tmp_path: Path) -> Rig:
    return rig(store, tmp_path)


async def test_all_pipelines_run_on_the_same_passages_and_are_ordinary_runs(rigged: Rig) -> None:
    """Passages that each pipeline looked for by itself may differ, and then so may everything after."""
    race = await rigged.last(await rigged.start(pipelines=COLUMNS))
    made = race.comparison
    assert made.status == "done"
    assert made.pipelines == COLUMNS
    kept = [rigged.traces.load(run_id) for run_id in made.run_ids]
    assert [trace.pipeline for trace in kept] == list(COLUMNS)
    assert [trace.status for trace in kept] == ["done"] * 4
    first = [passage.id for passage in kept[0].passages]
    assert len(first) == made.passages > 0
    assert all([passage.id for passage in trace.passages][: len(first)] == first for trace in kept)
    assert list(race.traces) == kept


class BrokenStore(ComparisonStore):
    """Has no room left once a comparison has begun."""

    def save(self, comparison: Comparison) -> None:
        if comparison.begun:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save(comparison)


async def test_whatever_the_store_does_a_comparison_ends_and_no_run_is_left(
    store: ChromaStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It died of what was no error of ours, and its first run went on for nobody."""
    rigged = rig(store, tmp_path, comparison_store=BrokenStore)
    race = await rigged.last(await rigged.start())
    assert race.comparison.status == "done"
    assert [trace.status for trace in race.traces if trace] == ["done", "done"]
    assert rigged.runs.active == 0
    assert "could not be kept" in caplog.text


async def test_the_passages_are_looked_for_once(rigged: Rig) -> None:
    """A search within a run would be counted for its pipeline, and the first one would pay for a cold index."""
    race = await rigged.last(await rigged.start())
    assert race.comparison.retrieve_ms is not None
    assert race.comparison.retrieve_ms > 0
    for trace in race.traces:
        assert trace is not None
        assert "search" not in {span.name for span in trace.spans}


async def test_no_two_runs_compute_at_the_same_time(rigged: Rig) -> None:
    """Models in one process share its cores: two runs at once measure each other."""
    first = await rigged.start(ANN, pipelines=COLUMNS)
    second = await rigged.start(BEN, pipelines=COLUMNS)
    await asyncio.gather(rigged.last(first), rigged.last(second))
    assert rigged.model.most == 1


async def test_the_second_comparison_says_that_it_waits(rigged: Rig) -> None:
    rigged.model.hold(after=0)
    first, second = await rigged.start(ANN), await rigged.start(BEN)
    async with aclosing(rigged.comparisons.follow(ANYBODY, second, every_s=0.01)) as races:
        assert (await anext(races)).stage == "waiting"
    rigged.model.go.set()
    assert (await rigged.last(second)).comparison.status == "done"
    assert (await rigged.last(first)).comparison.status == "done"


async def test_the_models_are_warm_before_the_first_run(rigged: Rig) -> None:
    """Without it whoever runs first pays for cold weights."""
    rigged.model.hold(after=0)
    identity = await rigged.start()
    await rigged.model.held.wait()
    assert rigged.runs.active == 0
    rigged.model.go.set()
    assert (await rigged.last(identity)).comparison.status == "done"


async def test_what_comes_before_the_first_run_waits_for_its_turn(store: ChromaStore, tmp_path: Path) -> None:
    """The warm-up went past the line, and computed beside as many runs as the models take at once."""
    line = Turnstile(1)
    rigged = rig(store, tmp_path, turnstile=line)
    async with line.place():
        identity = await rigged.start()
        async with aclosing(rigged.comparisons.follow(ANYBODY, identity, every_s=0.01)) as races:
            stages = [(await anext(races)).stage for _ in range(5)]
        assert stages == ["waiting"] * 5
        assert line.waiting == 1
        assert rigged.model.most == 0
    assert (await rigged.last(identity)).comparison.status == "done"


async def test_what_comes_before_the_first_run_has_a_deadline(store: ChromaStore, tmp_path: Path) -> None:
    """A model that hangs in the warm-up held up every later comparison for ever."""
    line = Turnstile(1)
    rigged = rig(store, tmp_path, turnstile=line, deadline_s=0.2)
    rigged.model.hold(after=0)
    race = await rigged.last(await rigged.start(ANN))
    assert race.comparison.status == "failed"
    assert "took longer than 0.2 s" in race.comparison.error
    assert "SPECRAG_DEADLINE_S" in race.comparison.error
    assert (rigged.model.writing, line.active) == (0, 0)


def test_over_as_many_turns_as_there_are_everybody_is_everywhere_once() -> None:
    for count in (2, 3, 4):
        for cycle in (0, 1):
            turns = [order_of(count, cycle * count + turn) for turn in range(count)]
            for place in range(count):
                assert {order[place] for order in turns} == set(range(count))


def test_who_comes_before_whom_changes_as_well() -> None:
    """In a mere rotation speculative RAG would always follow the same pipeline, with what that leaves warm."""
    pairs = {
        pair for turn in range(6) for pair in zip(order_of(3, turn), order_of(3, turn)[1:], strict=False)
    }
    assert pairs == {(a, b) for a in range(3) for b in range(3) if a != b}


async def test_the_order_rotates_from_one_comparison_to_the_next(rigged: Rig) -> None:
    begun = []
    for _ in range(2):
        made = (await rigged.last(await rigged.start())).comparison
        times = {rigged.traces.load(run).created_at: run for run in made.run_ids}
        begun.append([made.pipelines[made.run_ids.index(times[at])] for at in sorted(times)])
    assert begun == [["standard", "speculative"], ["speculative", "standard"]]


async def test_other_pipelines_have_a_turn_of_their_own(rigged: Rig) -> None:
    """One counter for all would let the same pipeline begin whenever two kinds of comparison take turns."""
    for pipelines in (BOTH, ("standard", "drafter"), BOTH):
        made = (await rigged.last(await rigged.start(pipelines=pipelines))).comparison
    assert made.turn == 1


async def test_what_ended_keeps_its_bar_while_the_next_one_grows(rigged: Rig) -> None:
    identity = await rigged.start()
    races = await rigged.all(identity)
    running = [race for race in races if race.stage == "running"]
    seen = [tuple(trace.status if trace else None for trace in race.traces) for race in running]
    assert ("done", None) in seen or ("done", "running") in seen
    assert races[-1].stage == "ended"


async def test_a_reader_who_comes_late_sees_what_was_before(rigged: Rig) -> None:
    """A page that is loaded anew in mid-run."""
    rigged.model.hold(after=2)
    identity = await rigged.start()
    await rigged.model.held.wait()
    async with aclosing(rigged.comparisons.follow(ANYBODY, identity, every_s=0.01)) as races:
        async for late in races:
            if late.traces[1] is not None:
                break
    assert late.traces[0] is not None
    assert late.traces[0].status == "done"
    assert late.traces[1] is not None
    assert late.traces[1].status == "running"
    rigged.model.go.set()
    early, late = await asyncio.gather(rigged.last(identity), rigged.last(identity))
    assert early == late
    assert all(trace is not None for trace in late.traces)


async def test_stop_ends_the_run_that_is_on_and_leaves_the_rest_out(rigged: Rig) -> None:
    rigged.model.hold(after=1)
    identity = await rigged.start()
    await rigged.model.held.wait()
    assert rigged.runs.active == 1
    assert await rigged.comparisons.stop(ANYBODY, identity)
    assert rigged.runs.active == 0
    assert rigged.model.writing == 0
    race = await rigged.last(identity)
    assert race.comparison.status == "cancelled"
    assert race.comparison.error == "The comparison was stopped."
    first, second = race.traces
    assert first is not None
    assert first.status == "cancelled"
    assert second is None
    assert not race.comparison.has_begun(1)
    assert not await rigged.comparisons.stop(ANYBODY, identity)


async def test_a_stopped_comparison_lets_the_next_one_in(rigged: Rig) -> None:
    rigged.model.hold(after=0)
    first, second = await rigged.start(ANN), await rigged.start(BEN)
    await rigged.comparisons.stop(ANYBODY, first)
    rigged.model.go.set()
    assert (await rigged.last(second)).comparison.status == "done"


async def test_one_of_a_visitor_at_a_time(rigged: Rig) -> None:
    rigged.model.hold(after=0)
    identity = await rigged.start(ANN)
    with pytest.raises(UsageError, match="still under way"):
        await rigged.start(ANN)
    rigged.model.go.set()
    await rigged.last(identity)
    assert await rigged.start(ANN)


async def test_nothing_that_can_be_found_is_one_sentence(rigged: Rig) -> None:
    wanted = Wanted(question=QUESTION, collection="nowhere", pipelines=BOTH)
    race = await rigged.last(await rigged.comparisons.start(ANYBODY, wanted, rigged.tools.settings))
    assert race.comparison.status == "failed"
    assert "nowhere" in race.comparison.error
    assert race.traces == (None, None)


async def test_a_pipeline_that_fails_does_not_take_the_others_along(
    store: ChromaStore, tmp_path: Path
) -> None:
    rigged = rig(store, tmp_path)
    race = await rigged.last(await rigged.start(pipelines=("standard", "drafter", "speculative")))
    assert [trace.status for trace in race.traces if trace] == ["done"] * 3


@pytest.mark.parametrize(
    ("pipelines", "said"),
    [
        ((), "at least two"),
        (("standard",), "at least two"),
        (("standard", "standard"), "at least two"),
        (("standard", "<b>"), "There is no pipeline “<b>”"),
        (("standard", ["speculative"]), "There is no pipeline"),
    ],
)
async def test_a_choice_that_is_none_is_one_sentence(
    rigged: Rig, pipelines: Sequence[object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        await rigged.start(pipelines=pipelines)
    assert await rigged.comparisons.recent(ANYBODY) == []


async def test_an_empty_question_is_one_sentence(rigged: Rig) -> None:
    with pytest.raises(UsageError, match="empty"):
        await rigged.start(question="  ")


def test_columns_stand_in_one_order_whatever_was_ticked_first() -> None:
    assert lineup(["speculative", "standard"]) == ("standard", "speculative")


async def test_a_restarted_program_shows_what_was_kept_and_that_it_was_interrupted(
    store: ChromaStore, tmp_path: Path
) -> None:
    """The row of a comparison whose process died says "running" for ever."""
    before = rig(store, tmp_path)
    done = await before.start()
    ended = await before.last(done)
    kept = ComparisonStore(tmp_path / "traces.db", most=100)
    kept.add(made := _comparison("lost", run_ids=ended.comparison.run_ids))
    after = rig(store, tmp_path)
    assert await after.last(done) == ended
    lost = await after.last(made.id)
    assert lost.comparison.status == "cancelled"
    assert "compare again" in lost.comparison.error


async def test_a_run_that_was_deleted_leaves_a_gap(rigged: Rig) -> None:
    identity = await rigged.start()
    made = (await rigged.last(identity)).comparison
    rigged.traces.delete([made.run_ids[0]], None)
    race = await rigged.last(identity)
    assert race.traces[0] is None
    assert race.traces[1] is not None
    assert race.comparison.has_begun(0)
    assert (await rigged.comparisons.events(ANYBODY, identity))[0] == []


async def test_nothing_of_a_visitor_reaches_another(store: ChromaStore, tmp_path: Path) -> None:
    rigged = rig(store, tmp_path, access="visitor")
    identity = await rigged.start(ANN)
    await rigged.last(identity, ANN)
    assert rigged.traces.summary((await rigged.last(identity, ANN)).comparison.run_ids[0]).owner == ANN.owner
    for stranger in (BEN, ANYBODY):
        with pytest.raises(TraceError) as foreign:
            await rigged.last(identity, stranger)
        with pytest.raises(TraceError) as absent:
            await rigged.last("0" * 12, stranger)
        assert str(foreign.value).replace(identity, "ID") == str(absent.value).replace("0" * 12, "ID")
        with pytest.raises(TraceError):
            await rigged.comparisons.events(stranger, identity)
        with pytest.raises(TraceError):
            await rigged.comparisons.delete(stranger, identity)
        assert await rigged.comparisons.recent(stranger) == []
    assert [one.id for one in await rigged.comparisons.recent(ANN)] == [identity]
    assert [one.id for one in await rigged.comparisons.recent(OPERATOR)] == [identity]


async def test_a_stranger_cannot_stop_or_watch_a_comparison_under_way(
    store: ChromaStore, tmp_path: Path
) -> None:
    rigged = rig(store, tmp_path, access="visitor")
    rigged.model.hold(after=0)
    identity = await rigged.start(ANN)
    assert not await rigged.comparisons.stop(BEN, identity)
    with pytest.raises(TraceError):
        await rigged.last(identity, BEN)
    rigged.model.go.set()
    assert (await rigged.last(identity, ANN)).comparison.status == "done"


async def test_delete_stops_and_forgets_it_and_leaves_its_runs(rigged: Rig) -> None:
    identity = await rigged.start()
    made = (await rigged.last(identity)).comparison
    await rigged.comparisons.delete(ANYBODY, identity)
    assert await rigged.comparisons.recent(ANYBODY) == []
    assert rigged.traces.load(made.run_ids[0]).status == "done"
    rigged.model.hold(after=0)
    going = await rigged.start()
    await rigged.comparisons.delete(ANYBODY, going)
    assert not rigged.comparisons._live
    assert await rigged.comparisons.recent(ANYBODY) == []


async def test_a_damaged_one_is_its_owners_to_delete(store: ChromaStore, tmp_path: Path) -> None:
    """It could not be read, so it could not be deleted either; and a stranger was told that it is there."""
    rigged = rig(store, tmp_path, access="visitor")
    identity = await rigged.start(ANN)
    await rigged.last(identity, ANN)
    with closing(sqlite3.connect(tmp_path / "traces.db")) as connection, connection:
        connection.execute("UPDATE comparisons SET document = '{'")
    with pytest.raises(TraceError, match="is damaged and cannot be read; delete it"):
        await rigged.last(identity, ANN)
    for trying in (rigged.last(identity, BEN), rigged.comparisons.delete(BEN, identity)):
        with pytest.raises(TraceError, match="There is no comparison"):
            await trying
    await rigged.comparisons.delete(ANN, identity)
    with pytest.raises(TraceError, match="There is no comparison"):
        await rigged.last(identity, ANN)


async def test_one_that_nobody_follows_is_given_up(store: ChromaStore, tmp_path: Path) -> None:
    rigged = rig(store, tmp_path, abandoned_s=0.05)
    rigged.model.hold(after=0)
    identity = await rigged.start()
    async with aclosing(rigged.comparisons.follow(ANYBODY, identity, every_s=0.01)) as races:
        await anext(races)
    await rigged.comparisons._live[identity].rest(20)
    assert "SPECRAG_ABANDONED_S" in (await rigged.last(identity)).comparison.error
    assert rigged.model.writing == 0


async def test_one_that_is_followed_goes_on(store: ChromaStore, tmp_path: Path) -> None:
    rigged = rig(store, tmp_path, abandoned_s=0.05)
    assert (await rigged.last(await rigged.start(pipelines=COLUMNS))).comparison.status == "done"


async def test_the_end_of_the_server_stops_all_and_begins_no_further_run(rigged: Rig) -> None:
    rigged.model.hold(after=1)
    identity = await rigged.start()
    await rigged.model.held.wait()
    await rigged.comparisons.close()
    race = await rigged.last(identity)
    assert race.comparison.error == "The server is shutting down."
    assert rigged.runs.active == 0
    assert race.traces[1] is None


def test_the_oldest_go_for_new_ones(tmp_path: Path) -> None:
    kept = ComparisonStore(tmp_path / "traces.db", most=3)
    for number in range(5):
        kept.add(_comparison(f"c{number}", created_at=f"2026-01-0{number + 1}"))
    assert [one.id for one in kept.recent(None, 10)] == ["c4", "c3", "c2"]


def test_one_that_is_damaged_leaves_the_list_of_the_others(tmp_path: Path) -> None:
    """Its row broke the whole list, and with it the tab."""
    kept = ComparisonStore(tmp_path / "traces.db", most=3)
    kept.add(_comparison("good"))
    kept.add(_comparison("bad", created_at="2026-01-02"))
    with closing(sqlite3.connect(tmp_path / "traces.db")) as connection, connection:
        connection.execute("UPDATE comparisons SET document = '{' WHERE id = 'bad'")
    assert [one.id for one in kept.recent(None, 10)] == ["good"]
    with pytest.raises(TraceError, match="cannot be read"):
        kept.load("bad")


def test_comparisons_expire_with_the_visits_and_cost_nobody_else_theirs(tmp_path: Path) -> None:
    """The runs of a visitor went after some days; the question and the owner stayed in the comparison."""
    kept = ComparisonStore(tmp_path / "traces.db", most=3)
    kept.add(_comparison("anns", owner="visitor:ann", created_at="2026-01-01T00:00:00+00:00"))
    for number in range(5):
        kept.add(
            _comparison(f"b{number}", owner="user:ben", created_at=f"2026-01-0{number + 2}T00:00:00+00:00")
        )
    assert [one.id for one in kept.recent(None, 10)] == ["b4", "b3", "anns"]
    assert kept.expire(datetime(2026, 1, 1, tzinfo=UTC), "visitor:") == 0
    assert kept.expire(datetime(2026, 1, 2, tzinfo=UTC), "visitor:") == 1
    assert [one.id for one in kept.recent(None, 10)] == ["b4", "b3"]


def test_one_that_was_deleted_is_not_kept_again(tmp_path: Path) -> None:
    kept = ComparisonStore(tmp_path / "traces.db", most=3)
    made = kept.add(_comparison("c1"))
    kept.delete("c1")
    kept.save(made)
    with pytest.raises(TraceError, match="There is no comparison “c1”"):
        kept.load("c1")


def test_models_behind_servers_have_another_reason_for_the_order() -> None:
    here = ModelInfo(name="m", parameters=0, device="cpu", dtype="", context=1)
    there = ModelInfo(name="m", parameters=0, device="http://gpu:8000", dtype="", context=1)
    assert "one process" in order_note(here, there)
    assert "servers" in order_note(there, there)


def _comparison(identity: str, **values: Any) -> Comparison:
    given: dict[str, Any] = {
        "created_at": "2026-01-01",
        "question": QUESTION,
        "collection": "documents",
        "pipelines": BOTH,
        "run_ids": ("a", "b"),
    }
    return Comparison(id=identity, **(given | values))
