"""The partition: what a run reads, and in which company."""

import numpy as np
import pytest

from specrag.partition import Partition, condition_on_question, multi_perspective
from specrag.types import Passage


def passages(count: int) -> list[Passage]:
    return [
        Passage(
            id=f"p{number}",
            document_id="d",
            title=f"Title {number}",
            text=f"word{number} common text",
            page=None,
            source="f.txt",
            published_at=None,
            score=1 - number / 100,
        )
        for number in range(count)
    ]


def two_groups(first: int, second: int) -> np.ndarray:
    """Vectors of two clear clusters, the first group around (1, 0), the second around (0, 1)."""
    random = np.random.default_rng(0)
    centres = np.array([[1.0, 0.0]] * first + [[0.0, 1.0]] * second)
    return centres + random.normal(scale=0.01, size=centres.shape)


def split(first: int, second: int, *, m: int = 4, k: int = 2) -> Partition:
    return multi_perspective(passages(first + second), two_groups(first, second), m=m, k=k, seed=0)


def test_a_subset_takes_one_passage_from_each_cluster() -> None:
    for subset in split(4, 4).subsets:
        groups = {int(passage_id[1:]) < 4 for passage_id in subset.passage_ids}
        assert groups == {True, False}
        assert sorted(subset.clusters) == [0, 1]


def test_every_passage_is_read_when_there_are_enough_drafts() -> None:
    read = {passage_id for subset in split(4, 4).subsets for passage_id in subset.passage_ids}
    assert read == {f"p{number}" for number in range(8)}


def test_the_best_passage_of_each_cluster_is_always_read() -> None:
    subsets = split(6, 2, m=2).subsets
    assert subsets[0].passage_ids == ("p0", "p6")


def test_fewer_unique_subsets_than_asked_end_and_are_said() -> None:
    """Sampling until m unique subsets never ends when the product of the cluster sizes is below m."""
    partition = split(1, 2)
    assert len(partition.subsets) == 2
    assert partition.note is not None
    assert "Only 2 of 4 unique subsets" in partition.note


def test_a_singleton_cluster_is_said() -> None:
    assert "“Title 0”" in (split(1, 7).note or "")


def test_identical_passages_give_one_cluster_and_still_work() -> None:
    partition = multi_perspective(passages(3), np.ones((3, 2)), m=4, k=2, seed=0)
    assert len(partition.subsets) == 3
    assert "Only 1 of 2 clusters" in (partition.note or "")


def test_one_passage_is_one_subset() -> None:
    partition = multi_perspective(passages(1), np.ones((1, 2)), m=4, k=2, seed=0)
    assert [subset.passage_ids for subset in partition.subsets] == [("p0",)]


def test_two_passages_are_two_drafts() -> None:
    """One subset of everything would be no speculation at all."""
    partition = split(1, 1)
    assert sorted(subset.passage_ids for subset in partition.subsets) == [("p0",), ("p1",)]


def test_no_passage_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one passage"):
        multi_perspective([], np.ones((0, 2)), m=4, k=2, seed=0)


def test_the_perspective_names_what_sets_a_subset_apart() -> None:
    for subset in split(4, 4).subsets:
        assert "word" in subset.perspective
        assert "common" not in subset.perspective.split(", ")[:2]


def test_conditioning_groups_passages_by_what_they_share_with_the_question() -> None:
    question = np.array([1.0, 1.0, 0.0])
    vectors = np.array([[1.0, 0.0, 5.0], [1.0, 0.1, -5.0], [0.0, 1.0, 5.0]])
    conditioned = condition_on_question(vectors, question)
    near = conditioned[0] @ conditioned[1]
    far = conditioned[0] @ conditioned[2]
    assert near > 0.9
    assert far < 0.1
