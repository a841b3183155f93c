"""Scores with numbers computed by hand."""

import math

import pytest

from specrag.config import ScoreWeights
from specrag.scoring import (
    combine,
    draft_score,
    geometric_mean,
    groundedness,
    mass,
    self_containment,
    self_reflection,
)
from specrag.types import Scores


def test_geometric_mean_is_the_root_of_the_product() -> None:
    # 0.5 * 0.125 = 0.0625, square root 0.25
    assert geometric_mean([math.log(0.5), math.log(0.125)]) == pytest.approx(0.25)


def test_a_long_draft_is_not_punished_for_its_length() -> None:
    """A raw product of probabilities favours the shortest draft and underflows."""
    short, long = [math.log(0.6)] * 5, [math.log(0.7)] * 5000
    assert math.exp(sum(long)) == 0.0
    assert (geometric_mean(long) or 0) > (geometric_mean(short) or 1)


def test_draft_score_is_half_of_the_papers_sum() -> None:
    # rationale sqrt(0.9 * 0.4) = 0.6; answer 0.2; (0.6 + 0.2) / 2 = 0.4
    assert draft_score([math.log(0.9), math.log(0.4)], [math.log(0.2)]) == pytest.approx(0.4)


def test_draft_score_without_rationale_is_the_answers() -> None:
    assert draft_score([], [math.log(0.3)]) == pytest.approx(0.3)


def test_draft_score_without_answer_is_unknown() -> None:
    assert draft_score([math.log(0.3)], []) is None


def test_self_containment_runs_over_answer_and_rationale_together() -> None:
    # (0.5 * 0.5 * 0.25 * 0.0625) = 1/256; fourth root 0.25
    value = self_containment([math.log(0.5)], [math.log(0.5), math.log(0.25), math.log(0.0625)])
    assert value == pytest.approx(0.25)


def test_groundedness_runs_over_answer_and_rationale_together() -> None:
    # (0.8 * 0.2 * 0.4 * 0.4) = 0.0256; fourth root 0.4
    value = groundedness([math.log(0.8), math.log(0.2)], [math.log(0.4), math.log(0.4)])
    assert value == pytest.approx(0.4)
    assert groundedness([], []) is None


def test_self_reflection_is_yes_over_yes_and_no() -> None:
    """P(Yes) alone is not calibrated: a model that says neither would look sure of No."""
    assert self_reflection({"yes": 0.03, "no": 0.01}) == pytest.approx(0.75)


def test_self_reflection_of_a_model_that_considers_neither_is_unknown() -> None:
    assert self_reflection({"yes": 0.0, "no": 0.0}) is None


def test_combine_is_the_weighted_geometric_mean() -> None:
    # (0.5^1 * 0.2^3)^(1/4) = (0.004)^(0.25) = 0.251487
    scores = Scores(draft=0.5, self_reflection=0.2)
    weights = ScoreWeights(draft=1, self_containment=0, self_reflection=3, relevance=0)
    assert combine(scores, weights) == pytest.approx(0.251487, abs=1e-6)


def test_groundedness_counts_by_its_weight_and_is_off_by_default() -> None:
    # (0.5^1 * 0.32^2)^(1/3) = 0.0512^(1/3) = 0.371327
    scores = Scores(draft=0.5, grounded=0.32)
    weights = ScoreWeights(draft=1, self_containment=0, self_reflection=0, grounded=2, relevance=0)
    assert combine(scores, weights) == pytest.approx(0.371327, abs=1e-6)
    assert combine(scores, ScoreWeights()) == pytest.approx(0.5)


def test_all_five_components_together() -> None:
    # 0.9 * 0.8 * 0.7 * 0.6 * 0.5^4 = 0.0189; eighth root 0.608916
    scores = Scores(draft=0.9, self_containment=0.8, self_reflection=0.7, grounded=0.6, relevance=0.5)
    weights = ScoreWeights(draft=1, self_containment=1, self_reflection=1, grounded=1, relevance=4)
    assert combine(scores, weights) == pytest.approx(0.608916, abs=1e-6)


def test_weight_zero_leaves_a_component_out() -> None:
    weights = ScoreWeights(draft=1, self_containment=1, self_reflection=0, relevance=0)
    first = Scores(draft=0.4, self_containment=0.9, self_reflection=0.9)
    second = Scores(draft=0.4, self_containment=0.9, self_reflection=0.01)
    assert combine(first, weights) == combine(second, weights) == pytest.approx(0.6)


def test_unknown_components_do_not_count() -> None:
    weights = ScoreWeights(draft=1, self_containment=1, self_reflection=1, relevance=1)
    assert combine(Scores(draft=0.3), weights) == pytest.approx(0.3)
    assert combine(Scores(), weights) is None


def test_mass_is_the_papers_product_when_all_weights_are_one() -> None:
    weights = ScoreWeights(draft=1, self_containment=1, self_reflection=1, relevance=0)
    scores = Scores(draft=0.5, self_containment=0.4, self_reflection=0.9)
    assert mass(combine(scores, weights)) == pytest.approx(0.5 * 0.4 * 0.9)


def test_two_poor_equal_answers_do_not_outweigh_a_good_one() -> None:
    """Means lie close together: 0.50 + 0.60 is more than 0.75; cubes keep the distance."""
    assert mass(0.50) + mass(0.60) < mass(0.75)


def test_weights_times_a_constant_change_nothing() -> None:
    scores = Scores(draft=0.5, self_containment=0.4, self_reflection=0.9, relevance=0.3)
    one = ScoreWeights(draft=1, self_containment=1, self_reflection=1, relevance=2)
    two = ScoreWeights(draft=2, self_containment=2, self_reflection=2, relevance=4)
    assert mass(combine(scores, one)) == pytest.approx(mass(combine(scores, two)))


def test_an_unknown_score_has_a_mass_that_can_be_divided_by() -> None:
    assert mass(None) > 0
