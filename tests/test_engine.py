"""The token tree against separate passes and the padded batch, and who may use it: on small made-up models."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GraniteConfig,
    Llama4TextConfig,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    Phi3Config,
    PretrainedConfig,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
)

from specrag.models.engine import TOLERANCE, BatchEngine, Engine, TreeEngine, choose
from specrag.models.packed import pack
from specrag.types import Precision

SMALL: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
PROMPTS = [
    [5, 6, 7, 8, 20, 21, 22],
    [5, 6, 7, 8, 30],
    [5, 6, 7, 8, 20, 21, 40, 41, 42, 43],
    [60, 61],
]


def made(config: PretrainedConfig) -> Any:
    torch.manual_seed(0)
    own = copy.deepcopy(config)  # an engine writes into its model's
    model: Any = AutoModelForCausalLM.from_config(own)  # type: ignore[no-untyped-call]
    for parameter in model.parameters():  # larger than usual, so that a wrong mask shows
        parameter.data.normal_(0, 0.3) if parameter.dim() > 1 else None
    return model.train(mode=False)


def llama() -> Any:
    return made(LlamaConfig(**SMALL))


def alone(model: Any, ids: list[int]) -> torch.Tensor:
    """Log-probabilities (n, V) by the model itself, one sequence in one pass."""
    with torch.inference_mode():
        logits: torch.Tensor = model(input_ids=torch.tensor([ids])).logits[0]
        return logits.log_softmax(-1)


def together(engine: Engine, prompts: list[list[int]]) -> list[torch.Tensor]:
    with torch.inference_mode():
        logits = engine.read(prompts, [list(range(len(ids))) for ids in prompts])
    return [one.log_softmax(-1) for one in logits]


@pytest.mark.parametrize("engine", [TreeEngine, BatchEngine])
def test_one_pass_over_all_equals_a_pass_for_each(engine: Callable[[Any], Engine]) -> None:
    expected = [alone(llama(), ids) for ids in PROMPTS]
    for got, wanted in zip(together(engine(llama()), PROMPTS), expected, strict=True):
        assert (got - wanted).abs().max() < TOLERANCE


@pytest.mark.parametrize("engine", [TreeEngine, BatchEngine])
def test_decoding_goes_on_as_if_each_row_were_alone(engine: Callable[[Any], Engine]) -> None:
    """Also after a row has left: what it kept must not reach the others."""
    made_engine = engine(llama())
    said = [[70, 71, 72], [73, 74, 75], [76, 77, 78], [79, 80, 81]]
    with torch.inference_mode():
        logits, rows = made_engine.begin(PROMPTS, room=3)
        found = [list(logits)]
        found.append(list(rows.step([one[0] for one in said])))
        rows.keep([0, 2, 3])
        found.append(list(rows.step([said[row][1] for row in (0, 2, 3)])))
        rows.keep([1])
        found.append(list(rows.step([said[2][2]])))
    for step, alive in enumerate(((0, 1, 2, 3), (0, 1, 2, 3), (0, 2, 3), (2,))):
        for got, row in zip(found[step], alive, strict=True):
            expected = alone(llama(), [*PROMPTS[row], *said[row][:step]])[-1]
            assert (got.log_softmax(-1) - expected).abs().max() < TOLERANCE


def test_the_tree_reads_a_shared_prefix_once() -> None:
    read: list[int] = []
    model = llama()
    model.get_input_embeddings().register_forward_pre_hook(lambda _, given: read.append(given[0].numel()))
    together(TreeEngine(model), PROMPTS)
    assert read == [4 + 2 + 1 + 1 + 4 + 2]


TREE: dict[str, PretrainedConfig] = {
    "llama": LlamaConfig(**SMALL),
    "mistral": MistralConfig(**SMALL, sliding_window=None),
    "qwen2": Qwen2Config(**SMALL),
    "qwen3": Qwen3Config(**SMALL, head_dim=8),
    "gemma": GemmaConfig(**SMALL, head_dim=8),
    "phi3": Phi3Config(**SMALL, pad_token_id=0),
    "olmo2": Olmo2Config(**SMALL),
    "granite": GraniteConfig(**SMALL),
    "gpt2": GPT2Config(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=256),
}
BATCH: dict[str, PretrainedConfig] = {
    "mistral with a window": MistralConfig(**SMALL, sliding_window=48),
    "gemma2, soft caps and windows": Gemma2Config(**SMALL, head_dim=8, sliding_window=48),
    "gemma3, windows in some layers": Gemma3TextConfig(**SMALL, head_dim=8, sliding_window=48),
    "qwen2-moe, a window only in its mask": Qwen2MoeConfig(
        **SMALL,
        sliding_window=48,
        use_sliding_window=True,
        max_window_layers=0,
        num_experts=2,
        num_experts_per_tok=1,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
    ),
    "llama4, attention in chunks": Llama4TextConfig(
        **SMALL, attention_chunk_size=48, num_local_experts=2, head_dim=8
    ),
    "bloom, biases by distance": BloomConfig(vocab_size=97, hidden_size=32, n_layer=2, n_head=4),
}
LONG = [[(7 * place + start) % 90 + 2 for place in range(80)] for start in (0, 3)]
"""Longer than any window above, and than the self-check's own sequences."""


@pytest.mark.parametrize("family", [*TREE, *BATCH])
def test_every_family_gets_the_engine_that_gives_its_own_probabilities(family: str) -> None:
    config = {**TREE, **BATCH}[family]
    engine = choose(made(config))
    assert engine.name == ("tree" if family in TREE else "batch")
    prompts = [*PROMPTS, *LONG]
    for got, ids in zip(together(engine, prompts), prompts, strict=True):
        assert (got - alone(made(config), ids)).abs().max() < TOLERANCE


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("float16", 0.05), ("plain", 1e-6)])
def test_packed_weights_give_the_same_probabilities(precision: Precision, tolerance: float) -> None:
    model = llama()
    expected = alone(model, PROMPTS[2])
    with torch.inference_mode():
        got = pack(model, precision)
    assert got in (precision, "float32", "plain")
    assert (alone(model, PROMPTS[2]) - expected).abs().max() < tolerance


def test_a_layer_whose_packed_form_would_be_wrong_stays_as_it_is() -> None:
    """Half precision ends at 65504: such a weight must not silently become another one."""
    model = llama()
    model.lm_head.weight.data[0, 0] = 1e6
    with torch.inference_mode():
        pack(model, "float16")
    given = torch.ones((1, 2, 32))
    assert model.lm_head(given)[0, 0, 0] == pytest.approx(1e6, rel=1e-3)
