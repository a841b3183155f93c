"""The arithmetic of a draft's scores: from log-probabilities to numbers in (0, 1]. No model, no tensors.

The paper (section 3.3) multiplies raw token probabilities, which underflows and favours the shortest draft.
Every score here is the length-normalised form, the geometric mean of the token probabilities; the raw sums
stay in the trace.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from specrag.types import Scores

FLOOR = 1e-12
"""Below this a probability counts as this, so that its logarithm exists."""
PAPER_FACTORS = 3
"""Scores that the paper multiplies: draft, self-containment, self-reflection."""


class Weights(Protocol):
    """Exponents of the components; 0 leaves one out."""

    @property
    def draft(self) -> float: ...  # noqa: D102 - see `Scores`
    @property
    def self_containment(self) -> float: ...  # noqa: D102 - see `Scores`
    @property
    def self_reflection(self) -> float: ...  # noqa: D102 - see `Scores`
    @property
    def grounded(self) -> float: ...  # noqa: D102 - see `Scores`
    @property
    def relevance(self) -> float: ...  # noqa: D102 - see `Scores`


def geometric_mean(logprobs: Sequence[float]) -> float | None:
    """Exp of the mean log-probability, in (0, 1]; None for no token."""
    if not logprobs:
        return None
    return min(1.0, max(FLOOR, math.exp(math.fsum(logprobs) / len(logprobs))))


def draft_score(rationale: Sequence[float], answer: Sequence[float]) -> float | None:
    """rho_draft = P(rationale | Q, subset) + P(answer | Q, subset, rationale), halved to stay in (0, 1].

    A draft without a rationale is scored by its answer alone.
    """
    answered = geometric_mean(answer)
    reasoned = geometric_mean(rationale)
    if answered is None:
        return None
    return answered if reasoned is None else (reasoned + answered) / 2


def self_containment(answer: Sequence[float], rationale: Sequence[float]) -> float | None:
    """rho_SC = P(answer, rationale | Q), as the geometric mean over the tokens of both."""
    return geometric_mean([*answer, *rationale])


def groundedness(answer: Sequence[float], rationale: Sequence[float]) -> float | None:
    """P(answer, rationale | Q, subset) by the verifier, as the geometric mean over the tokens of both.

    It differs from self-containment in what the verifier has read before: here the passages too. The paper
    tried it and found it no better, and slower (Table 2).
    """
    return geometric_mean([*answer, *rationale])


def self_reflection(choice: Mapping[str, float]) -> float | None:
    """rho_SR = P(yes) / (P(yes) + P(no)); None where the model considers neither."""
    total = choice.get("yes", 0.0) + choice.get("no", 0.0)
    if total <= 0.0:
        return None
    return min(1.0, max(FLOOR, choice.get("yes", 0.0) / total))


def combine(scores: Scores, weights: Weights) -> float | None:
    """Weighted geometric mean of the components that are known and have a weight; None if there is none."""
    known = [
        (max(value, FLOOR), weight)
        for value, weight in _components(scores, weights).values()
        if value is not None and weight > 0
    ]
    if not known:
        return None
    total = math.fsum(weight for _, weight in known)
    mean = math.fsum(weight * math.log(value) for value, weight in known) / total
    return min(1.0, math.exp(mean))


def unknown(scores: Scores, weights: Weights) -> list[str]:
    """Names of the components that have a weight and are not known."""
    found = _components(scores, weights).items()
    return [name for name, (value, weight) in found if value is None and weight > 0]


def _components(scores: Scores, weights: Weights) -> dict[str, tuple[float | None, float]]:
    """Every component with its weight, under the name that a person reads."""
    return {
        "the draft's own probability": (scores.draft, weights.draft),
        "self-containment": (scores.self_containment, weights.self_containment),
        "self-reflection": (scores.self_reflection, weights.self_reflection),
        "groundedness": (scores.grounded, weights.grounded),
        "relevance": (scores.relevance, weights.relevance),
    }


def mass(combined: float | None) -> float:
    """What a draft adds to its answer, in (0, 1]: the combined score to the third power.

    With the paper's three scores at weight 1 this is the paper's product (section 3.3). It orders drafts as
    the combined score does and, unlike it, keeps their distances: means lie so close together that any two
    equal answers, however poor, would outweigh a third. Weights times a constant change nothing.
    """
    return max(combined or 0.0, FLOOR) ** PAPER_FACTORS
