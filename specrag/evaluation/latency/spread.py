"""Figures with how far they scatter: medians, and a ratio of medians with its interval.

The interval comes from drawing the repetitions again with replacement, both ways of a repetition together, so
that a slow moment of the machine, which met both, does not widen it. With three repetitions it is hardly more
than the least and the greatest, so fewer than `FEWEST` give no verdict; one gives no interval at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from specrag.evaluation.bootstrap import DRAWS, LEVEL

FEWEST: Final = 5
"""Repetitions from which it is said what is faster: four fall on one side by luck in one case of eight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median with the extremes and the middle half."""

    median: float
    low: float
    high: float
    lower: float
    """A quarter of the values is below it."""
    upper: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio of two medians with the interval that holds it in 95 of 100 draws."""

    value: float
    low: float
    high: float
    n: int
    """Pairs that it rests on."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """None of one pair, which says nothing of how far others scatter."""
        return (self.low, self.high) if self.n > 1 else None


def spread(values: Sequence[float]) -> Spread:
    """The spread of one value at least."""
    low, lower, median, upper, high = (float(one) for one in np.percentile(values, [0, 25, 50, 75, 100]))
    return Spread(median=median, low=low, high=high, lower=lower, upper=upper, n=len(values))


def ratio(over: Sequence[float], under: Sequence[float], *, seed: int = 0) -> Ratio:
    """The median of `over` by that of `under`; values at the same place belong together."""
    pairs = np.array([over, under], dtype=np.float64)  # (2, n)
    places = np.random.default_rng(seed).integers(0, pairs.shape[1], size=(DRAWS, pairs.shape[1]))
    medians = np.median(pairs[:, places], axis=2)  # (2, draws)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(medians[0] / medians[1], [tail, 1 - tail])
    value = float(np.median(pairs[0]) / np.median(pairs[1]))
    return Ratio(value=value, low=float(low), high=float(high), n=pairs.shape[1])
