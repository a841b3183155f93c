"""Several servers behind one model: a cut draft goes on elsewhere, work is spread, and who fails rests.

The reference is always what one healthy server writes: the same pieces, with the same log-probabilities.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

import pytest

from specrag.errors import ModelError, ServerUnreachable
from specrag.models.base import Begin, End, Read
from specrag.models.server.model import ServerModel
from tests.fake_server import FakeServer, Fault, Kind, until
from tests.fake_server.rig import KEY, PATIENT_S, STALL_S, drafts, ends, judge, model, tokens, write
from tests.fake_server.toy import Vocabulary

FOUNDER = 1
"""The conversation whose draft has characters of several tokens."""
COUNT = len(Vocabulary().encode(" The firm was founded by Åda — 李雪 — Brennick.\n")) - 1
HALVES = [
    place
    for place in range(1, COUNT)
    if Vocabulary()
    .decode(Vocabulary().encode(" The firm was founded by Åda — 李雪 — Brennick.")[:place])
    .endswith("\ufffd")
]
"""Numbers of tokens after which a draft stands within a character."""
WHOLES = [place for place in range(1, COUNT) if place not in HALVES]


@asynccontextmanager
async def pool(
    count: int, *, stall_s: float = PATIENT_S, **settings: Any
) -> AsyncIterator[tuple[ServerModel, tuple[FakeServer, ...]]]:
    """A connected model over so many servers."""
    async with AsyncExitStack() as held:
        with ExitStack() as listening:
            servers = tuple(
                listening.enter_context(FakeServer(write, judge=judge, key=KEY, **settings))
                for _ in range(count)
            )
            held.push(listening.pop_all())
        made = await held.enter_async_context(model("drafter", *servers, stall_timeout_s=stall_s))
        await made.connect()
        yield made, servers


async def test_all_ends_well_without_a_fault() -> None:
    async with pool(1) as (made, _):
        for outputs in await drafts(made):
            assert [type(item) for item in outputs[:2]] == [Begin, Read]
            assert sum(isinstance(item, Begin | Read | End) for item in outputs) == 3
        founder = tokens((await drafts(made))[FOUNDER])
        assert "".join(text for part, text, _ in founder if part == "answer") == " Åda Brennick"


@pytest.mark.parametrize("kind", ["close", "hang", "malformed", "truncated", "stream_error", "crash"])
@pytest.mark.parametrize("after", [1, 2, 5, WHOLES[-1]])
async def test_a_draft_cut_in_mid_stream_goes_on_elsewhere_token_for_token(kind: Kind, after: int) -> None:
    async with pool(2, stall_s=STALL_S if kind == "hang" else PATIENT_S) as (made, (first, _)):
        expected = await drafts(made)
        first.fault = Fault(kind=kind, after_tokens=after)
        found = await drafts(made)
        assert first.struck > 0
        assert [tokens(outputs) for outputs in found] == [tokens(outputs) for outputs in expected]
        assert ends(found) == ends(expected)
        assert [sum(isinstance(item, Begin | Read | End) for item in outputs) for outputs in found] == [
            3,
            3,
            3,
        ]


@pytest.mark.parametrize("after", HALVES)
async def test_a_draft_cut_within_a_character_goes_on_elsewhere(after: int) -> None:
    async with pool(2) as (made, servers):
        expected = (await drafts(made))[FOUNDER]
        for server in servers:
            server.fault = Fault(kind="close", after_tokens=after, times=1)
        found = (await drafts(made))[FOUNDER]
        assert "".join(text for _, text, _ in tokens(found)) == "".join(
            text for _, text, _ in tokens(expected)
        )
        assert tokens(found) == tokens(expected)


@pytest.mark.parametrize(
    "settings", [{"tokens_per_event": 3}, {"tokens_per_event": 50}, {"keep_alive": True}]
)
async def test_several_tokens_in_an_event_and_comments_between_events_change_nothing(
    settings: dict[str, Any],
) -> None:
    """So vLLM sends tokens together to a client that is slow, or when it was started to."""
    async with pool(1) as (made, _):
        expected = await drafts(made)
    async with pool(1, **settings) as (made, _):
        found = await drafts(made)
    assert [tokens(outputs) for outputs in found] == [tokens(outputs) for outputs in expected]
    assert ends(found) == ends(expected)


async def test_a_second_failure_ends_one_draft_and_no_other() -> None:
    async with pool(2) as (made, servers):
        expected = await drafts(made)
        for server in servers:
            server.fault = Fault(kind="close", after_tokens=4, times=1)
        found = await drafts(made)
        assert sum(end.finish_reason == "error" for end in ends(found)) <= 1
        for outputs, whole in zip(found, expected, strict=True):
            assert tokens(outputs) == tokens(whole)[: len(tokens(outputs))]
        assert [tokens(outputs) for outputs in await drafts(made)] == [
            tokens(outputs) for outputs in expected
        ]


async def test_requests_are_spread_over_the_pool() -> None:
    async with pool(3, pace_s=0.05) as (made, servers):
        for server in servers:
            server.forget()
        found = await drafts(made, 30)
        assert all(end.finish_reason == "stop" for end in ends(found))
        assert all(8 <= server.api.most_running <= 12 for server in servers), [
            s.api.most_running for s in servers
        ]


async def test_the_least_busy_server_is_asked() -> None:
    async with pool(2) as (made, (slow, quick)):
        slow.api.pace_s = 0.2
        long = asyncio.create_task(drafts(made, 1))
        assert await until(lambda: slow.running == 1)
        slow.forget()
        quick.forget()
        for _ in range(3):
            await drafts(made, 1)
        assert quick.completions > 0
        assert slow.completions <= 1, "more than the second line of the draft that was there"
        await long


async def test_who_fails_rests_and_comes_back() -> None:
    async with pool(2) as (made, (first, second)):
        first.stop()
        assert all(end.finish_reason == "stop" for end in ends(await drafts(made)))
        first.start()
        first.forget()
        second.forget()
        await drafts(made)
        assert first.completions == 0, "a server that just failed was asked at once"
        assert second.completions > 0

        async def asked_again() -> None:
            while not first.completions:
                await drafts(made)

        async with asyncio.timeout(5):
            await asked_again()
        assert all(end.finish_reason == "stop" for end in ends(await drafts(made, 8)))


async def test_a_server_that_fails_again_rests_longer() -> None:
    async with pool(2) as (made, (first, _)):
        first.fault = Fault(kind="status", status=500)
        times = []

        async def struck(count: int) -> None:
            while first.struck < count:
                await drafts(made, 2)

        for count in (1, 2, 3):
            began = asyncio.get_running_loop().time()
            async with asyncio.timeout(10):
                await struck(count)
            times.append(asyncio.get_running_loop().time() - began)
        assert times[0] < 0.5 < times[1] < 1.7 < times[2] < 3.5, times


async def test_a_wait_that_the_server_asks_for_is_kept() -> None:
    async with pool(2) as (made, (first, _)):
        first.fault = Fault(kind="status", status=429, retry_after="2", times=1)
        await drafts(made, 2)
        first.forget()
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(6):
            while not first.completions:
                await drafts(made, 2)
        assert 1.5 < asyncio.get_running_loop().time() - began < 3.5


async def test_a_wait_that_the_server_asks_for_is_kept_though_older_requests_succeed() -> None:
    async with pool(2, pace_s=0.02) as (made, (first, _)):
        older = asyncio.create_task(drafts(made, 2))
        assert await until(lambda: first.running == 1)
        first.fault = Fault(kind="status", status=429, retry_after="3", times=1)
        await drafts(made, 2)
        assert first.struck == 1
        await older
        first.forget()
        await drafts(made, 4)
        assert first.completions == 0


async def test_all_down_is_said_at_once_and_names_the_setting() -> None:
    async with pool(2) as (made, servers):
        for server in servers:
            server.stop()
        for _ in range(2):
            found = ends(await drafts(made))
            assert all(end.finish_reason == "error" for end in found)
            assert all("SPECRAG_DRAFTER_URL" in (end.error or "") for end in found)
        for server in servers:
            server.start()
        assert all(end.finish_reason == "stop" for end in ends(await drafts(made)))


# connecting


async def test_one_server_that_answers_is_enough_to_connect() -> None:
    with FakeServer(write) as up, FakeServer(write) as down:
        down.stop()
        async with model("drafter", down, up) as made:
            assert (await made.connect()).name == "toy"
            assert all(end.finish_reason == "stop" for end in ends(await drafts(made)))


@pytest.mark.parametrize(
    ("settings", "wanted", "sentence"),
    [
        ({"model": "other"}, "drafter-7b", "SPECRAG_DRAFTER"),
        ({"key": "another"}, None, "SPECRAG_DRAFTER_KEY"),
    ],
)
async def test_what_a_person_must_change_is_named(
    settings: dict[str, Any], wanted: str | None, sentence: str
) -> None:
    with FakeServer(write, **settings) as server:
        async with model("drafter", server, model=wanted) as made:
            with pytest.raises(ModelError, match=sentence) as caught:
                await made.connect()
            assert not isinstance(caught.value, ServerUnreachable)
            assert KEY not in str(caught.value)
            if wanted:
                assert wanted in str(caught.value)
                assert "other" in str(caught.value)


async def test_nobody_there_is_said_with_the_address() -> None:
    with FakeServer(write) as server:
        server.stop()
        async with model("verifier", server) as made:
            with pytest.raises(ServerUnreachable, match="SPECRAG_VERIFIER_URL") as caught:
                await made.connect()
            assert server.url in str(caught.value)


async def test_two_servers_of_different_models_are_refused() -> None:
    with FakeServer(write, model="a-1b") as one, FakeServer(write, model="b-7b") as other:
        async with model("drafter", one, other) as made:
            with pytest.raises(ModelError, match="SPECRAG_DRAFTER_URL serve different models"):
                await made.connect()
