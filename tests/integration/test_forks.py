"""Forks and follow-ups on the real weights: a law, and how far the embedded model's rewriting can be trusted."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.follow_up import fault, stands_alone
from specrag.forking import fork
from specrag.library.library import SAMPLE
from specrag.pipelines.base import Request
from specrag.sample import ensure_sample
from specrag.tracing.codec import from_json, to_json
from specrag.tracing.trace import Trace, fold
from specrag.types import Draft, Exchange, StepName

pytestmark = pytest.mark.integration
QUESTION = "What is the maximum load of the Larkspur 3?"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory, embedder_path: Path, model_path: Path) -> Iterator[Parts]:
    home = tmp_path_factory.mktemp("home")
    settings = load_settings(
        home=home, embedder=str(embedder_path), drafter=str(model_path), verifier=str(model_path)
    )
    made = Parts(settings, in_memory=True)
    ensure_sample(made.indexer)
    yield made
    made.close()


async def run(parts: Parts, request: Request) -> Trace:
    async with aclosing(parts.speculative.run(request)) as events:
        return fold([event async for event in events])


@pytest.fixture(scope="module")
def parent(parts: Parts) -> Trace:
    return asyncio.run(run(parts, Request(question=QUESTION, collection=SAMPLE)))


def untimed(trace: Trace) -> list[Draft]:
    return [
        replace(draft, tokens=tuple(replace(token, at_ms=None) for token in draft.tokens))
        for draft in trace.drafts
    ]


@pytest.mark.parametrize("step", ["partition", "draft", "verify"])
async def test_what_is_done_anew_comes_out_as_before(parts: Parts, parent: Trace, step: StepName) -> None:
    """Drafts are greedy: under the same settings, seed and models a fork is its parent, token by token."""
    child = await run(parts, fork(from_json(to_json(parent)), step))
    assert child.subsets == parent.subsets
    assert child.spots == parent.spots
    assert untimed(child) == untimed(parent)
    assert child.decision == parent.decision
    assert child.answer == parent.answer


async def test_the_prompts_of_real_models_explain_their_tokens(parent: Trace) -> None:
    """The verifier's prompt is told as its tokenizer has it, special tokens included."""
    read = sum(prompt.tokens for prompt in parent.prompts)
    assert read == parent.usage.verifier.prompt_tokens > 0
    for draft in parent.drafts:
        (prompt,) = (one for one in parent.prompts if one.draft == draft.subset_id)
        assert prompt.text.startswith("<|im_start|>")
        assert f"Answer: {draft.answer}" in prompt.text


async def test_a_follow_up_on_the_real_model_is_asked_about_the_same_thing(parts: Parts) -> None:
    """Whichever way the question was made, it names what the conversation is about."""
    earlier = (Exchange(question=QUESTION, answer="At most 160 kilograms."),)
    trace = await run(
        parts, Request(question="And how much does it cost?", collection=SAMPLE, earlier=earlier)
    )
    (span,) = (span for span in trace.spans if span.name == "rewrite")
    assert trace.status == "done"
    assert trace.rewritten is not None
    assert "Larkspur 3" in trace.rewritten
    if span.attributes["how"] == "model":
        assert fault(trace.rewritten, trace.question, earlier) is None
        assert stands_alone(trace.rewritten)
    rewriting = [prompt for prompt in trace.prompts if prompt.step == "rewrite"]
    assert [prompt.role for prompt in rewriting] == ["verifier"]
