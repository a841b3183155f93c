"""Servers that are half there: what whole calls must bear."""

import asyncio
import math

import pytest

from specrag.errors import ModelError
from specrag.models.base import End, Piece, ScoreRequest
from specrag.models.render import Rendered
from specrag.models.server.scores import scores_of
from specrag.models.server.wire import Reading
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


async def test_a_token_may_hold_what_ends_lines_elsewhere() -> None:
    """Server-sent events end with a newline; U+2028 and its like are text within one."""
    said = "The firm\u2028was\x85founded by Ada Brennick."
    with FakeServer(lambda text: {"rationale": f" {said}", "answer": " Ada"}) as server:
        async with model("drafter", server, key=None) as made:
            (outputs,) = await drafts(made, 1)
            assert ends([outputs])[0].error is None
            written = "".join(item.text for item in outputs if isinstance(item, Piece))
            assert written.strip().startswith(said)


def test_an_option_that_is_not_even_among_the_likeliest_is_a_bound_and_said() -> None:
    """As if the last of them: 0 would make a draft certain of which only its likeliest tokens are known."""
    item = Rendered(ids=(1, 2), spans={})
    options = {"yes": {7}, "no": {8}}
    reading = Reading(prompt=None, following={7: math.log(0.6), 5: math.log(0.3), 6: math.log(0.01)})
    scores = scores_of(item, reading, options, ())
    assert scores.choice == {"yes": pytest.approx(0.6), "no": pytest.approx(0.01)}
    assert "a bound" in scores.notes[0]
    known = Reading(prompt=None, following={7: math.log(0.6), 8: math.log(0.3)})
    assert scores_of(item, known, options, ()).notes == ()
    neither = Reading(prompt=None, following={5: math.log(0.3)})
    assert scores_of(item, neither, options, ()).choice == {"yes": 0.0, "no": 0.0}
