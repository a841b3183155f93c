"""From a folder to a model that can run: tokenizer, weights, their layout, and the engine that suits them.

What an architecture does not bear it does not get: weights that cannot be packed stay plain, attention that
does not fit a token tree is run as a padded batch. A folder that holds no usable model is one sentence.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specrag.errors import ModelError
from specrag.models.base import Conversation, Segment, Turn
from specrag.models.engine import ENGINES, Engine, EngineName, choose
from specrag.models.packed import pack
from specrag.models.render import Renderer
from specrag.types import ModelInfo, Precision

_log = logging.getLogger(__name__)

_TURNS = Conversation(
    turns=tuple(Turn(role=role, segments=(Segment(text="x"),)) for role in ("user", "assistant", "user"))
)
"""As many turns as the verifier's conversations have; some chat templates refuse that."""
_GROWING = frozenset({"dynamic", "longrope"})
"""Rotary positions whose frequencies follow from the longest row of a pass, beyond the original length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model of transformers with all that goes with it."""

    model: Any
    tokenizer: Any
    renderer: Renderer
    engine: Engine
    info: ModelInfo


def load(source: Path, *, name: str, precision: Precision, engine: EngineName | None) -> Loaded:
    """Load, pack and check the model in a folder; `engine` None lets the self-check choose.

    Raises:
        ModelError: the folder does not hold an instruction-tuned causal model that transformers can load.
    """
    from jinja2 import TemplateError
    from safetensors import SafetensorError

    failures = (OSError, ValueError, KeyError, ImportError, RuntimeError, AttributeError, SafetensorError)
    try:
        tokenizer = _tokenizer(source, name)
        renderer = Renderer(tokenizer)
        model, parameters, layout, made = _made(source, precision, engine)
        context = context_of(model.config.get_text_config())
    except (TemplateError, AssertionError) as error:
        raise ModelError(f"The chat template of {name} cannot be used: {error}") from error
    except failures as error:
        raise ModelError(f"{name} cannot be loaded as a causal language model: {error}") from error
    info = ModelInfo(
        name=name,
        parameters=parameters,
        device=str(model.device),
        dtype="float16 weights, float32 sums" if layout == "float16" else "float32",
        context=context,
    )
    return Loaded(model=model, tokenizer=tokenizer, renderer=renderer, engine=made, info=info)


def load_tokenizer(source: Path, *, name: str) -> Any:
    """The tokenizer in a folder, with a chat template that takes our conversations.

    Raises:
        ModelError: the folder does not hold one.
    """
    from jinja2 import TemplateError

    try:
        return _tokenizer(source, name)
    except (TemplateError, AssertionError) as error:
        raise ModelError(f"The chat template of {name} cannot be used: {error}") from error
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ModelError(f"{name} holds no tokenizer that can be loaded: {error}") from error


def _tokenizer(source: Path, name: str) -> Any:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(source)
    if not tokenizer.chat_template:
        raise ModelError(f"{name} has no chat template; choose an instruction-tuned model.")
    Renderer(tokenizer).render(_TURNS)
    return tokenizer


def context_of(config: Any) -> int:
    """Tokens that a model reads at most.

    Where rotary frequencies grow with the longest row of a pass, that is the length before they do: beyond
    it a draft's text would depend on which others are written beside it.
    """
    most = int(getattr(config, "max_position_embeddings", None) or 2048)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if rope.get("rope_type", rope.get("type")) not in _GROWING:
        return most
    original = rope.get("original_max_position_embeddings") or getattr(
        config, "original_max_position_embeddings", None
    )
    return min(most, int(original or most))


def _made(
    source: Path, precision: Precision, engine: EngineName | None
) -> tuple[Any, int, Precision, Engine]:
    """The model, its parameters, the layout of its weights, and how it is run."""
    import torch
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    model.train(mode=False)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    try:
        with torch.inference_mode():
            layout = pack(model, precision)
            return model, parameters, layout, choose(model) if engine is None else ENGINES[engine](model)
    except Exception as error:
        if precision == "plain":
            raise
        _log.info("the weights of this model cannot be packed: %r", error)
    return _made(source, "plain", engine)
