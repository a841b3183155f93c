"""Servers that fail in every way we know of, under whole runs: the right answer or one clear sentence, always.

Each test ends with another question that works, with no connection open, and with the key in no event, trace,
message or log record.
"""

import logging
from collections.abc import Iterator

import pytest

from specrag.retrieval.chroma import ChromaStore
from specrag.types import Role
from tests.fake_server.cases import (
    ALIKE,
    DRAFTING,
    FAULTS,
    LESS,
    USELESS,
    VERIFYING,
    asked,
    assert_right,
    assert_told,
    assert_works_again,
    same_scores,
    stall,
)
from tests.fake_server.rig import ANSWER, KEY, rig, written
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


async def test_without_a_fault_the_servers_draft_verify_and_answer(store: ChromaStore) -> None:
    async with rig(store) as rigged:
        trace = await asked(rigged)
        assert trace.answer is not None
        assert trace.answer.text == ANSWER
        assert trace.decision is not None
        assert trace.decision.kind == "selected"
        assert all(draft.scores.self_containment and draft.scores.self_reflection for draft in trace.drafts)
        assert {one.authorization for server in rigged.drafters for one in server.seen} == {f"Bearer {KEY}"}
        assert rigged.verifiers[0].requests["/v1/completions"] <= 5  # the probe's, and one for all drafts


@pytest.mark.parametrize("name", sorted(DRAFTING.keys() - ALIKE))
async def test_the_only_drafter_fails(store: ChromaStore, name: str) -> None:
    async with rig(store, stall_s=stall(DRAFTING[name])) as rigged:
        expected = await asked(rigged)
        rigged.drafters[0].fault = DRAFTING[name]
        trace = await asked(rigged)
        assert trace.status == "failed" or trace.answer is not None
        assert_told(trace, rigged, "drafter")
        await assert_works_again(rigged, expected)


@pytest.mark.parametrize("name", sorted(VERIFYING.keys() - ALIKE))
async def test_the_only_verifier_fails(store: ChromaStore, name: str) -> None:
    """The drafts are there; the best of them is the answer, and the decision says that nobody verified it."""
    async with rig(store, stall_s=stall(VERIFYING[name])) as rigged:
        expected = await asked(rigged)
        rigged.verifiers[0].fault = VERIFYING[name]
        trace = await asked(rigged)
        assert trace.status == "done"
        assert trace.answer is not None
        assert trace.answer.text == ANSWER
        assert written(trace) == written(expected)
        if name not in LESS or not same_scores(trace, expected):  # asked anew, it gives them in another way
            assert_told(trace, rigged, "verifier")
        await assert_works_again(rigged, expected)


@pytest.mark.parametrize("name", DRAFTING)
async def test_one_of_two_drafters_fails(store: ChromaStore, name: str) -> None:
    async with rig(store, drafters=2, stall_s=stall(DRAFTING[name])) as rigged:
        expected = await asked(rigged)
        rigged.drafters[0].fault = DRAFTING[name]
        trace = await asked(rigged)
        assert rigged.drafters[0].struck > 0
        if name not in USELESS:
            assert_right(trace, expected)
        elif written(trace) != written(expected) or not same_scores(trace, expected):
            assert_told(trace, rigged, "drafter")
        await assert_works_again(rigged, expected)


@pytest.mark.parametrize("name", VERIFYING)
async def test_one_of_two_verifiers_fails(store: ChromaStore, name: str) -> None:
    async with rig(store, verifiers=2, stall_s=stall(VERIFYING[name])) as rigged:
        expected = await asked(rigged)
        rigged.verifiers[0].fault = VERIFYING[name]
        trace = await asked(rigged)
        assert rigged.verifiers[0].struck > 0
        if name not in (*USELESS, *LESS):
            assert_right(trace, expected)
        elif written(trace) != written(expected) or not same_scores(trace, expected):
            assert_told(trace, rigged, "verifier")
        await assert_works_again(rigged, expected)


EAGER = ("down in the middle", "silent", "429 with Retry-After", "500", "malformed", "400")


@pytest.mark.parametrize("verifiers", [1, 2])
@pytest.mark.parametrize("name", EAGER)
async def test_a_verifier_fails_while_drafts_are_verified_one_by_one(
    store: ChromaStore, name: str, verifiers: int
) -> None:
    """Scores of some drafts only could not be compared: all drafts have theirs, or none."""
    async with rig(store, verifiers=verifiers, eager=True, stall_s=stall(FAULTS[name])) as rigged:
        expected = await asked(rigged)
        rigged.drafters[0].api.pace_s = 0.01
        rigged.verifiers[0].fault = FAULTS[name]
        trace = await asked(rigged)
        assert trace.answer is not None
        assert trace.answer.text == ANSWER
        if verifiers == 1 or name in USELESS:
            assert_told(trace, rigged, "verifier")
            assert len({draft.scores.self_reflection is None for draft in trace.drafts}) == 1
        else:
            assert_right(trace, expected)
        await assert_works_again(rigged, expected)


@pytest.mark.parametrize("role", ["drafter", "verifier"])
@pytest.mark.parametrize("name", USELESS[:-1])
async def test_a_server_that_is_of_no_use_is_left_for_the_other(
    store: ChromaStore, role: Role, name: str
) -> None:
    """One server with another model, another key or without probabilities does not halve what a pool can do."""
    async with rig(store, drafters=2, verifiers=2) as rigged:
        expected = await asked(rigged)
        rigged.servers(role)[0].fault = FAULTS[name]
        await asked(rigged)
        assert_right(await asked(rigged), expected)
