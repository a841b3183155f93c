"""Laws of the partition: what each strategy promises, for any passages, sizes and seed."""

import math
from collections import Counter
from typing import Any, get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specrag.partition import Partition, disjoint, multi_perspective, partition, semantic
from specrag.types import PartitionName
from tests.test_partition import passages

NAMES: tuple[PartitionName, ...] = get_args(PartitionName)
counts, subsets, sizes, seeds = st.integers(1, 50), st.integers(1, 12), st.integers(1, 6), st.integers(0, 9)
kinds = st.integers(1, 60)
"""Different vectors among the passages: 1 makes them all identical."""


def vectors(count: int, kinds: int, seed: int) -> Any:
    points = np.random.default_rng(seed).normal(size=(kinds, 3))
    return points[np.arange(count) % kinds]


def rank(passage_id: str) -> int:
    return int(passage_id[1:])


def possible(name: PartitionName, made: Partition, count: int, m: int, k: int) -> int:
    """How many subsets there are to be had."""
    size = min(k, max(1, count - 1))
    match name:
        case "random":
            return math.comb(count, size)
        case "contiguous":
            return math.ceil(count / k)
        case "disjoint":
            return count
        case "semantic" | "multi-perspective":
            return len(made.subsets)  # depends on the clusters: see the laws of their own


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), count=counts, m=subsets, k=sizes, seed=seeds, kinds=kinds)
def test_every_partition_is_bounded_unique_seeded_and_readable(
    *, name: PartitionName, count: int, m: int, k: int, seed: int, kinds: int
) -> None:
    found, points = passages(count), vectors(count, kinds, seed)
    made = partition(found, points, strategy=name, m=m, k=k, seed=seed)
    members = [subset.passage_ids for subset in made.subsets]
    assert made == partition(found, points, strategy=name, m=m, k=k, seed=seed)
    assert 1 <= len(members) <= m
    assert len(set(members)) == len(members)
    assert [subset.id for subset in made.subsets] == [f"s{number}" for number in range(1, len(members) + 1)]
    for subset in made.subsets:
        ids = subset.passage_ids
        assert 1 <= len(ids) <= k
        assert [rank(one) for one in ids] == sorted({rank(one) for one in ids})
        assert len(subset.clusters) == len(ids)
        assert subset.perspective
    assert len(members) == min(m, possible(name, made, count, m, k)) or name in (
        "semantic",
        "multi-perspective",
    )
    assert ("unique subsets exist" in (made.note or "")) == (len(members) < m)
    unread = count - len({one for ids in members for one in ids})
    assert (f"{unread} of {count} passages" in (made.note or "")) == (unread > 0)
    if name != "random":
        assert "p0" in members[0]


@settings(max_examples=40, deadline=None)
@given(count=counts, m=subsets, k=sizes, seed=seeds, kinds=kinds)
def test_multi_perspective_takes_one_of_each_cluster_and_all_combinations_there_are(
    count: int, m: int, k: int, seed: int, kinds: int
) -> None:
    """Drawing until m unique subsets never ends when the product of the cluster sizes is below m."""
    found, points = passages(count), vectors(count, kinds, seed)
    made = multi_perspective(found, points, m=m, k=k, seed=seed)
    everything = multi_perspective(found, points, m=200, k=k, seed=seed)
    clusters = {subset.clusters for subset in made.subsets}
    assert {tuple(sorted(labels)) for labels in clusters} == {tuple(range(len(made.subsets[0].clusters)))}
    assert len(made.subsets) == min(m, len(everything.subsets))
    sizes = Counter(
        {
            one: label
            for subset in everything.subsets
            for one, label in zip(subset.passage_ids, subset.clusters, strict=True)
        }.values()
    )
    if len(everything.subsets) < 200:
        assert len(everything.subsets) == math.prod(sizes.values())
        assert sum(sizes.values()) == count
    alone = set(made.singletons)
    assert all(alone <= set(subset.passage_ids) for subset in made.subsets)
    if len(everything.subsets) > 1 and len(made.subsets) > 1:
        assert len(alone) == sum(size == 1 for size in sizes.values())


@settings(max_examples=40, deadline=None)
@given(count=counts, m=subsets, k=sizes, seed=seeds, kinds=kinds)
def test_semantic_never_mixes_clusters_nor_splits_one_over_two_subsets(
    count: int, m: int, k: int, seed: int, kinds: int
) -> None:
    made = semantic(passages(count), vectors(count, kinds, seed), m=m, k=k, seed=seed)
    labels = [set(subset.clusters) for subset in made.subsets]
    assert labels == [{number} for number in range(len(labels))]
    whole = semantic(passages(count), vectors(count, kinds, seed), m=m, k=count, seed=seed)
    assert sorted(rank(one) for subset in whole.subsets for one in subset.passage_ids) == list(range(count))
    for kept, cluster in zip(made.subsets, whole.subsets, strict=True):
        assert kept.passage_ids == cluster.passage_ids[:k]


@settings(max_examples=40, deadline=None)
@given(count=counts, m=subsets, k=sizes, seed=seeds, kinds=kinds)
def test_disjoint_reads_the_best_once_evenly_and_spreads_every_cluster(
    count: int, m: int, k: int, seed: int, kinds: int
) -> None:
    made = disjoint(passages(count), vectors(count, kinds, seed), m=m, k=k, seed=seed)
    read = [rank(one) for subset in made.subsets for one in subset.passage_ids]
    assert sorted(read) == list(range(min(count, m * k)))
    lengths = [len(subset.passage_ids) for subset in made.subsets]
    assert max(lengths) - min(lengths) <= 1
    shares = [Counter(subset.clusters) for subset in made.subsets]
    for label in {label for share in shares for label in share}:
        assert max(share[label] for share in shares) - min(share[label] for share in shares) <= 1
