"""The ways to fail that whole runs are tried with, and what must hold after each."""

from dataclasses import asdict

import pytest

from specrag.tracing.codec import to_json
from specrag.tracing.trace import Trace
from specrag.types import Role, Scores
from tests.fake_server.faults import Fault
from tests.fake_server.rig import ANSWER, KEY, PATIENT_S, STALL_S, Rig, said, written

FAULTS = {
    "down": Fault(kind="crash"),
    "down in the middle": Fault(kind="crash", after_tokens=3),
    "closed in the middle": Fault(kind="close", after_tokens=3),
    "silent": Fault(kind="hang"),
    "silent in the middle": Fault(kind="hang", after_tokens=3),
    "slower than the stall limit": Fault(kind="slow", seconds=5),
    "429": Fault(kind="status", status=429),
    "429 with Retry-After": Fault(kind="status", status=429, retry_after="1"),
    "500": Fault(kind="status", status=500, message=f"Internal error for Bearer {KEY}"),
    "503": Fault(kind="status", status=503),
    "a proxy's page": Fault(kind="html"),
    "a proxy's error": Fault(kind="html", status=502),
    "malformed": Fault(kind="malformed"),
    "malformed in the middle": Fault(kind="malformed", after_tokens=3),
    "odd JSON": Fault(kind="odd_shape"),
    "error in the middle": Fault(kind="stream_error", after_tokens=3, message=f"key {KEY}"),
    "no log-probabilities": Fault(kind="no_logprobs"),
    "401": Fault(kind="status", status=401, message=f"Incorrect API key provided: {KEY}"),
    "404 of a model": Fault(kind="status", status=404, message="The model `drafter` does not exist."),
    "400": Fault(kind="status", status=400, message="Something is wrong with this request."),
}
"""Lasting ones."""
STREAMS = {"ends early": Fault(kind="truncated", after_tokens=3), "ends at once": Fault(kind="truncated")}
USELESS = ("no log-probabilities", "401", "404 of a model", "400")
"""After these another try is of no use, or not there."""
LESS = {
    "no prompt log-probabilities": Fault(kind="no_prompt_logprobs"),
    "prompt log-probabilities refused": Fault(kind="refuse_prompt_logprobs"),
    "a token too many": Fault(kind="extra_prompt_logprob"),
}
"""A server that gave scores when it was asked first, and gives them no longer."""
VERIFYING = {**FAULTS, **LESS}
DRAFTING = {**FAULTS, **STREAMS}
ALIKE = {"closed in the middle", "429", "a proxy's error", "503"}
"""To one server alone these are what others are, and each costs the pause before a second try."""


def stall(fault: Fault) -> float:
    return STALL_S if fault.kind in ("hang", "slow") else PATIENT_S


async def asked(rigged: Rig) -> Trace:
    trace = await rigged.ask()
    assert KEY not in to_json(trace)
    return trace


def assert_right(trace: Trace, expected: Trace) -> None:
    """As if nothing had happened: the same tokens, scores and answer."""
    assert trace.status == "done"
    assert trace.answer is not None
    assert trace.answer.text == ANSWER
    assert written(trace) == written(expected)
    assert [draft.error for draft in trace.drafts] == [None] * len(expected.drafts)
    assert same_scores(trace, expected)


def same_scores(trace: Trace, expected: Trace) -> bool:
    """Up to the rarest spellings of Yes and No, which a server that names the likeliest tokens leaves out."""
    return [_known(draft.scores) for draft in trace.drafts] == [
        pytest.approx(_known(draft.scores), abs=1e-4) for draft in expected.drafts
    ]


def _known(scores: Scores) -> dict[str, float]:
    return {name: value for name, value in asdict(scores).items() if value is not None}


def assert_told(trace: Trace, rigged: Rig, role: Role) -> None:
    """One sentence names the server and what to set or do."""
    told = said(trace)
    assert any(server.url in told for server in rigged.servers(role)), told
    assert f"The {role}'s server" in told
    assert any(
        word in told for word in (f"SPECRAG_{role.upper()}", "SPECRAG_STALL", "its log", "specrag doctor")
    ), told


async def assert_works_again(rigged: Rig, expected: Trace) -> None:
    for server in (*rigged.drafters, *rigged.verifiers):
        server.fault = None
        server.start()
    assert_right(await asked(rigged), expected)
    assert await rigged.idle()
