"""The trace as the fold of its events: what stays of a text that the verifier wrote and that was put aside."""

from collections.abc import Iterator

import pytest

from specrag.models.scripted import ScriptedModel, Written
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.trace import Trace, fold
from tests.toys import events_of, filled_store, pipeline


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


def drafter(_: str) -> Written:
    return {"rationale": " The battery holds 640 watt-hours.", "answer": " 640 watt-hours"}


async def run(store: ChromaStore, text: str, **settings: object) -> Trace:
    """A run whose verifier writes `text`."""
    verifier = ScriptedModel(lambda _: {"answer": text})
    return fold(await events_of(pipeline(store, ScriptedModel(drafter), verifier, **settings), "How much?"))


@pytest.mark.parametrize("text", [" Not in the passages.", " The answer is:", " [2]"])
async def test_a_text_that_was_put_aside_leaves_no_tokens(store: ChromaStore, text: str) -> None:
    """The answer is a draft's; tokens of the rejected text would be shown and exported as its own."""
    trace = await run(store, text, decision="synthesise")
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    assert trace.answer_tokens == ()


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (" it holds 640 watt-hours [1], [2, 3].", {"decision": "synthesise"}),
        (" [1] it holds 640 watt-hours.", {"decision": "synthesise"}),
        (" it holds 640 watt-hours [1].", {"threshold": 1.0}),
        (" mRNA", {"threshold": 1.0}),
        (" it is not mentioned.", {"threshold": 1.0}),
    ],
)
async def test_the_tokens_of_the_answer_stay_as_they_were_written(
    store: ChromaStore, text: str, settings: dict[str, object]
) -> None:
    trace = await run(store, text, **settings)
    assert trace.answer is not None
    assert "".join(token.text for token in trace.answer_tokens) == text
