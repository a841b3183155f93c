"""A model of a shape with random weights, run by the very engine that runs the page's models.

How long a forward pass takes follows from the sizes of its matrices, so random numbers do as well as trained
ones, and no weights of 70 billion parameters have to be fetched to find out how such a model would behave.
What it writes is noise: nothing here says anything about quality, and its name says so wherever it is shown.

Layer by layer: a layer's weights are drawn, packed and let go of before the next one's, so that a machine
needs room for the packed model and one layer, not for two models.
"""

from typing import Any, Final

from specrag.errors import UsageError
from specrag.evaluation.latency.shapes import Shape
from specrag.models.engine import choose
from specrag.models.loading import Loaded
from specrag.models.packed import pack
from specrag.models.render import Renderer
from specrag.types import ModelInfo, Precision

CONTEXT: Final = 131_072
"""Long enough for any asked length; the positions of these families cost nothing until they are used."""
_DEVIATION: Final = 0.02
"""That of the families' own initialisation, so that no value overflows half precision."""


def made(shape: Shape, *, tokenizer: Any, precision: Precision, seed: int) -> Loaded:
    """Build, pack and check a model; must be called on the thread that computes.

    Raises:
        UsageError: the vocabulary is smaller than the tokenizer's.
    """
    import torch

    if shape.vocab < len(tokenizer):
        raise UsageError(
            f"{shape.name} has a vocabulary of {shape.vocab:,} and the tokenizer one of {len(tokenizer):,}; "
            f"write a shape with vocab={len(tokenizer)} or more."
        )
    random = torch.Generator().manual_seed(seed)
    with torch.inference_mode():
        model = _skeleton(shape)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        _fill(model, random)
        layout = pack(model, precision, prepare=lambda linear: _draw(linear, random))
        engine = choose(model)
    info = ModelInfo(
        name=shape.name,
        parameters=parameters,
        device="cpu",
        dtype="float16 weights, float32 sums" if layout == "float16" else "float32",
        context=CONTEXT,
        notes=("The weights are random, which says nothing about quality.",),
    )
    return Loaded(model=model, tokenizer=tokenizer, renderer=Renderer(tokenizer), engine=engine, info=info)


def _skeleton(shape: Shape) -> Any:
    """The model without memory for its weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    kinds = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}
    make_config, make_model = kinds[shape.family]
    config = make_config(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv,
        intermediate_size=shape.intermediate,
        vocab_size=shape.vocab,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=CONTEXT,
    )
    with torch.device("meta"):
        model: Any = make_model(config)
    # its frequencies are computed when it is made, so it has to be made where numbers exist
    model.model.rotary_emb = type(model.model.rotary_emb)(config=config)
    model.train(mode=False)
    return model


def _fill(model: Any, random: Any) -> None:
    """The embedding, a head that is tied to it, and the norms; linear layers come one by one."""
    from torch.nn import Linear

    embedding = model.model.embed_tokens
    tied = model.lm_head.weight is embedding.weight
    for module in model.modules():
        if type(module) is not Linear:
            _draw(module, random)
    if tied:
        model.lm_head.weight = embedding.weight


def _draw(module: Any, random: Any) -> None:
    """Give the module's own parameters memory and values; those that have them already stay."""
    import torch
    from torch.nn import Parameter

    for name, parameter in list(module.named_parameters(recurse=False)):
        if parameter.is_meta:
            values = torch.empty(parameter.shape)
            # a norm has one axis and scales by about 1; biases have one as well, and 1 does them no harm
            values = (
                values.fill_(1.0) if values.dim() == 1 else values.normal_(0, _DEVIATION, generator=random)
            )
            setattr(module, name, Parameter(values, requires_grad=False))
