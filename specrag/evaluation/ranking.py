"""Whether a number tells right from wrong, and whether it means what it says: AUC and calibration."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Judged: TypeAlias = tuple[float, bool]
"""A score, and whether what it was given to is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The answers whose confidence lies from `low` up to `high`."""

    low: float
    high: float
    n: int
    confidence: float
    """Mean of what was claimed."""
    accuracy: float
    """Share that is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Confidence beside the truth; only bins that hold something."""

    bins: tuple[Bin, ...]
    error: float | None
    """Expected calibration error: mean distance of confidence and accuracy, by size of the bins."""


def auc(judged: Sequence[Judged]) -> float | None:
    """How often a right one scores above a wrong one, ties counting half; None without one of each.

    0.5 is a coin, 1 tells them apart always, below 0.5 the wrong ones score higher.
    """
    right = [score for score, good in judged if good]
    wrong = [score for score, good in judged if not good]
    if not right or not wrong:
        return None
    return _sum_of_ranks(judged, right, wrong)


def _sum_of_ranks(judged: Sequence[Judged], right: Sequence[float], wrong: Sequence[float]) -> float:
    """By the ranks of Mann and Whitney, so that thousands of pairs cost a sort."""
    order = sorted(judged)
    ranks, place = 0.0, 0
    while place < len(order):
        end = place
        while end < len(order) and order[end][0] == order[place][0]:
            end += 1
        middle = (place + 1 + end) / 2
        ranks += middle * sum(good for _, good in order[place:end])
        place = end
    return (ranks - len(right) * (len(right) + 1) / 2) / (len(right) * len(wrong))


def auc_within(groups: Iterable[Sequence[Judged]]) -> float | None:
    """The mean of the AUC of each group that has right and wrong ones: it never compares two questions."""
    each = [value for group in groups if (value := auc(group)) is not None]
    return math.fsum(each) / len(each) if each else None


def calibration(judged: Sequence[Judged], *, bins: int = 10) -> Calibration:
    """Equal bins over [0, 1], the last one with its upper end."""
    boxes: list[list[Judged]] = [[] for _ in range(bins)]
    for score, good in judged:
        boxes[min(bins - 1, int(score * bins))].append((score, good))
    made = tuple(
        Bin(
            low=number / bins,
            high=(number + 1) / bins,
            n=len(box),
            confidence=math.fsum(score for score, _ in box) / len(box),
            accuracy=sum(good for _, good in box) / len(box),
        )
        for number, box in enumerate(boxes)
        if box
    )
    if not judged:
        return Calibration(bins=(), error=None)
    off = math.fsum(one.n * abs(one.confidence - one.accuracy) for one in made)
    return Calibration(bins=made, error=off / len(judged))
