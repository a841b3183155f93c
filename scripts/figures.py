"""What the measuring scripts share: how figures are summed up, and where progress goes."""

import statistics
import sys
from collections.abc import Sequence


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median with the extremes."""
    return {
        "median": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
    }


def say(text: str) -> None:
    """Progress, beside the document on stdout."""
    print(text, file=sys.stderr, flush=True)
