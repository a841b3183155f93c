"""The sample collection on the real weights: what a first visitor sees.

The untuned 135M model is often wrong, and these tests say where: the founder is not found. What they pin is that
every example question runs to a decision, that the others are answered rightly, and that of the planted
contradiction both figures are shown and the newer page wins: by its date, since the scores hardly tell the two apart.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.library.library import SAMPLE
from specrag.pipelines.base import Request
from specrag.sample import SampleQuestion, ensure_sample, questions
from specrag.tracing.trace import Trace, TraceFold

pytestmark = pytest.mark.integration
ANSWERED = (
    "How much energy does the Larkspur 3 battery hold?",
    "What is the maximum load of the Larkspur 3?",
    "How long is the warranty on the frame of the Larkspur 3?",
    "How long does a full charge of the Larkspur 3 battery take?",
    "How much does the Larkspur 3 cost since January 2025?",
)


def right(answer: str, question: SampleQuestion) -> bool:
    """Whether an accepted string stands in the answer, not inside a longer word or number."""
    return any(
        re.search(rf"(?<![\w.,]){re.escape(accepted)}(?!\w)", answer, re.IGNORECASE)
        for accepted in question.answers
    )


async def ask(parts: Parts, question: str) -> Trace:
    folding = TraceFold()
    async with aclosing(parts.speculative.run(Request(question=question, collection=SAMPLE))) as events:
        async for event in events:
            folding.apply(event)
    return folding.trace


@pytest.fixture(scope="module")
def traces(
    tmp_path_factory: pytest.TempPathFactory, embedder_path: Path, model_path: Path
) -> Iterator[dict[str, Trace]]:
    home = tmp_path_factory.mktemp("home")
    settings = load_settings(
        home=home, embedder=str(embedder_path), drafter=str(model_path), verifier=str(model_path)
    )
    parts = Parts(settings, in_memory=True)
    ensure_sample(parts.indexer)
    yield {item.question: asyncio.run(ask(parts, item.question)) for item in questions()}
    parts.close()


def test_every_example_question_ends_in_a_decision(traces: dict[str, Trace]) -> None:
    assert len(traces) == 6
    for trace in traces.values():
        assert trace.status == "done"
        assert trace.decision is not None
        assert trace.answer is not None
        assert trace.answer.text


def test_at_least_four_of_the_six_are_answered_rightly_and_these_are(traces: dict[str, Trace]) -> None:
    known = {item.question: item for item in questions()}
    good = [text for text, trace in traces.items() if trace.answer and right(trace.answer.text, known[text])]
    assert set(ANSWERED) <= set(good)
    assert len(good) >= 4


def test_a_right_answer_cites_a_page_that_holds_it(traces: dict[str, Trace]) -> None:
    known = {item.question: item for item in questions()}
    for text in ANSWERED:
        trace = traces[text]
        assert trace.answer is not None
        cited = [trace.passage(passage_id) for passage_id in trace.answer.citations]
        assert any(passage and right(passage.text, known[text]) for passage in cited), text


def test_the_planted_contradiction_is_shown_and_the_newer_page_wins(traces: dict[str, Trace]) -> None:
    """One draft read the manual of 2023, another the bulletin of 2025; nobody is told one figure alone."""
    trace = traces[ANSWERED[1]]
    assert trace.answer is not None
    assert trace.decision is not None
    assert "160 kilograms" in trace.answer.text
    told = trace.decision.conflict or ""
    assert "160 kilograms" in told
    assert "180 kilograms" in told
    assert "The source of 2025-03-10 is the newer one." in told
