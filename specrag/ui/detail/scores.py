"""How each combined score comes about, and how the winner comes out of them: values that add up.

A combined score is a weighted geometric mean, so its logarithm is a sum: every component adds its share of
the weights times the logarithm of its value. That sum is what is shown, since a bar of a product means
nothing. A component that has a weight and is not known takes no part, and the shares are of the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from specrag.decide import in_contest
from specrag.scoring import FLOOR, mass
from specrag.tracing.trace import Trace
from specrag.types import Draft, LogSums
from specrag.ui.detail.terms import COMPONENTS, Terms, terms_of, value_of
from specrag.ui.lanes import draft_numbers
from specrag.ui.readout import same_as, winner_of

_ROUNDING: Final = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One row of a draft's breakdown."""

    key: str
    label: str
    value: float | None
    weight: float
    share: float | None
    """Of the weights that count, in (0, 1]: the exponent of the value; None where it does not count."""
    log: float | None
    """Natural logarithm of the value."""
    adds: float | None
    """`share` times `log`: what it adds to the logarithm of the combined score, 0 or below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSum:
    """A sum of log-probabilities as the models gave them, and what it comes to a token."""

    label: str
    total: float
    tokens: int
    mean: float
    """Geometric mean of the probabilities: exp(total / tokens)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """A draft with everything that its place depends on."""

    number: int
    draft: Draft
    standing: str
    """Empty for a draft in the contest, else why it is not."""
    components: tuple[Component, ...]
    unknown: tuple[str, ...]
    """Names of the components that have a weight and are not known."""
    log_combined: float | None
    """Sum of what the components add."""
    combined: float | None
    stated: bool
    """Whether the combined score of the trace is what its components give."""
    mass: float | None
    share: float | None
    """Of the mass of all drafts in the contest."""
    sums: tuple[LogSum, ...]
    winner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """An answer with the drafts that give it."""

    answer: str
    members: tuple[int, ...]
    """Numbers of the drafts, best first."""
    counted: tuple[int, ...]
    """Those whose masses are added: all, or without pooling the best."""
    mass: float
    share: float
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """All drafts of a run and all answers that they give."""

    terms: Terms
    drafts: tuple[Breakdown, ...]
    """In the order of their numbers."""
    ranking: tuple[Breakdown, ...]
    """Those in the contest, best first, and then the others."""
    pools: tuple[Pooled, ...]
    """The answers with the most mass first."""
    total: float
    """Mass of all drafts in the contest."""


def standings(trace: Trace) -> Standings:
    """The scores of a run, taken apart.

    Raises:
        TraceError: the settings in the trace cannot be read.
    """
    terms, contest = terms_of(trace), in_contest(trace.drafts)
    masses = {index: mass(trace.drafts[index].scores.combined) for index in contest}
    total = math.fsum(masses.values())
    drafts = tuple(_breakdown(trace, terms, index, masses, total) for index in range(len(trace.drafts)))
    ranking = sorted(drafts, key=lambda one: (bool(one.standing), -(one.combined or 0.0), one.number))
    return Standings(
        terms=terms,
        drafts=drafts,
        ranking=tuple(ranking),
        pools=_pools(trace, terms, contest, masses, total),
        total=total,
    )


def components_of(draft: Draft, terms: Terms) -> tuple[Component, ...]:
    """The rows of one draft; a component that is neither known nor weighted is left out."""
    values = {name: value_of(draft.scores, name) for name in COMPONENTS}
    weights = math.fsum(terms.weights[name] for name, value in values.items() if value is not None)
    rows = []
    for name, value in values.items():
        weight = terms.weights[name]
        if value is None and not weight:
            continue
        log = None if value is None else math.log(min(1.0, max(value, FLOOR)))
        share = weight / weights if log is not None and weight and weights else None
        adds = share * log if share is not None and log is not None else None
        rows.append(
            Component(
                key=name,
                label=COMPONENTS[name],
                value=value,
                weight=weight,
                share=share,
                log=log,
                adds=adds,
            )
        )
    return tuple(rows)


def sums_of(sums: LogSums) -> tuple[LogSum, ...]:
    """The raw sums that the scores were made from."""
    found = (
        ("rationale, by the drafter", sums.rationale, sums.rationale_tokens),
        ("answer, by the drafter", sums.answer, sums.answer_tokens),
        ("answer and rationale, by the verifier", sums.self_containment, sums.self_containment_tokens),
    )
    return tuple(
        LogSum(label=label, total=total, tokens=tokens, mean=math.exp(min(0.0, total / tokens)))
        for label, total, tokens in found
        if total is not None and tokens > 0
    )


def _breakdown(trace: Trace, terms: Terms, index: int, masses: dict[int, float], total: float) -> Breakdown:
    draft = trace.drafts[index]
    components = components_of(draft, terms)
    added = [one.adds for one in components if one.adds is not None]
    number = draft_numbers(trace)[draft.subset_id]
    return Breakdown(
        number=number,
        draft=draft,
        standing=_standing(draft),
        components=components,
        unknown=tuple(one.label for one in components if one.value is None),
        log_combined=math.fsum(added) if added else None,
        combined=draft.scores.combined,
        stated=not added or _agree(draft.scores.combined, math.fsum(added)),
        mass=masses.get(index),
        share=masses[index] / total if index in masses and total else None,
        sums=sums_of(draft.log_sums),
        winner=number == winner_of(trace),
    )


def _agree(combined: float | None, log_combined: float) -> bool:
    return combined is None or abs(combined - math.exp(log_combined)) < _ROUNDING


def _standing(draft: Draft) -> str:
    if draft.finish_reason is None:
        return "not finished"
    if not draft.usable:
        return "failed" if draft.finish_reason == "error" else "no answer"
    return "abstained" if draft.abstained else ""


def _pools(
    trace: Trace, terms: Terms, contest: Sequence[int], masses: dict[int, float], total: float
) -> tuple[Pooled, ...]:
    order = draft_numbers(trace)
    groups: dict[str, list[int]] = {}
    for index in contest:
        groups.setdefault(same_as(trace.drafts[index]), []).append(index)
    decision = trace.decision
    chosen = decision.draft_index if decision and decision.kind in ("selected", "synthesised") else None
    pools = []
    for group in groups.values():
        members = sorted(group, key=lambda index: (-masses[index], index))
        counted = members if terms.pool else members[:1]
        strength = math.fsum(masses[index] for index in counted)
        pools.append(
            Pooled(
                answer=trace.drafts[members[0]].answer,
                members=tuple(order[trace.drafts[index].subset_id] for index in members),
                counted=tuple(order[trace.drafts[index].subset_id] for index in counted),
                mass=strength,
                share=strength / total if total else 0.0,
                chosen=chosen in members,
            )
        )
    return tuple(sorted(pools, key=lambda pool: -pool.mass))
