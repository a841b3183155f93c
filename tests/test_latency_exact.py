"""Lines that end at their limit and nowhere else: what a measurement of lengths rests on."""

import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from specrag.models.base import End, Line, Output, Piece
from specrag.prompts import ANSWER_LABEL, RATIONALE_LABEL, draft_conversation
from tests.fake_server.faults import Fault
from tests.fake_server.rig import QUESTION, model, write
from tests.fake_server.server import FakeServer
from tests.test_rows import write as written

EXACT = (
    Line(part="rationale", max_tokens=4, label="R:", sentences=1, exact=True),
    Line(part="answer", max_tokens=3, label="A:", exact=True),
)
SERVED = (
    Line(part="rationale", max_tokens=23, label=RATIONALE_LABEL, sentences=1, exact=True),
    Line(part="answer", max_tokens=9, label=ANSWER_LABEL, exact=True),
)
LONG = tuple(replace(line, max_tokens=200) for line in SERVED)
"""More than the toy ever writes in one turn."""


def counts(outputs: Sequence[Output]) -> dict[str, int]:
    parts = [output.part for output in outputs if isinstance(output, Piece)]
    return {part: parts.count(part) for part in parts}


def test_newlines_and_end_tokens_do_not_end_an_exact_line() -> None:
    """A run that wrote less than it was asked for was faster for it, and the ratio of two runs meant nothing."""
    wishes = [0, "\n", "a", 0, *"xxx", 0, 0, "\n"]  # three wishes are ignored while the label is fed
    outputs, fed = written(wishes, EXACT)
    assert counts(outputs) == {"rationale": 4, "answer": 3}
    assert outputs[-1] == End(finish_reason="length", completion_tokens=7)
    assert fed.count("\nA:") == 1


async def test_a_server_writes_as_many_tokens_as_an_exact_line_has() -> None:
    """The toy ends its turn after one sentence; `ignore_eos` and `min_tokens` were not sent."""
    with FakeServer(write) as server:
        async with model("drafter", server) as drafter:
            asked = [draft_conversation(QUESTION, ())]
            async with aclosing(drafter.generate(asked, SERVED)) as outputs:
                found = [output async for _, output in outputs]
        bodies = [seen.body for seen in server.seen if seen.body.get("stream")]
    assert counts(found) == {"rationale": 23, "answer": 9}
    assert found[-1] == End(finish_reason="length", completion_tokens=32)
    assert [(body["max_tokens"], body["min_tokens"], body["ignore_eos"]) for body in bodies] == [
        (23, 23, True),
        (9, 9, True),
    ]


async def test_a_server_that_ends_when_it_likes_is_refused_and_not_asked_for_the_rest() -> None:
    """Each further request read the whole prompt again, and was timed as writing."""
    with FakeServer(write) as server:
        async with model("drafter", server) as drafter:
            server.fault = Fault(kind="own_length")
            asked = [draft_conversation(QUESTION, ())]
            async with aclosing(drafter.generate(asked, LONG)) as outputs:
                found = [output async for _, output in outputs]
    assert isinstance(found[-1], End)
    assert found[-1].error is not None
    assert re.search(r"it ends after \d+ tokens where \d+ were asked for", found[-1].error)
    exact = [seen for seen in server.seen if seen.body.get("ignore_eos")]
    assert len(exact) <= 2 * len(LONG)  # each line once more, as after any such fault
