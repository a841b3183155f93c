"""Models of other families: what they do not bear they do not get, and their numbers stay their own."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    MambaConfig,
    PretrainedConfig,
)

from specrag.errors import ModelError
from specrag.models.loading import Loaded, context_of, load
from tests.test_engine import SMALL


def saved(config: PretrainedConfig, model_path: Path, folder: Path) -> Path:
    """A random model of some family with the tokenizer of the embedded one."""
    tokenizer = AutoTokenizer.from_pretrained(model_path)
    config.vocab_size = len(tokenizer)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    model.save_pretrained(folder)
    return folder


def loaded(folder: Path) -> Loaded:
    return load(folder, name="tiny", precision="float16", engine=None)


@pytest.mark.parametrize(
    ("rope", "context"),
    [
        ({"rope_type": "default", "rope_theta": 1e4}, 256),
        ({"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}, 256),
        (
            {
                "rope_type": "dynamic",
                "rope_theta": 1e4,
                "factor": 2.0,
                "original_max_position_embeddings": 64,
            },
            64,
        ),
    ],
)
def test_positions_that_depend_on_the_longest_row_end_where_they_begin_to(
    rope: dict[str, Any], context: int
) -> None:
    assert context_of(LlamaConfig(**SMALL, rope_parameters=rope)) == context


@pytest.mark.integration
def test_an_architecture_that_packing_breaks_runs_on_its_plain_weights(
    model_path: Path, tmp_path: Path
) -> None:
    """Mamba reads the weights of its layers itself."""
    config = MambaConfig(hidden_size=32, num_hidden_layers=2, state_size=4)
    made_of = loaded(saved(config, model_path, tmp_path))
    assert made_of.info.dtype == "float32"
    with torch.inference_mode():
        logits, _ = made_of.engine.begin([[5, 6, 7]], 1)
    assert logits.shape == (1, config.vocab_size)


@pytest.mark.integration
def test_a_chat_template_that_refuses_our_turns_is_one_sentence(model_path: Path, tmp_path: Path) -> None:
    folder = saved(LlamaConfig(**SMALL), model_path, tmp_path)
    (folder / "chat_template.jinja").write_text("{{ raise_exception('one turn only') }}", encoding="utf-8")
    with pytest.raises(ModelError, match="chat template of tiny cannot be used: one turn only"):
        loaded(folder)


@pytest.mark.integration
def test_a_folder_without_a_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tiny cannot be loaded as a causal language model"):
        loaded(tmp_path)


@pytest.mark.integration
def test_broken_weights_are_one_sentence(model_path: Path, tmp_path: Path) -> None:
    folder = saved(LlamaConfig(**SMALL), model_path, tmp_path)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelError, match="tiny cannot be loaded"):
        loaded(folder)
