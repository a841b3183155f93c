"""Outcomes become figures: means with intervals, differences on the same questions, medians, calibration.

Pure, and seeded: the same outcomes give the same report to the last digit.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from specrag.evaluation.bootstrap import Estimate, difference, estimate
from specrag.evaluation.choices import SCORES, Judgement
from specrag.evaluation.outcome import Outcome
from specrag.evaluation.ranking import Calibration, auc, auc_within, calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a figure is spread over the runs."""

    median: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """How well one score tells right drafts from wrong ones: 0.5 is a coin."""

    within: float | None
    """Mean over the questions that have right and wrong drafts."""
    pooled: float | None
    """All drafts of all questions together, where easy questions help any score."""
    questions: int
    """Questions that have both."""
    drafts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What other ways of choosing from the same drafts were worth."""

    n: int
    by_no_draft: int
    """Runs that had drafts and whose answer is that of none; they are not among the `n`."""
    worth: Mapping[str, Estimate]
    against: Mapping[str, Estimate]
    """How much what was selected is above each of them, on the same questions."""
    separation: Mapping[str, Separation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one system."""

    n: int
    failed: tuple[tuple[str, str], ...]
    """Questions that failed, each with the sentence that says why."""
    metrics: Mapping[str, Estimate]
    times: Mapping[str, Spread] = field(default_factory=dict)
    tokens: Mapping[str, Spread] = field(default_factory=dict)
    calibration: Calibration
    choices: Choices | None = None


def summary(found: Sequence[Outcome], *, seed: int) -> Summary:
    """The figures of one system's runs; failed runs count among the metrics and not among the times."""
    return Summary(
        n=len(found),
        failed=tuple((f"{one.dataset} {one.question}", one.error) for one in found if one.error),
        metrics=_means([one.marks for one in found], seed=seed),
        times=_spreads(one.times for one in found),
        tokens=_spreads(one.tokens for one in found),
        calibration=calibration([one.claimed for one in found if one.claimed is not None]),
        choices=_choices([one for one in found if one.choices or one.by_no_draft], seed=seed),
    )


def compared(
    ours: Sequence[Outcome], theirs: Sequence[Outcome], metric: str, *, seed: int
) -> Estimate | None:
    """How much one system is above another in a metric, on the questions that both have finished."""
    other = {(one.dataset, one.question): one.marks for one in theirs}
    pairs = [
        (one.marks[metric], marks[metric])
        for one in ours
        if (marks := other.get((one.dataset, one.question))) and metric in one.marks and metric in marks
    ]
    return difference([a for a, _ in pairs], [b for _, b in pairs], seed=seed) if pairs else None


def _means(rows: Sequence[Mapping[str, float]], *, seed: int) -> dict[str, Estimate]:
    """The mean of every figure over those that have it."""
    columns = _columns(rows)
    made = ((name, estimate(values, seed=seed)) for name, values in columns.items())
    return {name: one for name, one in made if one is not None}


def _spreads(rows: Iterable[Mapping[str, float]]) -> dict[str, Spread]:
    return {
        name: Spread(median=float(np.median(values)), p95=float(np.quantile(values, 0.95)))
        for name, values in _columns(rows).items()
    }


def _columns(rows: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            columns[name].append(value)
    return columns


def _choices(found: Sequence[Outcome], *, seed: int) -> Choices | None:
    if not found:
        return None
    rows = [one.choices for one in found if one.choices]
    against = {
        name: difference(
            [row["selected"] for row in rows if name in row],
            [row[name] for row in rows if name in row],
            seed=seed,
        )
        for name in _columns(rows)
        if name != "selected"
    }
    return Choices(
        n=len(rows),
        by_no_draft=sum(one.by_no_draft for one in found),
        worth=_means(rows, seed=seed),
        against={name: one for name, one in against.items() if one is not None},
        separation={
            name: one
            for name in SCORES
            if (one := _separation([run.drafts for run in found], name)) is not None
        },
    )


def _separation(runs: Sequence[Sequence[Judgement]], name: str) -> Separation | None:
    groups = [
        [(draft.scores[name], draft.right) for draft in drafts if name in draft.scores] for drafts in runs
    ]
    pooled = [one for group in groups for one in group]
    if not pooled:
        return None
    mixed = [group for group in groups if len({good for _, good in group}) > 1]
    return Separation(within=auc_within(mixed), pooled=auc(pooled), questions=len(mixed), drafts=len(pooled))
