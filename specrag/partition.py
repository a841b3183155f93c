"""From K passages to m subsets of k: five strategies behind one signature, or one of your own.

- `multi-perspective` (paper, section 3.2): a subset takes one passage from each of k clusters.
- `semantic`: a subset is one of m clusters, cut to its k best passages.
- `disjoint`: one passage from each cluster without replacement; no passage is read twice.
- `contiguous`: slices of k in order of rank, as they were retrieved.
- `random`: k passages drawn by the seed; the paper's ablation.

Passages come best first, and subsets name theirs in that order. Every strategy ends, whatever it is given:
where m unique subsets do not exist there are fewer, and the note says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Protocol, assert_never

from specrag.clusters import cluster, condition_on_question, members
from specrag.draws import combination, distinct, one_of_each
from specrag.errors import UsageError
from specrag.perspective import perspectives
from specrag.types import PartitionName, Passage, Subset

__all__ = [
    "Partition",
    "Partitioner",
    "condition_on_question",
    "contiguous",
    "disjoint",
    "form",
    "multi_perspective",
    "name_of",
    "partition",
    "partitioner",
    "random_subsets",
    "semantic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Subsets, and a sentence where a person should know something about them."""

    subsets: tuple[Subset, ...]
    note: str | None = None
    singletons: tuple[str, ...] = ()
    """Ids of the passages that are a cluster of their own, and so in every one of several subsets."""
    clusters: tuple[int, ...] = ()
    """Cluster of every passage, in the order of the passages; empty where there are none."""


class Partitioner(Protocol):
    """What forms subsets: one of the five strategies, or a function of your own (`form` helps with it)."""

    def __call__(  # noqa: D102 - see the class
        self, passages: Sequence[Passage], vectors: Any, /, *, m: int, k: int, seed: int
    ) -> Partition: ...


def partition(
    passages: Sequence[Passage],
    vectors: Any,
    *,
    strategy: PartitionName | Partitioner,
    m: int,
    k: int,
    seed: int,
    question: str = "",
) -> Partition:
    """Partition passages, best first, with their question-conditioned embeddings (K, d).

    The words of `question` are left out of the names of the subsets. What a function of your own returns is
    checked, and its subsets may leave their perspective empty.

    Raises:
        ValueError: there is no passage, or m or k is below 1.
        UsageError: a function of your own fails or breaks the rules.
    """
    _check(passages, vectors, m, k)
    if isinstance(strategy, str):
        made = partitioner(strategy)(passages, vectors, m=m, k=k, seed=seed)
        return _named(made, passages, question) if question else made
    try:
        made = strategy(passages, vectors, m=m, k=k, seed=seed)
    except Exception as error:  # the function is somebody else's, and so are its bugs
        why = f"{type(error).__name__}: {error}".rstrip(": .")
        raise UsageError(f"The partition “{name_of(strategy)}” failed: {why}.") from error
    fault = _fault(made, [passage.id for passage in passages], m)
    if fault:
        raise UsageError(f"The partition “{name_of(strategy)}” cannot be used: {fault}.")
    return made if all(subset.perspective for subset in made.subsets) else _named(made, passages, question)


def name_of(strategy: Partitioner) -> str:
    """What a trace and an error call a function of your own."""
    return str(getattr(strategy, "__name__", "custom"))


def partitioner(name: PartitionName) -> Partitioner:
    """The strategy of that name."""
    match name:
        case "multi-perspective":
            return multi_perspective
        case "semantic":
            return semantic
        case "disjoint":
            return disjoint
        case "contiguous":
            return contiguous
        case "random":
            return random_subsets
        case _:
            assert_never(name)


def multi_perspective(passages: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """One passage from each of k clusters, until there are m unique subsets or no new one can exist.

    Where the paper draws blindly, each cluster here deals its passages best first and starts over when it is
    through, so the best evidence is always read and every passage is, as far as m reaches. Draws after the
    first round are shuffled by the seed.

    Raises:
        ValueError: there is no passage, or m or k is below 1.
    """
    _check(passages, vectors, m, k)
    labels = cluster(vectors, _size(passages, k), seed)
    clusters = members(labels)
    groups = one_of_each(clusters, m, Random(seed))  # noqa: S311 - reproducible on purpose
    alone = [rows[0] for rows in clusters if len(rows) == 1 and len(groups) > 1]
    notes = [_few_clusters(len(clusters), k, passages), _fewer(m, len(groups)), _unread(passages, groups)]
    if alone:
        titles = ", ".join(f"“{passages[row].title}”" for row in alone)
        notes.append(f"A cluster of its own, so in every draft: {titles}.")
    made = form(passages, groups, labels=labels, notes=notes)
    return replace(made, singletons=tuple(passages[row].id for row in alone))


def semantic(passages: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """A subset is one of m clusters; a cluster of more than k passages keeps its k best.

    Raises:
        ValueError: there is no passage, or m or k is below 1.
    """
    _check(passages, vectors, m, k)
    labels = cluster(vectors, m, seed)
    groups = [tuple(rows[:k]) for rows in members(labels)]
    unread = _unread(passages, groups, why=f"a cluster keeps its {k} best")
    return form(passages, groups, labels=labels, notes=[_fewer(m, len(groups)), unread])


def disjoint(passages: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """Every one of the m * k best passages in exactly one subset; sizes differ by at most 1.

    The clusters are dealt out one after the other, a passage to each subset in turn. A cluster of at most m
    passages therefore never gives two of them to one subset.

    Raises:
        ValueError: there is no passage, or m or k is below 1.
    """
    _check(passages, vectors, m, k)
    read = passages[: m * k]
    labels = cluster(vectors[: len(read)], k, seed)
    deck = [row for rows in members(labels) for row in rows]
    count = min(m, len(read))
    groups = [tuple(sorted(deck[number::count])) for number in range(count)]
    unread = _unread(passages, groups, why=f"{m} subsets of {k} hold no more")
    return form(read, groups, labels=labels, notes=[_fewer(m, count), unread])


def contiguous(passages: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """Slices of k passages in order of rank; the last one may be shorter.

    Clusters do not shape the subsets; they are found all the same, to show what a slice covers.

    Raises:
        ValueError: there is no passage, or m or k is below 1.
    """
    _check(passages, vectors, m, k)
    slices = [tuple(range(at, min(at + k, len(passages)))) for at in range(0, len(passages), k)]
    groups = slices[:m]
    unread = _unread(passages, groups, why=f"{m} subsets of {k} hold no more")
    labels = cluster(vectors, _size(passages, k), seed)
    return form(passages, groups, labels=labels, notes=[_fewer(m, len(groups)), unread])


def random_subsets(passages: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """Unique subsets of k passages, m of them, each as likely as any other.

    Clusters do not shape the subsets; they are found all the same, to show what a subset covers.

    Raises:
        ValueError: there is no passage, or m or k is below 1.
    """
    _check(passages, vectors, m, k)
    count, size = len(passages), _size(passages, k)
    possible = math.comb(count, size)
    random = Random(seed)  # noqa: S311 - reproducible on purpose
    groups = [combination(rank, count, size) for rank in distinct(min(m, possible), possible, random)]
    labels = cluster(vectors, size, seed)
    return form(passages, groups, labels=labels, notes=[_fewer(m, len(groups)), _unread(passages, groups)])


def form(
    passages: Sequence[Passage],
    groups: Sequence[Sequence[int]],
    *,
    labels: Sequence[int] | None = None,
    notes: Sequence[str | None] = (),
) -> Partition:
    """The partition of `groups`, each the places of its passages in `passages`, best first.

    `labels` are the clusters of the passages, where they are known.
    """
    names = perspectives([[passages[row] for row in rows] for rows in groups])
    subsets = tuple(
        Subset(
            id=f"s{number}",
            perspective=name,
            passage_ids=tuple(passages[row].id for row in rows),
            clusters=tuple(labels[row] for row in rows) if labels else (),
        )
        for number, (rows, name) in enumerate(zip(groups, names, strict=True), 1)
    )
    note = " ".join(note for note in notes if note) or None
    return Partition(subsets=subsets, note=note, clusters=tuple(labels or ()))


def _size(passages: Sequence[Passage], k: int) -> int:
    """k, or fewer: a single subset of everything is no speculation, so two passages make two drafts."""
    return min(k, max(1, len(passages) - 1))


def _named(made: Partition, passages: Sequence[Passage], question: str) -> Partition:
    by_id = {passage.id: passage for passage in passages}
    groups = [[by_id[passage_id] for passage_id in subset.passage_ids] for subset in made.subsets]
    names = perspectives(groups, question=question)
    subsets = (replace(subset, perspective=name) for subset, name in zip(made.subsets, names, strict=True))
    return replace(made, subsets=tuple(subsets))


def _check(passages: Sequence[Passage], vectors: Any, m: int, k: int) -> None:
    if not passages or m < 1 or k < 1:
        raise ValueError("a partition needs at least one passage, one subset and one passage in a subset")
    if len(vectors) != len(passages):
        raise ValueError(f"{len(passages)} passages need as many vectors, not {len(vectors)}")


def _fault(made: object, passage_ids: Sequence[str], m: int) -> str | None:
    """What in the work of a function of one's own would break the steps that rely on it."""
    known = set(passage_ids)
    if not isinstance(made, Partition):
        return f"it must return a Partition, not {type(made).__name__}"
    if not _all(made.subsets, Subset) or len({subset.id for subset in made.subsets}) < len(made.subsets):
        return "a partition needs at least one subset, and every subset an id of its own"
    if len(made.subsets) > m:
        return f"it made {len(made.subsets)} subsets, and at most {m} drafts are asked for"
    for subset in made.subsets:
        ids = subset.passage_ids
        if not _all(ids, str) or len(set(ids)) < len(ids) or not known.issuperset(ids):
            return f"the subset “{subset.id}” must name retrieved passages, each of them once"
    if made.clusters and not (_all(made.clusters, int) and len(made.clusters) == len(passage_ids)):
        return "its clusters must be one number for every passage"
    return None if known.issuperset(made.singletons) else "its singletons must be retrieved passages"


def _all(values: object, kind: type) -> bool:
    """Whether there are values and each is of that kind; whoever writes without types may return anything."""
    return isinstance(values, tuple | list) and bool(values) and all(isinstance(one, kind) for one in values)


def _few_clusters(found: int, k: int, passages: Sequence[Passage]) -> str | None:
    return None if found >= k else f"Only {found} of {k} clusters exist among {len(passages)} passages."


def _fewer(asked: int, got: int) -> str | None:
    drafts = "is 1 draft" if got == 1 else f"are {got} drafts"
    return None if got >= asked else f"Only {got} of {asked} unique subsets exist, so there {drafts}."


def _unread(passages: Sequence[Passage], groups: Sequence[Sequence[int]], *, why: str = "") -> str | None:
    left = len(passages) - len({row for rows in groups for row in rows})
    be = "is" if left == 1 else "are"
    return f"{left} of {len(passages)} passages {be} in no draft{': ' if why else ''}{why}." if left else None
