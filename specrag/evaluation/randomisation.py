"""Whether a mean difference may be luck: the paired randomisation test, seeded.

If two pipelines are equally good, each difference could as well have had the other sign. So the signs are
tossed anew, and counted is how often the mean is then at least as far from 0 as it was (Fisher 1935, The
Design of Experiments, section 21; Smucker, Allan and Carterette 2007 for rankings). Of differences that are
all of one size it is the exact sign test; of few it is exact too, over all ways that the signs can fall.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[Any]

DRAWS: Final = 10_000
_ALL_WAYS: Final = 14
"""Differences of which all signs are tried: 2 to the power of 14 are about as many as are drawn."""
_AT_ONCE: Final = 1_000_000
"""Signs tossed in one piece, so that thousands of questions do not fill the memory."""
_EXACT: Final = 1 - 1e-9
"""Two sums of the same numbers in another order count as equal."""


def randomisation_test(values: Sequence[float], *, seed: int = 0, draws: int = DRAWS) -> float:
    """The two-sided p of differences, one for each question; those at 0 say nothing.

    Args:
        values: the differences.
        seed: of the tosses, where there are too many ways to try them all.
        draws: how many tosses; p is 1 / (draws + 1) at least, since what was found is one way as well.
    """
    data = np.asarray([value for value in values if value], dtype=np.float64)
    if not len(data):
        return 1.0
    if np.ptp(np.abs(data)) <= (1 - _EXACT) * np.abs(data).max():
        return _sign_test(int((data > 0).sum()), len(data))
    found = abs(data.sum()) * _EXACT
    if len(data) <= _ALL_WAYS:
        ways = np.arange(2 ** len(data))[:, None] >> np.arange(len(data)) & 1
        return float((np.abs((2 * ways - 1) @ data) >= found).mean())
    as_far = sum(int((np.abs(signs @ data) >= found).sum()) for signs in _tossed(len(data), seed, draws))
    return (as_far + 1) / (draws + 1)


def _tossed(n: int, seed: int, draws: int) -> Iterator[Numbers]:
    """Signs, some draws at a time: (some, n)."""
    random = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // n)
    for done in range(0, draws, step):
        yield 2.0 * random.integers(0, 2, size=(min(step, draws - done), n), dtype=np.int8) - 1.0


def _sign_test(above: int, n: int) -> float:
    """How often of n tosses of a coin at least as many are alike."""
    fewer = min(above, n - above)
    ways = [
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(ways))
