"""Servers that come back, or that are only odd, and many questions while some of them die: nothing is lost."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from specrag.retrieval.chroma import ChromaStore
from specrag.types import Role
from tests.fake_server import Fault
from tests.fake_server.cases import (
    FAULTS,
    asked,
    assert_right,
    assert_told,
    assert_works_again,
    stall,
)
from tests.fake_server.rig import ANSWER, KEY, rig, said
from tests.toys import filled_store


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


@pytest.fixture(autouse=True)
def _no_key_in_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert KEY not in caplog.text
    assert KEY not in "".join(str(record.__dict__) for record in caplog.records)


BARELY = {
    "restarts": Fault(kind="restart", times=1),
    "restarts in the middle": Fault(kind="restart", after_tokens=3, times=1),
    "503 once": Fault(kind="status", status=503, times=1),
    "malformed once": Fault(kind="malformed", times=1),
    "slow": Fault(kind="slow", seconds=0.01),
    "no [DONE]": Fault(kind="no_done"),
    "an older server": Fault(kind="no_logprob_token_ids"),
}


@pytest.mark.parametrize("role", ["drafter", "verifier"])
@pytest.mark.parametrize("name", BARELY)
async def test_a_single_server_that_recovers_or_is_only_odd_changes_nothing(
    store: ChromaStore, role: Role, name: str
) -> None:
    async with rig(store) as rigged:
        expected = await asked(rigged)
        (server,) = rigged.servers(role)
        server.fault = BARELY[name]
        assert_right(await asked(rigged), expected)
        await assert_works_again(rigged, expected)


async def test_a_server_that_is_down_at_the_start_is_used_once_it_is_up(store: ChromaStore) -> None:
    async with rig(store, connect=False) as rigged:
        for server in (*rigged.drafters, *rigged.verifiers):
            server.stop()
        trace = await asked(rigged)
        assert trace.status == "failed"
        assert_told(trace, rigged, "drafter")
        for server in (*rigged.drafters, *rigged.verifiers):
            server.start()
        trace = await asked(rigged)
        assert trace.answer is not None
        assert trace.answer.text == ANSWER


TOKENISING = ("down", "silent", "429 with Retry-After", "500", "malformed", "a proxy's page")


@pytest.mark.parametrize("role", ["drafter", "verifier"])
@pytest.mark.parametrize("name", TOKENISING)
async def test_one_of_two_servers_fails_to_tokenise(store: ChromaStore, role: Role, name: str) -> None:
    """Prompts are tokenised by the servers too, before anything else."""
    async with rig(store) as rigged:
        expected = await asked(rigged)
    fault = replace(FAULTS[name], on="/tokenize")
    async with rig(store, drafters=2, verifiers=2, stall_s=stall(fault)) as rigged:
        rigged.servers(role)[0].fault = fault
        assert_right(await asked(rigged), expected)
        assert rigged.servers(role)[0].struck > 0
        await assert_works_again(rigged, expected)


@pytest.mark.parametrize("role", ["drafter", "verifier"])
async def test_a_server_that_comes_back_with_another_model_is_told_of(store: ChromaStore, role: Role) -> None:
    async with rig(store) as rigged:
        expected = await asked(rigged)
        (server,) = rigged.servers(role)
        server.stop()
        server.api.model = "another"
        server.start()
        trace = await asked(rigged)
        assert_told(trace, rigged, role)
        assert "does not serve this model" in said(trace)
        server.stop()
        server.api.model = role
        await assert_works_again(rigged, expected)


async def test_thirty_two_questions_while_one_server_of_each_role_dies(store: ChromaStore) -> None:
    async with rig(store, drafters=2, verifiers=2) as rigged:
        expected = await asked(rigged)
        for server in (rigged.drafters[1], rigged.verifiers[1]):
            server.fault = Fault(kind="crash", after_tokens=2)
        for trace in await asyncio.gather(*(rigged.ask(60) for _ in range(32))):
            assert_right(trace, expected)
        assert await rigged.idle()
