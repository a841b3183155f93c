"""Prompts in the trace: all that the models read, each with its tokens, and never without bounds."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from specrag.build import PIPELINES
from specrag.models.scripted import ScriptedModel, Written
from specrag.prompts import SYNTHESIS_INSTRUCTION, VERIFY_INSTRUCTION
from specrag.retrieval.chroma import ChromaStore
from specrag.sent import KEPT_CHARACTERS, shortened
from specrag.tracing.trace import Trace, fold
from specrag.types import PipelineName
from tests.contracts.test_pipelines import QUESTION, scripted, write
from tests.toys import events_of, filled_store, tools


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


async def trace_of(store: ChromaStore, name: PipelineName, **settings: Any) -> Trace:
    made = PIPELINES[name](tools(store, scripted(name="small"), scripted(name="large"), **settings))
    return fold(await events_of(made, QUESTION))


@pytest.mark.parametrize(
    ("name", "settings", "steps"),
    [
        ("standard", {}, ["answer"]),
        ("drafter", {}, ["answer"]),
        ("multihop", {}, ["note", "answer"]),
        ("speculative", {}, ["verify"]),
        ("speculative", {"grounded": True}, ["verify"]),
        ("speculative", {"eager": True}, ["verify"]),
        ("speculative", {"decision": "synthesise"}, ["verify", "synthesise"]),
        ("speculative", {"threshold": 1.0}, ["verify", "fallback"]),
        ("speculative", {"direct_passages": 50}, ["answer"]),
    ],
)
async def test_the_prompts_explain_every_token_that_was_read(
    store: ChromaStore, name: PipelineName, settings: dict[str, Any], steps: list[str]
) -> None:
    trace = await trace_of(store, name, **settings)
    assert list(dict.fromkeys(prompt.step for prompt in trace.prompts)) == steps
    assert {prompt.step for prompt in trace.prompts} <= {span.name for span in trace.spans}
    read: Counter[str] = Counter(drafter=sum(draft.prompt_tokens for draft in trace.drafts))
    for prompt in trace.prompts:
        read[prompt.role] += prompt.tokens
        assert prompt.tokens > 0
        assert QUESTION in prompt.text
    assert read["drafter"] == trace.usage.drafter.prompt_tokens
    assert read["verifier"] == trace.usage.verifier.prompt_tokens


@pytest.mark.parametrize("grounded", [False, True])
async def test_a_verifying_prompt_is_that_of_its_draft(store: ChromaStore, grounded: bool) -> None:
    """Each draft is read on a branch of its own; which text belongs to which draft must be right."""
    trace = await trace_of(store, "speculative", grounded=grounded)
    for draft in trace.drafts:
        own = [prompt for prompt in trace.prompts if prompt.draft == draft.subset_id]
        assert len(own) == 1 + grounded
        assert all(draft.answer in prompt.text and draft.rationale in prompt.text for prompt in own)
        assert own[0].text.startswith(VERIFY_INSTRUCTION)


async def test_a_synthesis_shows_what_it_was_written_from(store: ChromaStore) -> None:
    trace = await trace_of(store, "speculative", decision="synthesise")
    (prompt,) = (prompt for prompt in trace.prompts if prompt.step == "synthesise")
    assert prompt.text.startswith(SYNTHESIS_INSTRUCTION)
    assert prompt.draft is None


async def test_a_prompt_that_was_refused_was_not_read(store: ChromaStore) -> None:
    """It did not fit, fewer passages did: one prompt was paid for, and one is told."""
    refused: list[str] = []

    def choosy(text: str) -> Written:
        if len(refused) < 1:
            refused.append(text)
            raise RuntimeError("too long")
        return write(text)

    model = ScriptedModel(choosy)
    model.info = type(model.info)(
        name="tiny", parameters=0, device="none", dtype="none", context=90
    )  # too small for what it is asked, as the script says
    trace = fold(await events_of(PIPELINES["standard"](tools(store, model)), QUESTION))
    assert trace.status == "done"
    assert sum(prompt.tokens for prompt in trace.prompts) == trace.usage.verifier.prompt_tokens


def test_a_prompt_of_great_length_is_kept_by_its_ends() -> None:
    text = "a" * KEPT_CHARACTERS + "b" * 5_000
    kept = shortened(text)
    assert len(kept) < KEPT_CHARACTERS + 100
    assert kept.startswith("aaa")
    assert kept.endswith("bbb")
    assert "5,000 characters are not kept" in kept
    assert shortened("short") == "short"
