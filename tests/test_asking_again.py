"""Whole runs over servers whose model would rather ask again than answer: no line begins with the word that asks."""

import pytest

from specrag.models.scripted import Written
from specrag.pipelines.standard import StandardPipeline
from specrag.tracing.trace import Trace, fold
from tests.fake_server.rig import judge, model
from tests.fake_server.server import FakeServer
from tests.toys import events_of, filled_store, pipeline, tools


async def _run(question: str) -> Trace:
    again: Written = {"rationale": " what they stand for.", "answer": " what they stand for."}
    with FakeServer(lambda _: again) as server, FakeServer(lambda _: again, judge=judge) as other:
        async with model("drafter", server, key="") as drafter, model("verifier", other, key="") as verifier:
            return fold(await events_of(pipeline(filled_store(), drafter, verifier), question))


async def test_nor_does_an_answer_from_all_passages() -> None:
    """Standard RAG has no draft that could hand the word on."""
    again: Written = {"answer": " what they stand for."}
    with FakeServer(lambda _: again) as server:
        async with model("verifier", server, key="") as verifier:
            standard = StandardPipeline(tools(filled_store(), verifier))
            asked = [
                fold(await events_of(standard, one)) for one in ("What does it hold?", "How heavy is it?")
            ]
    said = [trace.answer.text for trace in asked if trace.answer]
    assert [text.casefold().startswith("what") for text in said] == [False, True]


@pytest.mark.parametrize(("question", "again"), [("What does it hold?", False), ("How heavy is it?", True)])
async def test_a_draft_begins_with_what_was_asked_only_where_nobody_asked_so(
    question: str, *, again: bool
) -> None:
    trace = await _run(question)
    assert trace.drafts
    for draft in trace.drafts:
        for part in (draft.rationale, draft.answer):
            assert part.strip()
            assert part.strip().startswith("what") == again, part
