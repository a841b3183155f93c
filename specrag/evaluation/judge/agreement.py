"""How far the judge and the counted score agree, beyond what luck would give: Cohen's kappa.

Two that call nine of ten answers right agree on most by luck alone; kappa takes that off. 1 is full
agreement, 0 is what luck gives, below 0 is less than that. It does not say which of the two is right.

Of few questions, or few that are not all alike, the draws know too little: where one answer of twenty is
wrong for both, every draw that has it makes a kappa of 1. So agreement beyond luck has to pass Fisher's exact
test as well, which takes no more answers than there are questions: those to the same one stand and fall
together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specrag.evaluation.bootstrap import LUCK, Estimate, Numbers, estimate_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One answer as the judge and the score see it."""

    question: str
    """Answers to the same question are drawn together."""
    judged: bool
    scored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Of all pairs."""

    n: int
    both: int
    """Right for both."""
    judge_only: int
    score_only: int
    neither: int
    kappa: Estimate | None
    """None where one of them says the same of all answers, which leaves luck no room."""
    luck_p: float
    """How often luck alone, with as many right for each of them, makes the two agree as well."""

    @property
    def share(self) -> float | None:
        """Share of the answers on which they agree."""
        return (self.both + self.neither) / self.n if self.n else None

    @property
    def clear(self) -> bool:
        """Whether they agree beyond luck."""
        return self.kappa is not None and self.kappa.low > 0 and self.luck_p <= LUCK


def agreement(pairs: Sequence[Pair], *, seed: int = 0) -> Agreement:
    """How far the two agree; the interval draws questions."""
    cells = [(True, True), (True, False), (False, True), (False, False)]
    questions = {name: place for place, name in enumerate(dict.fromkeys(pair.question for pair in pairs))}
    columns = np.zeros((len(cells), len(questions)))
    for pair in pairs:
        columns[cells.index((pair.judged, pair.scored)), questions[pair.question]] += 1
    both, judge_only, score_only, neither = (int(count) for count in columns.sum(axis=1))
    few, n = len(questions), max(1, len(pairs))
    first, second = (-(-count * few // n) for count in (judge_only, score_only))  # up: never to nothing
    return Agreement(
        n=len(pairs),
        both=both,
        judge_only=judge_only,
        score_only=score_only,
        neither=neither,
        kappa=estimate_of(columns.tolist(), kappa, seed=seed),
        luck_p=fisher(both * few // n, first, second, neither * few // n),
    )


def fisher(both: int, first: int, second: int, neither: int) -> float:
    """The exact p, two-sided by doubling, of so much agreement by luck; arguments as in `kappa`."""
    n, ours, theirs = both + first + second + neither, both + first, both + second
    ways = [
        math.exp(_log_ways(ours, k) + _log_ways(n - ours, theirs - k) - _log_ways(n, theirs))
        for k in range(both, min(ours, theirs) + 1)
    ]
    return min(1.0, 2 * math.fsum(ways))


def _log_ways(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def kappa(counts: Numbers) -> Numbers:
    """Cohen's kappa of counts or means (4, n): both, the first only, the second only, neither."""
    both, first, second, neither = counts / counts.sum(axis=0)
    by_luck = (both + first) * (both + second) + (second + neither) * (first + neither)
    room = 1 - by_luck
    some = room > 1e-9  # noqa: PLR2004 - float32 means do not add up to 1 exactly
    return np.where(some, (both + neither - by_luck) / np.where(some, room, 1.0), np.nan)
