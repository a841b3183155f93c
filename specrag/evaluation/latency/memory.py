"""Whether two models fit: memory by arithmetic, before any of it is taken.

A machine that begins to swap, or kills the process after ten minutes of building weights, tells nobody
anything; a refusal with both figures does.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specrag.errors import ModelError
from specrag.evaluation.latency.shapes import Shape
from specrag.types import Precision

FULL: Final = 4
"""Bytes of a number in float32: embeddings, norms, keys and values are kept so in every layout."""
LAYER_BYTES: Final[dict[Precision, int]] = {"float16": 2, "float32": 4, "plain": 4}
"""Bytes of a weight of a linear layer, by its layout."""
_GIGA: Final = 1e9
_SPARE: Final = 1e9
"""Bytes left to Python, torch and the rest of the machine."""
_CGROUPS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes that one model takes at the lengths it is run with."""

    name: str
    weights: int
    cache: int
    """Keys and values of all rows at once."""
    working: int
    """Intermediate values and logits of the longest pass, or what building takes if that is more."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.cache + self.working


def weight_bytes(shape: Shape, precision: Precision) -> int:
    """Bytes of the weights; a tied head that is packed stands beside the embedding it was taken from."""
    packed = precision != "plain"
    embeddings = FULL * shape.embedding
    head = LAYER_BYTES[precision] * shape.embedding if packed or not shape.tied else 0
    return LAYER_BYTES[precision] * shape.matrices + embeddings + head + FULL * shape.others


def cache_bytes(shape: Shape, tokens: int) -> int:
    """Bytes of the keys and values of so many tokens."""
    return FULL * 2 * shape.layers * shape.kv * shape.head_dim * tokens


def need_of(shape: Shape, precision: Precision, *, tokens: int, read_at_once: int, logits: int) -> Need:
    """What a model takes.

    Args:
        shape: its shape.
        precision: layout of its linear layers.
        tokens: tokens whose keys and values are kept at once, over all rows.
        read_at_once: tokens of the longest pass.
        logits: rows of logits of one pass.
    """
    wide = 3 * shape.intermediate + 4 * shape.hidden
    running = read_at_once * wide + 2 * logits * shape.vocab
    building = 2 * shape.embedding  # while the head is drawn and packed
    return Need(
        name=shape.name,
        weights=weight_bytes(shape, precision),
        cache=cache_bytes(shape, tokens),
        working=FULL * max(running, building),
    )


def check(needs: Sequence[Need], free: int) -> None:
    """Refuse models that do not fit together.

    Raises:
        ModelError: with the memory that they need, and what there is.
    """
    needed = sum(need.total for need in needs) + _SPARE
    if needed <= free:
        return
    parts = ", ".join(
        f"{need.name} {need.total / _GIGA:.1f} GB ({need.weights / _GIGA:.1f} GB of weights)"
        for need in needs
    )
    raise ModelError(
        f"The models need {needed / _GIGA:.1f} GB of memory and {free / _GIGA:.1f} GB are free: {parts}; "
        "choose smaller shapes, or measure servers with --server-drafter and --server-verifier."
    )


def free_memory(cgroups: Sequence[tuple[str, str]] = _CGROUPS) -> int:
    """Bytes that this process may still take: those of the machine, or of its container if that is less.

    Args:
        cgroups: files that hold the limit of a container, and what is used of it.

    Raises:
        ModelError: the system does not tell.
    """
    return min([_of_the_machine(), *_of_containers(cgroups)])


def _of_the_machine() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    raise ModelError("This system does not tell how much memory is free; there is no MemAvailable.")


def _of_containers(cgroups: Sequence[tuple[str, str]]) -> list[int]:
    found = []
    for limit, used in cgroups:
        with suppress(OSError, ValueError):  # not in a container, or one without a limit ("max")
            found.append(int(Path(limit).read_text("ascii")) - int(Path(used).read_text("ascii")))
    return found
