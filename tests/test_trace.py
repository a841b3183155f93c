"""The trace as the fold of its events: whose tokens an answer keeps, and what a run cost that stopped early."""

from collections.abc import Iterator
from typing import Any

import pytest

from specrag.build import PIPELINES
from specrag.events import AnswerToken, DraftToken, Event, HopToken, RunCancelled
from specrag.models.scripted import ScriptedModel, Written
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.trace import Trace, fold
from specrag.types import PipelineName
from tests.toys import events_of, filled_store, pipeline, tools


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


def drafter(_: str) -> Written:
    return {"rationale": " The battery holds 640 watt-hours.", "answer": " 640 watt-hours"}


async def run(store: ChromaStore, text: str, **settings: Any) -> Trace:
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
    store: ChromaStore, text: str, settings: dict[str, Any]
) -> None:
    trace = await run(store, text, **settings)
    assert trace.answer is not None
    assert "".join(token.text for token in trace.answer_tokens) == text


@pytest.mark.parametrize(
    ("name", "settings", "kind", "written"),
    [
        ("speculative", {}, DraftToken, (7, 0)),
        ("speculative", {"threshold": 1.0}, AnswerToken, (18, 3)),
        ("speculative", {"decision": "synthesise"}, AnswerToken, (18, 3)),
        ("standard", {}, AnswerToken, (0, 3)),
        ("drafter", {}, AnswerToken, (3, 0)),
        ("multihop", {}, HopToken, (0, 3)),
    ],
)
async def test_a_run_that_is_stopped_has_spent_what_it_read_and_wrote(
    store: ChromaStore,
    *,
    name: PipelineName,
    settings: dict[str, Any],
    kind: type[Event],
    written: tuple[int, int],
) -> None:
    """A run that was cancelled while it drafted was told to have cost nothing."""
    verifier = ScriptedModel(lambda _: {"answer": " a b c d e f", "note": " a b c d e f"})
    model = ScriptedModel(lambda _: {"rationale": " one two three", "answer": " a b c d e f"})
    made = PIPELINES[name](tools(store, model, verifier, drafts=2, **settings))
    events = await events_of(made, "How much?")
    wanted = 7 if kind is DraftToken else 3
    last = [place for place, event in enumerate(events) if isinstance(event, kind)][wanted - 1]
    usage = fold([*events[: last + 1], RunCancelled(at_ms=1e9, reason="stopped")]).usage
    assert (usage.drafter.completion_tokens, usage.verifier.completion_tokens) == written
    whole = fold(events).usage
    reading, all_read = (
        (usage.drafter, whole.drafter)
        if kind is DraftToken or name == "drafter"
        else (usage.verifier, whole.verifier)
    )
    assert 0 < reading.prompt_tokens <= all_read.prompt_tokens
    assert fold([*events, RunCancelled(at_ms=1e9, reason="too late")]).usage == whole
