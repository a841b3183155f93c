"""How far a figure may be off by the luck of the questions: percentile bootstrap, seeded.

The questions are drawn again with replacement, all pipelines together, so that a difference is taken on the
same questions and is not blurred by how hard those are.

Of few values, or few that are not 0, the draws know too little: of one value they make an interval of no
width. So a difference has to pass the paired randomisation test as well, which is exact for few questions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specrag.evaluation.randomisation import randomisation_test

Numbers: TypeAlias = NDArray[Any]

DRAWS: Final = 10_000
LEVEL: Final = 0.95
LUCK: Final = 0.05
"""Of the randomisation test, two-sided: 6 differences all one way pass it, 5 do not."""
_AT_ONCE: Final = 1_000_000
"""Numbers drawn in one piece, so that thousands of questions do not fill the memory."""
_KEPT: Final = 40_000_000
"""Numbers that are kept for the next figure, 4 bytes each: the draws of 4,000 questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with the interval that holds it in 95 of 100 draws."""

    mean: float
    low: float
    high: float
    n: int
    p: float = 1.0
    """Of a difference: how often it would be as large by luck (`randomisation_test`)."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out and it is no luck, as a difference has to show."""
        return (self.low > 0 or self.high < 0) and self.p <= LUCK


def estimate(values: Sequence[float], *, seed: int = 0, draws: int = DRAWS) -> Estimate | None:
    """The mean of values, one for each question; None for no value."""
    if not values:
        return None
    data = np.asarray(values, dtype=np.float64)
    low, high = _ends(_means(data, seed=seed, draws=draws))
    return Estimate(mean=float(data.mean()), low=low, high=high, n=len(data))


def difference(
    ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0, draws: int = DRAWS
) -> Estimate | None:
    """How much `ours` is above `theirs`, both on the same questions in the same order.

    Raises:
        ValueError: they are not of the same length.
    """
    values = [a - b for a, b in zip(ours, theirs, strict=True)]
    found = estimate(values, seed=seed, draws=draws)
    return None if found is None else replace(found, p=randomisation_test(values, seed=seed))


def estimate_of(
    columns: Sequence[Sequence[float]],
    figure: Callable[[Numbers], Numbers],
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Estimate | None:
    """A figure that follows from the means of several values of each question, with its interval.

    Args:
        columns: one for each value, all of the questions in the same order.
        figure: from the means, (values, draws), to the figure of each draw; NaN where it has none.
        seed: of the draws.
        draws: how many.
    """
    data = np.asarray(columns, dtype=np.float64)
    if not data.size:
        return None
    whole = float(figure(data.mean(axis=1, keepdims=True))[0])
    drawn = figure(_means(data.T, seed=seed, draws=draws).T)
    known = drawn[np.isfinite(drawn)]
    if not np.isfinite(whole) or not len(known):
        return None
    low, high = _ends(known)
    return Estimate(mean=whole, low=low, high=high, n=data.shape[1])


def _ends(drawn: Numbers) -> tuple[float, float]:
    """Where the middle of the draws begins and ends."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def _means(data: Numbers, *, seed: int, draws: int) -> Numbers:
    """The mean of each draw: how often it took a question, times what that was worth.

    `data` is (questions,) or (questions, values), the result (draws,) or (draws, values).
    """
    if len(data) * draws <= _KEPT:
        return _often(len(data), seed, draws) @ data.astype(np.float32) / len(data)
    drawn = _drawn(len(data), seed, draws)
    return np.concatenate([often @ data.astype(np.float32) / len(data) for often in drawn])


@lru_cache(maxsize=2)
def _often(n: int, seed: int, draws: int) -> Numbers:
    """The draws of so many questions, which all figures of a report share."""
    return np.concatenate(list(_drawn(n, seed, draws)))


def _drawn(n: int, seed: int, draws: int) -> Iterator[Numbers]:
    """How often each draw takes each question, some draws at a time: (some, n)."""
    random = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // n)
    for done in range(0, draws, step):
        some = min(step, draws - done)
        taken = random.integers(0, n, size=(some, n)) + n * np.arange(some)[:, None]
        yield np.bincount(taken.ravel(), minlength=some * n).reshape(some, n).astype(np.float32)
