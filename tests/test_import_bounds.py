"""What files from outside may take of the disk, whoever brings them and whatever is forked from them."""

import asyncio
import random
import string
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specrag.build import PIPELINES
from specrag.errors import TraceError, UsageError
from specrag.events import Event
from specrag.forking import fork
from specrag.library.visitors import PASSING, USER, VISITOR
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Pipeline
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.imports import VISITORS
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace, fold
from specrag.types import Parent
from tests.kept_runs import keep, kept, told
from tests.test_speculative import QUESTION, extract, judge
from tests.toys import events_of, filled_store, tools

NOISE = "".join(random.Random(1).choices(string.ascii_letters, k=400_000))
"""0.3 MB as it is kept; three such runs are below a megabyte, four are not."""


@pytest.fixture
def traces(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / "traces.db", max_imported_mb=1)


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@pytest.fixture(scope="module")
def pipeline(store: ChromaStore) -> Pipeline:
    return PIPELINES["speculative"](tools(store, ScriptedModel(extract, judge=judge)))


@pytest.fixture(scope="module")
def large(pipeline: Pipeline) -> Trace:
    """A run whose first passage is as long as whoever wrote its file liked."""
    trace = fold(asyncio.run(events_of(pipeline, QUESTION, run_id="large")))
    first, *others = trace.passages
    return replace(trace, passages=(replace(first, text=NOISE), *others))


async def forked(pipeline: Pipeline, parent: Trace, run_id: str) -> tuple[Trace, list[Event]]:
    """Decided anew: no model is asked, so it costs nothing."""
    request = replace(fork(parent, "decide"), run_id=run_id)
    async with aclosing(pipeline.run(request)) as events:
        told = [event async for event in events]
    return fold(told), told


def add(traces: TraceStore, run_id: str, owner: str) -> None:
    trace = kept(run_id, answer=NOISE)
    assert traces.add(trace, told(trace), owner=owner)


def until_refused(act: Callable[[int], None]) -> tuple[int, str]:
    """How often something can be done, and with what sentence it ends."""
    for number in range(100):
        try:
            act(number)
        except (UsageError, TraceError) as error:
            return number, str(error)
    pytest.fail("nothing was refused")


def test_fresh_cookies_bring_no_fresh_space(traces: TraceStore) -> None:
    """A cookie that the caller makes up is an owner, so each file could be that of a new one."""
    number, sentence = until_refused(lambda n: add(traces, f"r{n}", f"{VISITOR}{n:032x}"))
    assert 3 * VISITORS <= number < 4 * VISITORS
    assert "all visitors may take 10 MB (10 times SPECRAG_MAX_IMPORTED_MB)" in sentence
    assert len(traces.recent()) == number, "what was refused is not kept"
    add(traces, "cys", f"{USER}cy")
    add(traces, "operators", "")
    assert traces.delete(["r0"], f"{VISITOR}{0:032x}") == 1
    add(traces, "later", f"{VISITOR}{number:032x}")


async def test_forks_of_an_imported_run_count_with_it(
    traces: TraceStore, pipeline: Pipeline, large: Trace
) -> None:
    """They carry its passages along: a file of some megabytes and a thousand forks filled the disk."""
    assert traces.add(large, told(large), owner="ann")
    forks = [await forked(pipeline, large, "fork-0")]
    for number in range(1, 6):  # each a fork of the fork before
        forks.append(await forked(pipeline, forks[-1][0], f"fork-{number}"))
    assert len(forks[-1][0].passages[0].text) == len(NOISE)
    number, sentence = until_refused(lambda n: traces.save(*forks[n], owner="ann"))
    assert 1 <= number <= 2
    assert "Imported runs and their forks may take 1 MB (SPECRAG_MAX_IMPORTED_MB)" in sentence
    assert {run.run_id for run in traces.recent() if run.imported} == {"large"}, "a fork was made here"
    with pytest.raises(TraceError, match="There is no run"):
        traces.load(f"fork-{number}")
    keep(traces, "own", owner="ann", answer=NOISE)
    keep(traces, "own-fork", owner="ann", answer=NOISE, parent=Parent(run_id="own", step="decide"))


async def test_forks_count_although_their_parent_is_deleted(
    traces: TraceStore, pipeline: Pipeline, large: Trace
) -> None:
    """Import, begin the fork, delete the import: whoever is quick would have kept it for nothing."""
    fork_of_it, events = await forked(pipeline, large, "fork")

    def import_fork_delete(number: int) -> None:
        assert traces.add(large, told(large), owner="ann")
        traces.delete(["large"], "ann")
        traces.save(replace(fork_of_it, run_id=f"fork-{number}"), events, owner="ann")

    number, sentence = until_refused(import_fork_delete)
    assert number <= 3
    assert "SPECRAG_MAX_IMPORTED_MB" in sentence


async def test_forks_of_a_shared_import_are_bounded_for_who_is_never_known_again(
    traces: TraceStore, pipeline: Pipeline, large: Trace
) -> None:
    """Somebody without a cookie is a new owner with every fork; all of them share one bound."""
    assert traces.add(large, told(large), owner="ann")
    trace, events = await forked(pipeline, large, "fork")
    number, sentence = until_refused(
        lambda n: traces.save(replace(trace, run_id=f"fork-{n}"), events, owner=f"{PASSING}{n:032x}")
    )
    assert number < 4 * VISITORS
    assert "all visitors" in sentence
    traces.save(trace, events, owner="ann")


def test_forks_of_imported_runs_are_as_old_as_they_say(tmp_path: Path) -> None:
    """A file says any date, but a fork was made here: what visitors left behind expires by its date too."""
    traces = TraceStore(tmp_path / "traces.db")
    add(traces, "imported", f"{VISITOR}a")
    parent = Parent(run_id="imported", step="decide")
    keep(traces, "fork", owner=f"{VISITOR}a", parent=parent, created_at="2026-03-01T00:00:00+00:00")
    assert traces.expire(datetime(2026, 3, 15, tzinfo=UTC), VISITOR) == 2
