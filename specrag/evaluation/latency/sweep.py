"""Where speculative RAG begins to pay: one drafter against verifiers of growing size, and the break-even.

Each point is a benchmark of its own, on the same machine, at the same lengths. Between the two neighbours of
which one is below 1 and the other not, the ratio is taken to grow as a power of the size ratio (a straight
line on logarithmic axes), and the break-even is where that line crosses 1.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from specrag.config import Settings
from specrag.errors import ModelError
from specrag.evaluation.latency.bench import Bench, Result, Tell, needs
from specrag.evaluation.latency.floor import Floors, total
from specrag.evaluation.latency.interleave import Plan
from specrag.evaluation.latency.memory import check, free_memory
from specrag.evaluation.latency.shapes import Shape, scaled
from specrag.evaluation.latency.spread import Ratio, ratio

Which: TypeAlias = Literal["ttft", "total"]
METHOD: Final = (
    "a straight line between the logarithms of the neighbouring points of which the smaller is below 1 and "
    "the larger is not"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One verifier."""

    verifier: str
    parameters: int
    sizes: float
    """Its parameters by the drafter's."""
    ttft: Ratio
    total: Ratio
    floor: float
    """The ratio of the floors of the totals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """All points, smallest verifier first, and what did not fit."""

    points: tuple[Point, ...]
    left_out: tuple[str, ...] = ()
    """One sentence for each verifier that was not measured."""


def larger(drafter: Shape, ratios: Sequence[float]) -> tuple[Shape, ...]:
    """The verifiers of a curve, smallest first; made before anything is measured, because it may fail.

    Raises:
        UsageError: a ratio cannot be made.
    """
    made = {one: scaled(drafter, one) for one in ratios}
    return tuple(made[one] for one in sorted(made))


def sweep(
    bench: Bench,
    drafter: Shape,
    verifiers: Sequence[Shape],
    plan: Plan,
    *,
    settings: Settings,
    tell: Tell,
    free: Callable[[], int] = free_memory,
) -> Curve:
    """Measure every verifier that fits the memory beside the drafter.

    Raises:
        ModelError: the drafter does not fit, or a model fails.
    """
    phases = bench.counted(plan)
    check(needs(drafter, drafter, phases, settings)[:1], free())
    points: list[Point] = []
    left_out: list[str] = []
    small = bench.model(drafter)
    for verifier in verifiers:
        try:
            check(needs(drafter, verifier, phases, settings)[1:], free())
        except ModelError as error:
            left_out.append(str(error))
            continue
        tell(f"verifier of {verifier.parameters / drafter.parameters:.2f} times the drafter's size")
        points.append(point(bench.against(small, drafter, verifier, plan), drafter, verifier))
    return Curve(points=tuple(points), left_out=tuple(left_out))


def point(result: Result, drafter: Shape, verifier: Shape) -> Point:
    """The place of one benchmark on the curve."""
    standard, speculative = result.measured.standard, result.measured.speculative
    return Point(
        verifier=verifier.name,
        parameters=verifier.parameters,
        sizes=verifier.parameters / drafter.parameters,
        ttft=ratio([run.ttft_s for run in standard], [run.ttft_s for run in speculative]),
        total=ratio([run.total_s for run in standard], [run.total_s for run in speculative]),
        floor=_floor_ratio(result.floors),
    )


def _floor_ratio(floor: Floors | None) -> float:
    return math.nan if floor is None else total(floor, "standard") / total(floor, "speculative")


def break_even(points: Sequence[Point], which: Which) -> float | None:
    """The size ratio at which both ways are equally fast; None if the curve does not cross 1."""
    ordered = sorted((one.sizes, getattr(one, which).value) for one in points)
    return next(_crossings(ordered), None)


def _crossings(curve: Sequence[tuple[float, float]]) -> Iterator[float]:
    for (size, value), (next_size, next_value) in itertools.pairwise(curve):
        if value < 1 <= next_value:
            share = -math.log(value) / (math.log(next_value) - math.log(value))
            yield math.exp(math.log(size) + share * (math.log(next_size) - math.log(size)))
