"""Linear layers with their weights laid out for the processor once, at load.

A plain product copies the weights into a block layout on every call, which costs more than the product
itself when only a few rows are multiplied, as in decoding. Two layouts keep the arithmetic in float32:

- `float16`: weights rounded to half precision (relative error 2^-11), read by FBGEMM, which widens them on
  the fly: half the bytes of a decoding step.
- `float32`: weights unchanged, in oneDNN's layout.

Which of them is used is a setting; the first that the processor supports and that passes a check against the
plain layer is taken, layer by layer, and `plain` layers stay as they are.
"""

from collections.abc import Callable
from typing import Any

from specrag.types import Precision

LAYOUTS: dict[Precision, tuple[Precision, ...]] = {
    "float16": ("float16", "float32"),
    "float32": ("float32",),
    "plain": (),
}
"""Layouts to try for a wanted precision, in order."""
_TOLERANCE: dict[Precision, float] = {"float16": 2e-2, "float32": 1e-4}
"""Largest difference to the plain layer, relative to its largest output, on random input."""


def pack(model: Any, wanted: Precision, *, prepare: Callable[[Any], None] | None = None) -> Precision:
    """Replace every linear layer of `model` by a packed one; returns the layout that most of them got.

    `prepare` is called with each layer just before, so that weights which are made up need not all be in
    memory as they are before they are packed.
    """
    from torch.nn import Linear

    counts: dict[Precision, int] = {"plain": 0}
    parents = [module for module in model.modules() if type(module) is not Linear]  # these hold no weights
    for parent in parents:
        for name, child in list(parent.named_children()):
            if type(child) is Linear:
                if prepare is not None:
                    prepare(child)
                layer, got = _packed(child, LAYOUTS[wanted])
                setattr(parent, name, layer)
                counts[got] = counts.get(got, 0) + 1
    if len(counts) > 1:  # the file that the plain weights are mapped from can be let go of
        for parameter in model.parameters():
            parameter.data = parameter.data.clone()
    return max(counts, key=lambda layout: counts[layout])


def _packed(linear: Any, layouts: tuple[Precision, ...]) -> tuple[Any, Precision]:
    for layout in layouts:
        try:
            layer = _LAYERS[layout](linear)
            if _agrees(layer, linear, _TOLERANCE[layout]):
                return layer, layout
        except (RuntimeError, AttributeError, NotImplementedError):
            continue  # this build or processor lacks the operator; the next layout may not
    return linear, "plain"


def _agrees(layer: Any, linear: Any, tolerance: float) -> bool:
    """Whether both layers give the same on random rows, few and many (kernels differ by their number)."""
    import torch

    generator = torch.Generator().manual_seed(0)
    for rows in (1, 24):
        given = torch.randn((1, rows, linear.in_features), generator=generator)
        expected = linear(given)
        if (layer(given) - expected).abs().max() > tolerance * expected.abs().max():
            return False
    return True


def _half_layer(linear: Any) -> Any:
    import torch

    if linear.weight.abs().max() > torch.finfo(torch.float16).max:
        raise NotImplementedError("a weight is beyond the range of half precision")
    packed = torch.ops.quantized.linear_prepack_fp16(linear.weight.data, linear.bias)
    return _applying(torch.ops.quantized.linear_dynamic_fp16, packed)


def _full_layer(linear: Any) -> Any:
    import torch

    # private names, as torch's own compiler calls them; `_packed` does without where they are missing
    packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.data, None)  # noqa: SLF001
    bias = None if linear.bias is None else linear.bias.data
    return _applying(torch.ops.mkldnn._linear_pointwise, packed, bias, "none", [], "")  # noqa: SLF001


def _applying(product: Any, *packed: Any) -> Any:
    """A layer that maps (..., in) to (..., out); it holds the packed weights and not the plain ones."""
    from torch.nn import Module

    class PackedLinear(Module):
        """`product` of what it is given and the packed weights."""

        def forward(self, given: Any) -> Any:
            return product(given, *packed)

    return PackedLinear()


_LAYERS: dict[Precision, Any] = {"float16": _half_layer, "float32": _full_layer}
