"""The least time that a phase can take on a machine: its operations over GFLOP/s, its bytes over GB/s.

Whichever is more bounds a pass. Operations: two for every weight of a matrix and token (product and sum), the
head only where logits are wanted, and four for every number of a head and pair of tokens that attention
compares. Bytes: the weights once in every pass, and the keys and values that are looked at. A model
that fits the caches of the processor can be faster than its bytes allow; any other phase below its floor is a
mistake of the measurement, and one far above it shows what this program could still gain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from specrag.evaluation.latency.memory import FULL, LAYER_BYTES
from specrag.evaluation.latency.passes import Counted, Pass
from specrag.evaluation.latency.shapes import Shape
from specrag.evaluation.latency.ways import PhaseName
from specrag.types import Precision, Role

_GIGA: Final = 1e9
_STANDARD: Final[tuple[PhaseName, ...]] = ("read", "write")
_SPECULATIVE: Final[tuple[PhaseName, ...]] = ("draft read", "draft write", "verify")

Floors: TypeAlias = Mapping[PhaseName, float]
"""Seconds of each phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What bounds a machine, and how it keeps numbers."""

    name: str
    gflops: float
    gb_s: float
    weight_bytes: float
    """Of a weight in a matrix."""
    cache_bytes: float
    """Of a number among keys and values."""


def this_machine(*, gflops: float, gb_s: float, precision: Precision) -> Machine:
    """The machine that was measured, with the layout of the models in this process."""
    return Machine(
        name="this machine",
        gflops=gflops,
        gb_s=gb_s,
        weight_bytes=LAYER_BYTES[precision],
        cache_bytes=FULL,
    )


def operations(shape: Shape, one: Pass) -> int:
    """Floating-point operations of a pass."""
    attention = 4 * shape.layers * shape.heads * shape.head_dim * one.pairs
    return 2 * shape.matrices * one.tokens + 2 * shape.embedding * one.logits + attention


def bytes_read(shape: Shape, one: Pass, machine: Machine) -> float:
    """Bytes that a pass reads from memory: the layers, the head, and what is cached."""
    cached = 2 * shape.layers * shape.kv * shape.head_dim * one.cached
    return machine.weight_bytes * (shape.matrices + shape.embedding) + machine.cache_bytes * cached


def seconds(shape: Shape, passes: Sequence[Pass], machine: Machine) -> float:
    """The floor of passes one after another."""
    return sum(
        max(
            operations(shape, one) / (machine.gflops * _GIGA),
            bytes_read(shape, one, machine) / (machine.gb_s * _GIGA),
        )
        for one in passes
    )


def floors(
    phases: Sequence[Counted], shapes: Mapping[Role, Shape], machine: Machine
) -> dict[PhaseName, float]:
    """The floor of every phase, in seconds."""
    return {one.name: seconds(shapes[one.role], one.passes, machine) for one in phases}


def total(floor: Floors, way: str) -> float:
    """The floor of a way: of its phases, one after another."""
    return sum(floor[name] for name in (_STANDARD if way == "standard" else _SPECULATIVE))


def ttft(floor: Floors, way: str) -> float:
    """The floor of the first token: standard RAG has read, speculative RAG has its verdict."""
    return floor["read"] if way == "standard" else total(floor, way)
