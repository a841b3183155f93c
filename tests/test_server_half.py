"""Servers that are half there: what whole calls must bear."""

import asyncio

import pytest

from specrag.errors import ModelError
from specrag.models.base import End, ScoreRequest
from specrag.prompts import REFLECTION_CHOICE, verify_conversation
from tests.fake_server.faults import Fault
from tests.fake_server.rig import LINES, drafts, ends, judge, model, write
from tests.fake_server.server import FakeServer

REQUEST = ScoreRequest(
    conversation=verify_conversation("Who?", "It says so.", "Ada"), choice=REFLECTION_CHOICE
)


async def test_one_dead_server_of_a_pool_costs_no_question_its_scores() -> None:
    """Also when its rest is over and it is looked at again."""
    with FakeServer(write, judge=judge) as alive, FakeServer(write, judge=judge) as dead:
        dead.stop()
        async with model("verifier", dead, alive, key=None) as made:
            await made.connect()
            for _ in range(3):
                await asyncio.sleep(1.1)
                (scores,) = await made.score([REQUEST])
                assert scores.spans["answer"]


async def test_two_dead_servers_of_three_cost_no_draft() -> None:
    with FakeServer(write) as first, FakeServer(write) as second, FakeServer(write) as alive:
        async with model("drafter", first, second, alive, key=None) as made:
            await made.connect()
            first.stop()
            second.stop()
            assert all(end.finish_reason == "stop" for end in ends(await drafts(made)))
            await asyncio.sleep(1.1)
            assert all(end.finish_reason == "stop" for end in ends(await drafts(made)))


async def test_nothing_asked_is_nothing_answered() -> None:
    with FakeServer(write) as server:
        async with model("drafter", server, key=None) as made:
            assert await made.score([]) == []
            assert [output async for output in made.generate([], LINES)] == []
            assert not server.requests


async def test_a_model_that_takes_the_place_of_another_is_refused() -> None:
    """Ids and scores of two models must never meet in one pool, whoever tokenises."""
    with FakeServer(write, model="good-8b") as first, FakeServer(write, model="other-1b") as second:
        second.stop()
        async with model("drafter", first, second, key=None) as made:
            await made.connect()
            second.start()
            await asyncio.sleep(1.1)
            for _ in range(2):
                for outputs in await drafts(made, 4):
                    assert isinstance(outputs[-1], End)
                    assert outputs[-1].finish_reason == "stop"
            assert second.completions == 0


async def test_a_single_server_that_comes_back_with_another_model_says_so() -> None:
    with FakeServer(write, model="good-8b") as server:
        async with model("verifier", server, key=None) as made:
            await made.connect()
            server.stop()
            server.api.model = "other-1b"
            with pytest.raises(ModelError):
                await made.score([REQUEST])
            server.start()
            with pytest.raises(ModelError, match="“good-8b” is wanted and other-1b served"):
                await made.score([REQUEST])


async def test_an_answer_of_no_shape_at_all_is_a_sentence_at_the_start() -> None:
    with FakeServer(write) as server:
        server.fault = Fault(kind="odd_shape")
        async with model("drafter", server, key=None) as made:
            with pytest.raises(ModelError, match="SPECRAG_DRAFTER_URL"):
                await asyncio.to_thread(made.connect_now)
