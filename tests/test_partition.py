"""The partition: what a run reads, and in which company."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from specrag.draws import combination
from specrag.errors import UsageError
from specrag.partition import (
    Partition,
    condition_on_question,
    contiguous,
    disjoint,
    form,
    multi_perspective,
    partition,
    random_subsets,
    semantic,
)
from specrag.perspective import perspectives
from specrag.types import PartitionName, Passage, Subset


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
    made = split(1, 7)
    assert "“Title 0”" in (made.note or "")
    assert made.singletons == ("p0",)
    assert all("p0" in subset.passage_ids for subset in made.subsets)


def test_without_a_singleton_none_is_named() -> None:
    assert split(4, 4).singletons == ()
    alone = multi_perspective(passages(1), np.ones((1, 2)), m=4, k=2, seed=0)
    assert alone.singletons == ()  # with one draft only, "in every draft" says nothing


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


def test_conditioning_groups_passages_by_what_they_share_with_the_question() -> None:
    question = np.array([1.0, 1.0, 0.0])
    vectors = np.array([[1.0, 0.0, 5.0], [1.0, 0.1, -5.0], [0.0, 1.0, 5.0]])
    conditioned = condition_on_question(vectors, question)
    near = conditioned[0] @ conditioned[1]
    far = conditioned[0] @ conditioned[2]
    assert near > 0.9
    assert far < 0.1


def ids(made: Partition) -> list[tuple[str, ...]]:
    return [subset.passage_ids for subset in made.subsets]


def test_semantic_keeps_the_best_of_a_cluster_and_says_what_is_left_out() -> None:
    made = semantic(passages(8), two_groups(5, 3), m=2, k=2, seed=0)
    assert ids(made) == [("p0", "p1"), ("p5", "p6")]
    assert [subset.clusters for subset in made.subsets] == [(0, 0), (1, 1)]
    assert made.note == "4 of 8 passages are in no draft: a cluster keeps its 2 best."


def test_disjoint_mixes_the_clusters_and_reads_everything_once() -> None:
    made = disjoint(passages(8), two_groups(4, 4), m=4, k=2, seed=0)
    assert ids(made) == [("p0", "p4"), ("p1", "p5"), ("p2", "p6"), ("p3", "p7")]
    assert all(subset.clusters == (0, 1) for subset in made.subsets)
    assert made.note is None


def test_disjoint_reads_the_best_when_not_all_fit() -> None:
    made = disjoint(passages(6), two_groups(3, 3), m=2, k=2, seed=0)
    assert sorted(passage for subset in ids(made) for passage in subset) == ["p0", "p1", "p2", "p3"]
    assert made.note == "2 of 6 passages are in no draft: 2 subsets of 2 hold no more."


def test_contiguous_takes_slices_in_order_of_rank() -> None:
    made = contiguous(passages(8), two_groups(4, 4), m=4, k=2, seed=0)
    assert ids(made) == [("p0", "p1"), ("p2", "p3"), ("p4", "p5"), ("p6", "p7")]
    assert [subset.clusters for subset in made.subsets] == [(0, 0), (0, 0), (1, 1), (1, 1)]
    assert made.note is None


def test_contiguous_says_when_fewer_slices_exist() -> None:
    made = contiguous(passages(5), two_groups(3, 2), m=4, k=2, seed=0)
    assert ids(made) == [("p0", "p1"), ("p2", "p3"), ("p4",)]
    assert made.note == "Only 3 of 4 unique subsets exist, so there are 3 drafts."


def test_random_subsets_follow_the_seed_and_reach_every_subset() -> None:
    def drawn(seed: int) -> list[tuple[str, ...]]:
        return ids(random_subsets(passages(4), two_groups(2, 2), m=1, k=2, seed=seed))

    assert drawn(3) == drawn(3)
    assert len({drawn(seed)[0] for seed in range(60)}) == 6  # 4 over 2


def test_random_subsets_of_two_passages_are_two_drafts() -> None:
    assert sorted(ids(random_subsets(passages(2), np.eye(2), m=4, k=2, seed=0))) == [("p0",), ("p1",)]


def test_combinations_are_counted_in_lexicographic_order() -> None:
    # written out: the 6 pairs of 4
    pairs = [combination(rank, 4, 2) for rank in range(6)]
    assert pairs == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_fifty_random_subsets_of_twenty_five_in_fifty_are_drawn_at_once() -> None:
    """126 billion subsets exist; listing them would never end."""
    made = random_subsets(passages(50), np.random.default_rng(0).normal(size=(50, 3)), m=50, k=25, seed=0)
    assert len(set(ids(made))) == 50


@pytest.mark.parametrize("name", get_args(PartitionName))
def test_every_strategy_has_its_name(name: PartitionName) -> None:
    strategies = {
        "multi-perspective": multi_perspective,
        "semantic": semantic,
        "disjoint": disjoint,
        "contiguous": contiguous,
        "random": random_subsets,
    }
    vectors = two_groups(5, 3)
    by_name = partition(passages(8), vectors, strategy=name, m=3, k=2, seed=5)
    assert by_name == strategies[name](passages(8), vectors, m=3, k=2, seed=5)


@pytest.mark.parametrize("name", get_args(PartitionName))
def test_every_strategy_refuses_nothing_to_do(name: PartitionName) -> None:
    for count, m, k in ((0, 4, 2), (3, 0, 2), (3, 4, 0)):
        with pytest.raises(ValueError, match="at least one passage"):
            partition(passages(count), np.ones((count, 2)), strategy=name, m=m, k=k, seed=0)
    with pytest.raises(ValueError, match="3 passages need as many vectors, not 2"):
        partition(passages(3), np.ones((2, 2)), strategy=name, m=4, k=2, seed=0)


def best_and_each(found: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """A strategy of a user: the best passage with each of the others."""
    return form(found, [(0, other) for other in range(1, len(found))][:m])


def test_a_function_of_ones_own_partitions_too() -> None:
    made = partition(passages(4), np.eye(4), strategy=best_and_each, m=2, k=2, seed=0)
    assert ids(made) == [("p0", "p1"), ("p0", "p2")]
    assert all(subset.perspective for subset in made.subsets)


@pytest.mark.parametrize(
    ("subsets", "sentence"),
    [
        ((), "at least one subset"),
        ((("a", ("p0",)), ("a", ("p1",))), "an id of its own"),
        ((("a", ()),), "“a” must name retrieved passages"),
        ((("a", ("p0", "p0")),), "each of them once"),
        ((("a", ("p9",)),), "“a” must name retrieved passages"),
        ((("a", ("p0",)), ("b", ("p1",)), ("c", ("p2",))), "made 3 subsets, and at most 2 drafts"),
    ],
)
def test_a_function_of_ones_own_cannot_break_what_follows(
    subsets: tuple[tuple[str, tuple[str, ...]], ...], sentence: str
) -> None:
    def broken(found: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
        return Partition(
            subsets=tuple(Subset(id=name, perspective="x", passage_ids=read) for name, read in subsets)
        )

    with pytest.raises(UsageError, match=f"The partition “broken” cannot be used: .*{sentence}"):
        partition(passages(4), np.eye(4), strategy=broken, m=2, k=2, seed=0)


FIRST = Subset(id="a", perspective="x", passage_ids=("p0",))


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ([FIRST], "it must return a Partition, not list"),
        (None, "it must return a Partition, not NoneType"),
        (Partition(subsets=("p0",)), "at least one subset"),  # type: ignore[arg-type]  # as one without types may
        (Partition(subsets=(replace(FIRST, passage_ids=passages(1)),)), "“a” must name retrieved passages"),  # type: ignore[arg-type]  # the same
        (Partition(subsets=(FIRST,), singletons=("p9",)), "its singletons must be retrieved passages"),
    ],
)
def test_a_function_that_returns_something_else_is_one_sentence(returned: Any, sentence: str) -> None:
    """It used to end in an AttributeError of ours, which told nobody what to change."""
    with pytest.raises(UsageError, match=sentence):
        partition(passages(4), np.eye(4), strategy=lambda *_, **__: returned, m=2, k=2, seed=0)


def test_a_function_that_fails_is_named_with_its_error() -> None:
    def by_year(found: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
        raise KeyError("2025")

    with pytest.raises(UsageError, match=r"^The partition “by_year” failed: KeyError: '2025'\.$") as caught:
        partition(passages(4), np.eye(4), strategy=by_year, m=2, k=2, seed=0)
    assert isinstance(caught.value.__cause__, KeyError), "whoever debugs it needs the place"


def about(name: str, title: str, text: str) -> Passage:
    return Passage(
        id=name,
        document_id=name,
        title=title,
        text=text,
        page=None,
        source="f.md",
        published_at=None,
        score=0.5,
    )


LIMITS = about(
    "a", "Owner's manual", "The manual of the bike. After that the rack carries a load. All racks do."
)
TYRES = about("b", "Brakes and tyres", "Tyres of the bike need pressure. Brakes of the bike need pads.")
PRICES = about("c", "Price list", "The price of the bike. Every price has a tax, and the list says which.")
TRAVEL = about("d", "Travel", "Travel by train with the bike. A train takes the bike to the station.")


def test_a_perspective_names_what_sets_a_subset_apart_and_all_its_passages() -> None:
    first, second = perspectives([[LIMITS, TYRES], [PRICES, TRAVEL]])
    assert first.split(", ")[0] in {"brakes", "tyres", "manual"}
    assert {"manual"} & set(first.split(", "))
    assert {"brakes", "tyres"} & set(first.split(", "))
    assert {"price", "list"} & set(second.split(", "))
    assert {"train", "travel"} & set(second.split(", "))
    assert "bike" not in first + second


def test_a_long_passage_does_not_name_its_subset_alone() -> None:
    chatty = about("e", "Trailer", "trailer axle wheel " * 9)
    names = perspectives([[chatty, TRAVEL], [PRICES, LIMITS]])[0].split(", ")
    assert len(names) == 3
    assert {"train", "travel"} & set(names)


def test_a_perspective_says_no_word_twice_and_no_empty_one() -> None:
    names = perspectives([[about("a", "Rack", "racks rack all after every one")], [PRICES]])
    assert names[0] == "rack"


def test_the_words_of_the_question_do_not_name_a_subset() -> None:
    vectors = np.eye(4)
    found = [PRICES, LIMITS, TYRES, TRAVEL]

    def named(question: str) -> str:
        made = partition(found, vectors, strategy="contiguous", m=4, k=1, seed=0, question=question)
        return made.subsets[0].perspective

    assert "price" in named("").split(", ")
    assert "price" not in named("What are the prices?").split(", ")


def test_a_subset_without_a_telling_word_has_the_title_of_its_best_passage() -> None:
    assert perspectives([[about("a", "12/7", "3 + 4")], [PRICES]])[0] == "12/7"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted as Linux tells them")
def test_clustering_leaves_no_helper_threads_behind() -> None:
    """More OpenMP threads than cores put the models' thread to sleep between products: 1.6 times slower."""
    program = (
        "import os, numpy, torch, sklearn.cluster\n"
        "from specrag.clusters import cluster\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "cluster(numpy.random.rand(8, 64), 2, 0)\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
