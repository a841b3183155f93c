"""Traps of the algorithm that no other test would notice; docs/traps.md lists them all with their tests."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from specrag.models.base import Conversation, Segment, Turn
from specrag.models.engine import BatchEngine
from specrag.models.render import Renderer
from specrag.models.scripted import ScriptedModel
from specrag.prompts import REFLECTION_CHOICE
from specrag.retrieval.chroma import ChromaStore
from tests.test_speculative import extract, trace_of
from tests.toys import filled_store, pipeline


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


async def test_each_score_comes_from_the_model_and_the_prompt_it_is_named_after(store: ChromaStore) -> None:
    """rho_draft is the drafter's while it decodes, rho_SC the verifier's; neither may stand in for the other."""
    drafter, verifier = ScriptedModel(extract, logprob=-0.5), ScriptedModel(extract, logprob=-1.5)
    trace = await trace_of(pipeline(store, drafter, verifier))
    for draft in trace.drafts:
        assert draft.scores.draft == pytest.approx(math.exp(-0.5))
        assert draft.scores.self_containment == pytest.approx(math.exp(-1.5))
        assert {token.logprob for token in draft.tokens} == {-0.5}
        assert {token.logprob for token in draft.verifier_tokens} == {-1.5}


async def test_the_raw_sums_stay_in_the_trace(store: ChromaStore) -> None:
    """Whoever wants the paper's unnormalised products must be able to compute them."""
    drafter, verifier = ScriptedModel(extract, logprob=-0.5), ScriptedModel(extract, logprob=-1.5)
    trace = await trace_of(pipeline(store, drafter, verifier))
    for draft in trace.drafts:
        sums = draft.log_sums
        written = {
            part: sum(token.part == part for token in draft.tokens) for part in ("rationale", "answer")
        }
        assert (sums.rationale_tokens, sums.answer_tokens) == (written["rationale"], written["answer"])
        assert sums.rationale == pytest.approx(-0.5 * written["rationale"])
        assert sums.answer == pytest.approx(-0.5 * written["answer"])
        assert sums.self_containment == pytest.approx(-1.5 * len(draft.verifier_tokens))
        assert sums.self_containment_tokens == len(draft.verifier_tokens)


@pytest.mark.integration
def test_a_span_is_its_own_tokens_where_joined_text_would_be_cut_elsewhere(model_path: Path) -> None:
    """“bat” and “tery” are one token when joined; a boundary looked for in joined text would be off."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path)
    renderer = Renderer(tokenizer)
    segments = (Segment(text="Answer: the bat"), Segment(text="tery", span="answer"), Segment(text=" pack"))
    reply = Turn(role="assistant", segments=segments)
    asked = Turn(role="user", segments=(Segment(text="What?"),))
    rendered = renderer.render(Conversation(turns=(asked, reply)))
    start, end = rendered.spans["answer"]
    assert list(rendered.ids[start:end]) == renderer.encode("tery")
    assert renderer.encode("the battery pack") != [
        token for text in ("the bat", "tery", " pack") for token in renderer.encode(text)
    ]


@pytest.mark.parametrize(("option", "word"), [("yes", "yes"), ("no", "no")])
def test_an_option_counts_however_the_model_spells_it(option: str, word: str) -> None:
    """With and without a capital, with and without a space: each is another token with its own probability."""
    spellings = {word, word.capitalize(), f" {word}", f" {word.capitalize()}"}
    assert spellings <= set(REFLECTION_CHOICE.options[option])


@pytest.fixture(scope="module")
def counted_positions() -> Any:
    """A tiny model of random weights that knows every position by its number, as GPT-2 does.

    A model with rotary positions sees distances only and would forgive a shift of the whole row.
    """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    model.train(mode=False)
    return model


PROMPTS = ([5, 6, 7, 8, 9, 10, 11], [12, 13, 14], [15])


@pytest.mark.integration
def test_padding_changes_no_prediction(counted_positions: Any) -> None:
    """Rows of different lengths against each alone: read together, and decoded together on the left-padded side."""
    import torch

    engine = BatchEngine(counted_positions)
    with torch.inference_mode():
        logits, rows = engine.begin(PROMPTS, 2)
        following = rows.step([20, 21, 22])
        read = engine.read(PROMPTS, [list(range(len(ids))) for ids in PROMPTS])
        for number, ids in enumerate(PROMPTS):
            alone = _logits(counted_positions, ids)
            assert torch.allclose(read[number], alone, atol=1e-5)
            assert torch.allclose(logits[number], alone[-1], atol=1e-5)
            longer = _logits(counted_positions, [*ids, 20 + number])
            assert torch.allclose(following[number], longer[-1], atol=1e-5)


def _logits(model: Any, ids: Sequence[int]) -> Any:
    """Logits (n, V) of one sequence, by the model alone."""
    import torch

    return model(torch.tensor([list(ids)])).logits[0]
