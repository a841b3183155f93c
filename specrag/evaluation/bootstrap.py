"""How far a figure may be off by the luck of the questions: percentile bootstrap, seeded.

The questions are drawn again with replacement, all pipelines together, so that a difference is taken on the
same questions and is not blurred by how hard those are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[Any]

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


def _means(data: Numbers, *, seed: int, draws: int) -> Numbers:
    """The mean of each draw: how often it took a question, times what that was worth."""
    step = max(1, _AT_ONCE // len(data))
    if step >= draws:
        return _often(len(data), seed, draws) @ data / len(data)
    random = np.random.default_rng(seed)
    sizes = [min(step, draws - done) for done in range(0, draws, step)]
    return np.concatenate([_drawn(random, size, len(data)) @ data / len(data) for size in sizes])


@lru_cache(maxsize=2)
def _often(n: int, seed: int, draws: int) -> Numbers:
    """The draws of so many questions, which all figures of a report share."""
    return _drawn(np.random.default_rng(seed), draws, n)


def _drawn(random: np.random.Generator, draws: int, n: int) -> Numbers:
    """How often each draw takes each question: (draws, n)."""
    taken = random.integers(0, n, size=(draws, n)) + n * np.arange(draws)[:, None]
    return np.bincount(taken.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)
