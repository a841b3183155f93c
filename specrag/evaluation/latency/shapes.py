"""The shapes of published models, as plain data: the speed of a model follows from them, not from its values.

Every number is that of the model's own config.json, and the parameters are computed from them by a formula,
so a slip in a number shows as a count that differs from the published one.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from specrag.errors import UsageError

Family: TypeAlias = Literal["llama", "qwen2"]
_STEP: Final = 64
"""Sizes of made-up shapes are multiples of it, as those of real ones."""
_MOST: Final = 1_000_000
"""No number of a shape is larger; whoever types more has slipped."""
_MOST_TIMES: Final = 10_000
"""No verifier is so many times its drafter's size; to look for a shape of it would take for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A decoder with grouped attention and a gated feed-forward part."""

    name: str
    family: Family = "llama"
    """`qwen2` has biases on queries, keys and values."""
    hidden: int
    layers: int
    heads: int
    kv: int
    """Heads of keys and values."""
    intermediate: int
    vocab: int
    tied: bool = True
    """Whether the head is the embedding."""

    @property
    def head_dim(self) -> int:
        """Width of a head; in all these families the heads make up the hidden size."""
        return self.hidden // self.heads

    @property
    def matrices(self) -> int:
        """Weights in the matrices of all layers, which every token is multiplied by."""
        attention = 2 * self.heads * self.head_dim + 2 * self.kv * self.head_dim
        return self.layers * self.hidden * (attention + 3 * self.intermediate)

    @property
    def embedding(self) -> int:
        """Weights of the embedding, and of the head once more unless it is tied."""
        return self.vocab * self.hidden

    @property
    def others(self) -> int:
        """Norms, two a layer and one at the end, and biases."""
        biases = (self.heads + 2 * self.kv) * self.head_dim if self.family == "qwen2" else 0
        return self.layers * (2 * self.hidden + biases) + self.hidden

    @property
    def parameters(self) -> int:
        """All of them, as they are published."""
        return self.matrices + self.others + self.embedding * (1 if self.tied else 2)


def _shape(
    name: str, family: Family, sizes: tuple[int, int, int, int, int, int], *, tied: bool = True
) -> Shape:
    hidden, layers, heads, kv, intermediate, vocab = sizes
    return Shape(
        name=name,
        family=family,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv=kv,
        intermediate=intermediate,
        vocab=vocab,
        tied=tied,
    )


PRESETS: Final[dict[str, Shape]] = {
    shape.name: shape
    for shape in (
        # hidden, layers, heads, heads of keys and values, intermediate, vocabulary
        _shape("smollm2-135m", "llama", (576, 30, 9, 3, 1536, 49_152)),
        _shape("smollm2-360m", "llama", (960, 32, 15, 5, 2560, 49_152)),
        _shape("smollm2-1.7b", "llama", (2048, 24, 32, 32, 8192, 49_152)),
        _shape("qwen2.5-0.5b", "qwen2", (896, 24, 14, 2, 4864, 151_936)),
        _shape("qwen2.5-1.5b", "qwen2", (1536, 28, 12, 2, 8960, 151_936)),
        _shape("qwen2.5-3b", "qwen2", (2048, 36, 16, 2, 11_008, 151_936)),
        _shape("qwen2.5-7b", "qwen2", (3584, 28, 28, 4, 18_944, 152_064), tied=False),
        _shape("qwen2.5-14b", "qwen2", (5120, 48, 40, 8, 13_824, 152_064), tied=False),
        _shape("qwen2.5-32b", "qwen2", (5120, 64, 40, 8, 27_648, 152_064), tied=False),
        _shape("qwen2.5-72b", "qwen2", (8192, 80, 64, 8, 29_568, 152_064), tied=False),
        _shape("llama3.2-1b", "llama", (2048, 16, 32, 8, 8192, 128_256)),
        _shape("llama3.2-3b", "llama", (3072, 28, 24, 8, 8192, 128_256)),
        _shape("llama3.1-8b", "llama", (4096, 32, 32, 8, 14_336, 128_256), tied=False),
        _shape("llama3.1-70b", "llama", (8192, 80, 64, 8, 28_672, 128_256), tied=False),
    )
}


def shape_of(text: str) -> Shape:
    """A preset by its name, or a shape that is written out: `llama:hidden=512,layers=8,heads=8`.

    Left out, there is a head for every 64 of the hidden size, as many heads of keys and values, an
    intermediate size of 8/3 of the hidden one, a vocabulary of 49,152 and a tied head.

    Raises:
        UsageError: there is no such preset, or a number is missing, wrong or does not suit the others.
    """
    wanted = text.strip().lower()
    if wanted in PRESETS:
        return PRESETS[wanted]
    family, colon, sizes = wanted.partition(":")
    if not colon or family not in get_args(Family):
        raise UsageError(
            f"There is no shape “{text[:60]}”; choose one of {', '.join(PRESETS)}, or write one such as "
            "llama:hidden=512,layers=8,heads=8,kv=4,intermediate=1408."
        )
    return _fitting(_written(wanted, family, _numbers(sizes)))


def _numbers(sizes: str) -> dict[str, int]:
    known = {field.name for field in fields(Shape)} - {"name", "family"}
    found: dict[str, int] = {}
    for pair in sizes.split(","):
        name, _, number = (part.strip() for part in pair.partition("="))
        number = {"yes": "1", "no": "0"}.get(number, number)
        least = 0 if name == "tied" else 1
        if name not in known or not number.isdecimal() or not least <= int(number) <= _MOST:
            raise UsageError(
                f"“{pair[:40]}” is no part of a shape; give whole numbers for {', '.join(sorted(known))}."
            )
        found[name] = int(number)
    if not {"hidden", "layers"} <= found.keys():
        raise UsageError("A shape that is written out needs hidden=... and layers=... at least.")
    return found


def _written(name: str, family: str, given: dict[str, int]) -> Shape:
    hidden = given["hidden"]
    heads = given.get("heads", max(1, hidden // _STEP))
    sizes: dict[str, Any] = {
        "heads": heads,
        "kv": heads,
        "intermediate": _rounded(hidden * 8 / 3),
        "vocab": PRESETS["smollm2-135m"].vocab,
        **given,
        "tied": bool(given.get("tied", 1)),
    }
    return Shape(name=name, family="qwen2" if family == "qwen2" else "llama", **sizes)


def _fitting(shape: Shape) -> Shape:
    if shape.hidden % (2 * shape.heads):
        raise UsageError(
            f"{shape.name}: hidden size {shape.hidden} must be an even multiple of its {shape.heads} heads."
        )
    if shape.heads % shape.kv:
        raise UsageError(
            f"{shape.name}: {shape.heads} heads cannot share {shape.kv} heads of keys and values; choose a "
            "divisor."
        )
    return shape


def scaled(base: Shape, ratio: float) -> Shape:
    """A shape of the same family and vocabulary with about `ratio` times the parameters: a wider one.

    The width comes in steps; some layers more or less make up for them.

    Raises:
        UsageError: the ratio is below 1, above 10,000 or not a number.
    """
    if not 1 <= ratio <= _MOST_TIMES:  # also false of what is not a number
        raise UsageError(
            f"There is no verifier of {ratio:g} times the drafter's size; give numbers from 1 to "
            f"{_MOST_TIMES:,}."
        )
    if ratio == 1:
        return base
    shared = base.heads // base.kv
    width = _STEP * shared
    wanted = ratio * base.parameters
    most = round(base.hidden * ratio / width) + 1
    candidates = (_wider(base, width * number) for number in range(1, most + 1))
    wide = min(candidates, key=lambda one: abs(one.parameters - wanted))
    missing = (wanted - wide.parameters) / (wide.matrices / wide.layers)
    found = replace(wide, layers=max(1, wide.layers + round(missing)))
    return replace(found, name=f"{base.name} x{found.parameters / base.parameters:.3g}")


def _wider(base: Shape, hidden: int) -> Shape:
    heads = hidden // _STEP
    intermediate = _rounded(hidden * base.intermediate / base.hidden)
    kv = heads // (base.heads // base.kv)
    return replace(base, hidden=hidden, heads=heads, kv=kv, intermediate=intermediate)


def _rounded(size: float) -> int:
    return max(_STEP, _STEP * round(size / _STEP))
