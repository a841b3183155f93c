"""Who sees which run, live or kept; nothing of one visitor may reach another."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from specrag.config import Settings, load_settings
from specrag.errors import TraceError, UsageError
from specrag.events import Event, RunStarted
from specrag.library.visitors import OPERATOR, USER, VISITOR, Visitor
from specrag.pipelines.base import Request
from specrag.runs import Runs
from specrag.tracing.history import COMMENT_LENGTH, History
from specrag.tracing.store import RunFilter, TraceStore
from specrag.types import Parent, PipelineName
from tests.kept_runs import keep, kept, told

ANN = Visitor(id="ann", owner=f"{VISITOR}ann")
BEN = Visitor(id="ben", owner=f"{VISITOR}ben")
EVERYBODY = Visitor(id="somebody")
USERS = (Visitor(id="cy", owner=f"{USER}cy"), Visitor(id="di", owner=f"{USER}di"))
PASSING = Visitor(id="passing", owner=f"{VISITOR}once", passing=True)
ALL = RunFilter()


class Rig:
    """A history over a store and runs of its own."""

    def __init__(self, folder: Path, access: str = "visitor") -> None:
        self.store = TraceStore(folder / "traces.db")
        self.runs = Runs(self.store, deadline_s=20)
        self.history = History(self.store, self.runs, settings(access))

    def listed(self, who: Visitor) -> set[str]:
        """Ids of the runs in somebody's list."""
        return {run.run_id for run in self.history.find(who, ALL)[0]}

    def readable(self, who: Visitor, run_id: str) -> bool:
        try:
            self.history.check_readable(who, run_id)
        except TraceError:
            return False
        return True


def settings(access: str) -> Settings:
    login = {"login": "cy:secret-1,di:secret-2"} if access == "login" else {}
    return load_settings({}, access=access, **login)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


class Waiting:
    """A pipeline that tells of its start and waits to be stopped."""

    name: PipelineName = "speculative"

    async def run(self, request: Request) -> AsyncGenerator[Event]:
        yield RunStarted(
            at_ms=0, run_id=request.run_id, pipeline=self.name, question=request.question, created_at="2026"
        )
        await asyncio.Event().wait()


async def begun(rig: Rig, run_id: str, owner: str) -> None:
    """A run that goes on, and has told of its start."""
    asked = Request(question="How long?", collection="documents", run_id=run_id)
    rig.runs.start(Waiting(), asked, owner=owner)
    async with aclosing(rig.runs.follow(run_id, every_s=0.001)) as traces:
        await anext(traces)


def test_each_visitor_sees_their_own_runs(rig: Rig) -> None:
    keep(rig.store, "anns", owner=f"{VISITOR}ann")
    keep(rig.store, "bens", owner=f"{VISITOR}ben")
    keep(rig.store, "cli")
    assert rig.listed(ANN) == {"anns"}
    assert rig.listed(BEN) == {"bens"}
    assert rig.listed(OPERATOR) == {"anns", "bens", "cli"}
    assert rig.history.trace(ANN, "anns") == kept("anns")
    assert rig.history.events(ANN, "anns") == told(kept("anns"))


def test_each_user_sees_their_own_runs(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "login")
    cy, di = USERS
    keep(rig.store, "cys", owner=f"{USER}cy")
    assert (rig.listed(cy), rig.listed(di)) == ({"cys"}, set())
    assert not rig.readable(di, "cys")


def test_what_is_shared_is_everybodys(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "shared")
    keep(rig.store, "cli")
    keep(rig.store, "once-anns", owner=f"{VISITOR}ann")  # of the time when visitors were kept apart
    assert rig.listed(EVERYBODY) == {"cli", "once-anns"}
    rig.history.rate(EVERYBODY, "cli", "up", "well said")
    assert rig.history.summary(EVERYBODY, "cli").comment == "well said"
    assert rig.history.delete(EVERYBODY, ["cli", "once-anns"]) == 2


def test_the_runs_of_the_command_line_are_the_operators(rig: Rig) -> None:
    """Its owner is empty, and so is that of somebody who has none; they must not meet."""
    keep(rig.store, "cli")
    assert not rig.readable(ANN, "cli")
    nobody = Visitor(id="nobody")
    assert rig.listed(nobody) == set()
    assert not rig.readable(nobody, "cli")
    assert rig.history.clear(nobody, ALL) == 0


def test_a_foreign_run_is_refused_in_the_words_of_a_missing_one(rig: Rig) -> None:
    """Whatever somebody tries: else they learn which ids there are."""
    keep(rig.store, "r1", owner=f"{VISITOR}ann")
    history = rig.history
    tries: tuple[Callable[[Visitor, str], object], ...] = (
        history.check_readable,
        history.trace,
        history.events,
        history.summary,
        history.children,
        lambda who, run_id: history.rate(who, run_id, "up"),
        lambda who, run_id: history.share(who, run_id, shared=True),
    )
    for attempt in tries:
        sentences = []
        for run_id in ("r1", "r2"):
            with pytest.raises(TraceError) as refused:
                attempt(BEN, run_id)
            sentences.append(str(refused.value).replace(run_id, "ID"))
        assert sentences[0] == sentences[1]
    assert history.delete(BEN, ["r1", "r2"]) == 0
    assert history.summary(ANN, "r1").feedback is None


async def test_a_live_run_is_as_private_as_a_kept_one(rig: Rig) -> None:
    """A link to a run that goes on used to be enough to read it."""
    await begun(rig, "live", f"{VISITOR}ann")
    assert rig.history.trace(ANN, "live").status == "running"
    assert len(rig.history.events(ANN, "live")) == 1
    for attempt in (rig.history.trace, rig.history.events, rig.history.check_readable):
        with pytest.raises(TraceError, match="There is no run “live” here"):
            attempt(BEN, "live")
    assert rig.history.trace(OPERATOR, "live").status == "running"
    assert (rig.runs.live(f"{VISITOR}ann"), rig.runs.live(f"{VISITOR}ben")) == (["live"], [])
    await rig.runs.close()
    assert rig.listed(ANN) == {"live"}
    assert rig.history.trace(ANN, "live").status == "cancelled"
    assert not rig.readable(BEN, "live")


async def test_deleting_a_live_run_stops_it_first(rig: Rig) -> None:
    """It was kept when it ended, after it had been deleted."""
    await begun(rig, "live", f"{VISITOR}ann")
    assert await asyncio.to_thread(rig.history.delete, BEN, ["live"]) == 0
    assert rig.runs.active == 1
    assert await asyncio.to_thread(rig.history.delete, ANN, ["live"]) == 1
    assert rig.runs.active == 0
    assert rig.store.recent() == []
    assert not rig.readable(ANN, "live")


def test_a_shared_run_is_read_by_link_and_changed_by_its_owner_alone(rig: Rig) -> None:
    keep(rig.store, "r1", owner=f"{VISITOR}ann")
    rig.history.share(ANN, "r1", shared=True)
    assert rig.history.trace(BEN, "r1") == kept("r1")
    assert rig.listed(BEN) == set()
    tries: tuple[Callable[[], object], ...] = (
        lambda: rig.history.rate(BEN, "r1", "down", "mine"),
        lambda: rig.history.share(BEN, "r1", shared=False),
    )
    for attempt in tries:
        with pytest.raises(TraceError, match="somebody else's"):
            attempt()
    assert rig.history.delete(BEN, ["r1"]) == 0
    assert rig.history.clear(BEN, ALL) == 0
    assert (rig.history.owns(ANN, "r1"), rig.history.owns(BEN, "r1")) == (True, False)
    rig.history.share(ANN, "r1", shared=False)
    assert not rig.readable(BEN, "r1")


def test_forks_are_told_as_far_as_they_may_be_seen(rig: Rig) -> None:
    """The fork of a shared run belongs to whoever made it, and its parent's owner does not see it."""
    parent = Parent(run_id="r1", step="draft")
    keep(rig.store, "r1", owner=f"{VISITOR}ann")
    rig.history.share(ANN, "r1", shared=True)
    keep(rig.store, "anns", owner=f"{VISITOR}ann", parent=parent)
    keep(rig.store, "bens", owner=f"{VISITOR}ben", parent=parent)
    assert [run.run_id for run in rig.history.children(ANN, "r1")] == ["anns"]
    assert [run.run_id for run in rig.history.children(BEN, "r1")] == ["bens"]


def test_an_imported_run_belongs_to_who_brought_it(rig: Rig) -> None:
    trace = kept("r1")
    assert rig.history.add(ANN, trace, told(trace)) == "r1"
    assert rig.history.summary(ANN, "r1").imported
    assert not rig.readable(BEN, "r1")


async def test_an_import_under_a_taken_id_becomes_another_run(rig: Rig) -> None:
    """With the id of a foreign run, kept or live, it would have replaced that one."""
    anns = keep(rig.store, "r1", owner=f"{VISITOR}ann")
    await begun(rig, "live", f"{VISITOR}ann")
    for run_id in ("r1", "live"):
        forged = kept(run_id, question="Whose?")
        fresh = rig.history.add(BEN, forged, told(forged))
        assert fresh != run_id
        assert rig.history.trace(BEN, fresh) == replace(forged, run_id=fresh)
        assert rig.history.events(BEN, fresh) == told(replace(forged, run_id=fresh))
    assert rig.history.trace(ANN, "r1") == anns
    assert rig.history.trace(ANN, "live").status == "running"
    await rig.runs.close()
    assert rig.listed(ANN) == {"r1", "live"}


def test_who_cannot_be_known_again_keeps_nothing(rig: Rig) -> None:
    with pytest.raises(TraceError, match="allow cookies"):
        rig.history.add(PASSING, kept("r1"), [])


@pytest.mark.parametrize("rating", ["great", "", 5])
def test_what_is_no_rating_is_one_sentence(rig: Rig, rating: object) -> None:
    keep(rig.store, "r1", owner=f"{VISITOR}ann")
    with pytest.raises(UsageError, match="up, down or nothing"):
        rig.history.rate(ANN, "r1", rating)  # type: ignore[arg-type]  # what a program may send


def test_a_comment_is_short_and_in_one_line(rig: Rig) -> None:
    keep(rig.store, "r1", owner=f"{VISITOR}ann")
    rig.history.rate(ANN, "r1", "down", " It is\n three\u202e nights ")
    assert rig.history.summary(ANN, "r1").comment == "It is three nights"
    with pytest.raises(UsageError, match="at most 500 characters"):
        rig.history.rate(ANN, "r1", "down", "x" * (COMMENT_LENGTH + 1))


def test_clearing_takes_ones_own_runs_alone(rig: Rig) -> None:
    keep(rig.store, "anns", owner=f"{VISITOR}ann")
    keep(rig.store, "bens", owner=f"{VISITOR}ben")
    assert rig.history.clear(ANN, ALL) == 1
    assert rig.listed(OPERATOR) == {"bens"}


def test_a_visitors_runs_end_as_their_collections_do(rig: Rig) -> None:
    now = datetime.now(UTC)
    old, new = ((now - timedelta(days=days)).isoformat() for days in (8, 6))
    keep(rig.store, "old", owner=f"{VISITOR}ann", created_at=old)
    keep(rig.store, "cli", created_at=old)
    keep(rig.store, "new", owner=f"{VISITOR}ann", created_at=new)
    assert rig.history.expire() == 1
    assert rig.listed(OPERATOR) == {"cli", "new"}


async def test_a_run_that_has_not_begun_says_so(rig: Rig) -> None:
    asked = Request(question="How long?", collection="documents", run_id="r1")
    rig.runs.start(Waiting(), asked, owner=f"{VISITOR}ann")
    with pytest.raises(TraceError, match="not begun yet"):
        rig.history.trace(ANN, "r1")
    await rig.runs.close()
