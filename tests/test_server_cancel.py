"""Stop, a closed page and a deadline reach the servers: within a second nobody works on, and the next question works."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.events import DraftToken, RunCancelled
from specrag.pipelines.base import Request
from specrag.recording import Recording
from specrag.retrieval.chroma import ChromaStore
from specrag.runs import Runs
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import fold
from specrag.types import Role
from tests.fake_server import FakeServer, Fault, until
from tests.fake_server.rig import ANSWER, QUESTION, Rig, drafts, ends, rig
from tests.toys import filled_store

REQUEST = Request(question=QUESTION, collection="documents")
PACE_S = 0.05


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@pytest.fixture
async def rigged(store: ChromaStore) -> AsyncIterator[Rig]:
    async with rig(store, drafters=2) as made:
        for server in (*made.drafters, *made.verifiers):
            server.api.pace_s = PACE_S
        yield made


def in_mid_draft(rigged: Rig) -> bool:
    return sum(server.api.sent for server in rigged.drafters) >= 6


def in_verification(rigged: Rig) -> bool:
    return any(server.running for server in rigged.verifiers)


async def assert_all_stopped(rigged: Rig) -> None:
    """No prompt is in work within a second, for the servers and for us, and no request stays open."""
    assert await rigged.idle(within_s=1)
    assert rigged.drafter.running == rigged.verifier.running == 0
    sent = sum(server.api.sent for server in rigged.drafters)
    for server in (*rigged.drafters, *rigged.verifiers):
        server.api.pace_s = server.api.read_s = 0.0
        server.fault = None
    trace = await rigged.ask()
    assert trace.answer is not None
    assert trace.answer.text == ANSWER
    assert sum(server.api.sent for server in rigged.drafters) > sent


@pytest.fixture(params=[False, True], ids=["in one pass", "eager"])
async def either(store: ChromaStore, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """Both ways to verify."""
    async with rig(store, drafters=2, eager=request.param) as made:
        for server in (*made.drafters, *made.verifiers):
            server.api.pace_s = PACE_S
        yield made


@pytest.mark.parametrize("reached", [in_mid_draft, in_verification])
async def test_a_cancelled_run_frees_the_servers(either: Rig, reached: Callable[[Rig], bool]) -> None:
    rigged = either
    rigged.verifiers[0].api.read_s = 5.0
    task = asyncio.create_task(rigged.ask())
    assert await until(lambda: reached(rigged), within_s=5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await until(lambda: any(one.disconnects for one in (*rigged.drafters, *rigged.verifiers)))
    await assert_all_stopped(rigged)


async def test_a_reader_that_leaves_frees_the_servers(rigged: Rig) -> None:
    async with aclosing(rigged.pipeline.run(REQUEST)) as events:
        async for event in events:
            if isinstance(event, DraftToken):
                break
    await assert_all_stopped(rigged)


async def test_stop_on_the_page_frees_the_servers(rigged: Rig, tmp_path: Path) -> None:
    runs = Runs(TraceStore(tmp_path / "traces.db"), deadline_s=30)
    run_id = runs.start(rigged.pipeline, REQUEST)
    assert await until(lambda: in_mid_draft(rigged), within_s=5)
    assert await runs.stop(run_id)
    await assert_all_stopped(rigged)


@pytest.mark.parametrize("role", ["drafter", "verifier"])
async def test_a_deadline_ends_a_run_over_a_server_that_hangs(store: ChromaStore, role: Role) -> None:
    async with rig(store) as made:
        (server,) = made.servers(role)
        server.fault = Fault(
            kind="slow", seconds=0.4
        )  # below the stall limit, so only the deadline can end it
        server.api.pace_s = 0.4
        log = Recording()
        began = asyncio.get_running_loop().time()
        await log.record(made.pipeline, REQUEST, deadline_s=0.7)
        assert asyncio.get_running_loop().time() - began < 1.7
        last = log.events[-1]
        assert isinstance(last, RunCancelled)
        assert "SPECRAG_DEADLINE_S" in last.reason
        assert fold(log.events).status == "cancelled"
        await assert_all_stopped(made)


async def test_cancelling_does_not_wait_for_a_second_try(store: ChromaStore) -> None:
    """With one server the second try comes after a pause, and with a server that asks for it a long one."""
    async with rig(store) as made:
        (server,) = made.drafters
        server.fault = Fault(kind="status", status=429, retry_after="5")
        task = asyncio.create_task(made.ask())
        assert await until(lambda: server.struck >= 1)
        began = asyncio.get_running_loop().time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.get_running_loop().time() - began < 0.5
        await assert_all_stopped(made)


async def test_cancelling_while_a_server_does_not_answer_the_probe(store: ChromaStore) -> None:
    async with rig(store, connect=False) as made:
        (server,) = made.drafters
        server.fault = Fault(kind="hang", on="/v1/models")
        task = asyncio.create_task(made.ask())
        assert await until(lambda: server.struck >= 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await assert_all_stopped(made)


async def test_eight_cancelled_runs_leave_no_connection(rigged: Rig) -> None:
    tasks = [asyncio.create_task(rigged.ask()) for _ in range(8)]
    assert await until(lambda: in_mid_draft(rigged), within_s=5)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await rigged.idle(within_s=1)
    busy: list[FakeServer] = [*rigged.drafters, *rigged.verifiers]
    assert sum(server.disconnects for server in busy) >= 8
    await rigged.drafter.aclose()
    await rigged.verifier.aclose()
    assert await until(lambda: not any(server.open_connections for server in busy), within_s=1)
    await assert_all_stopped(rigged)


async def test_a_draft_that_fails_leaves_no_request_behind(store: ChromaStore) -> None:
    """Texts are tokenised at once; when one is refused, nobody wants the others any more."""
    left = []
    for nth in range(3, 7):
        async with rig(store) as made:
            (server,) = made.drafters
            server.fault = Fault(kind="status", status=400, on="/tokenize", skip=nth)
            server.api.tokenise_s = 0.5
            (outputs,) = await drafts(made.drafter, 1)
            assert ends([outputs])[0].finish_reason == "error"
            left.append(not await until(lambda server=server: server.api.handling == 0, within_s=0.3))  # type: ignore[misc]
    assert not any(left), left
