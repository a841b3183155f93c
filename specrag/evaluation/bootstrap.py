"""How far a figure may be off by the luck of the questions: percentile bootstrap, seeded.

The questions are drawn again with replacement, all pipelines together, so that a difference is taken on the
same questions and is not blurred by how hard those are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

DRAWS: Final = 10_000
LEVEL: Final = 0.95
_AT_ONCE: Final = 4_000_000
"""Numbers drawn in one piece, so that thousands of questions do not fill the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with the interval that holds it in 95 of 100 draws."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out, as that of a difference has to."""
        return self.low > 0 or self.high < 0


def estimate(values: Sequence[float], *, seed: int = 0, draws: int = DRAWS) -> Estimate | None:
    """The mean of values, one for each question; None for no value."""
    if not values:
        return None
    data = np.asarray(values, dtype=np.float64)
    means = _means(data, seed=seed, draws=draws)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Estimate(mean=float(data.mean()), low=float(low), high=float(high), n=len(data))


def difference(
    ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0, draws: int = DRAWS
) -> Estimate | None:
    """How much `ours` is above `theirs`, both on the same questions in the same order.

    Raises:
        ValueError: they are not of the same length.
    """
    return estimate([a - b for a, b in zip(ours, theirs, strict=True)], seed=seed, draws=draws)


def _means(
    data: "np.ndarray[tuple[int], np.dtype[np.float64]]", *, seed: int, draws: int
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    random = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // len(data))
    parts = [
        data[random.integers(0, len(data), size=(min(step, draws - done), len(data)))].mean(axis=1)
        for done in range(0, draws, step)
    ]
    made: np.ndarray[tuple[int], np.dtype[np.float64]] = np.concatenate(parts)
    return made
