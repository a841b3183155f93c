"""Whether a mean difference may be luck: the paired randomisation test, seeded.

If two pipelines are equally good, each difference could as well have had the other sign. So the signs are
tossed anew, and counted is how often the mean is then at least as far from 0 as it was (Fisher 1935, The
Design of Experiments, section 21; Smucker, Allan and Carterette 2007 for rankings).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

DRAWS: Final = 10_000
"""Beyond these many ways that the signs can fall, so many are drawn; below, all are tried."""
_AT_ONCE: Final = 1_000_000
"""Signs tossed in one piece, so that thousands of questions do not fill the memory."""


def randomisation_test(values: Sequence[float], *, seed: int = 0) -> float:
    """The two-sided p of differences, one for each question; those at 0 say nothing.

    Differences of one size, as of right and wrong, get the exact sign test, which this then is.
    """
    from scipy.stats import binomtest, permutation_test  # not at the start of a page, which it slows

    data = np.asarray([value for value in values if value], dtype=np.float64)
    if not len(data):
        return 1.0
    if np.allclose(np.abs(data), abs(data[0]), rtol=1e-9, atol=0):
        return float(binomtest(int((data > 0).sum()), len(data)).pvalue)
    test = permutation_test(
        (data,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=DRAWS,
        batch=max(1, _AT_ONCE // len(data)),
        rng=seed,
    )
    return float(test.pvalue)
