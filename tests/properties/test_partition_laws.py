"""Laws of the partition and of the scores."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specrag.config import ScoreWeights
from specrag.partition import multi_perspective
from specrag.scoring import combine, geometric_mean
from specrag.types import Scores
from tests.test_partition import passages

probability = st.floats(min_value=1e-6, max_value=1.0)


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 50),
    m=st.integers(1, 12),
    k=st.integers(1, 6),
    seed=st.integers(0, 9),
    same=st.booleans(),
)
def test_a_partition_is_bounded_unique_seeded_and_complete(
    count: int, m: int, k: int, seed: int, same: bool
) -> None:
    vectors = np.ones((count, 3)) if same else np.random.default_rng(seed).normal(size=(count, 3))
    partition = multi_perspective(passages(count), vectors, m=m, k=k, seed=seed)
    again = multi_perspective(passages(count), vectors, m=m, k=k, seed=seed)
    members = [subset.passage_ids for subset in partition.subsets]
    assert partition == again
    assert 1 <= len(members) <= m
    assert len(set(members)) == len(members)
    assert all(1 <= len(ids) <= k and len(set(ids)) == len(ids) for ids in members)
    assert "p0" in members[0]
    assert len(members) == m or partition.note is not None


@given(st.lists(probability, min_size=1, max_size=30))
def test_a_score_lies_between_its_tokens(values: list[float]) -> None:
    mean = geometric_mean([math.log(value) for value in values])
    assert mean is not None
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert 0 < mean <= 1


@given(probability, probability, probability, st.floats(min_value=0.01, max_value=5))
def test_combining_is_monotone_in_every_weighted_component(
    low: float, high: float, other: float, weight: float
) -> None:
    low, high = sorted((low, high))
    weights = ScoreWeights(draft=weight, self_containment=1, self_reflection=0, relevance=0)
    below = combine(Scores(draft=low, self_containment=other), weights)
    above = combine(Scores(draft=high, self_containment=other), weights)
    assert below is not None
    assert above is not None
    assert 0 < below <= above * (1 + 1e-12)
