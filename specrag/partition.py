"""From K passages to m subsets of k: the multi-perspective sampling of the paper (section 3.2).

1. k-means with k clusters over question-conditioned embeddings of the passages.
2. A subset takes one passage from each cluster.
3. Repeat until there are m unique subsets, or until no new one can exist.

Where the paper draws blindly, each cluster here deals its passages best first and starts over when it is
through, so the best evidence is always read and every passage is, as far as m reaches. Draws after the first
round are shuffled by the seed. When the product of the cluster sizes is below m there are fewer subsets than
asked for, and the note says so.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from specrag.perspective import perspectives
from specrag.types import Passage, Subset


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Subsets, and a sentence where a person should know something about them."""

    subsets: tuple[Subset, ...]
    note: str | None = None


def condition_on_question(vectors: Any, question: Any) -> Any:
    """Embeddings (K, d) seen from the question (d,): the products whose sum is the similarity, normalised.

    Two passages are near each other when they resemble the question in the same way.
    """
    products = np.asarray(vectors) * np.asarray(question)[None, :]
    norms = np.linalg.norm(products, axis=1, keepdims=True)
    return products / np.maximum(norms, 1e-12)


def multi_perspective(passages: Sequence[Passage], vectors: Any, *, m: int, k: int, seed: int) -> Partition:
    """Partition passages, best first, with their question-conditioned embeddings (K, d).

    Raises:
        ValueError: there is no passage, or m or k is below 1.
    """
    if not passages or m < 1 or k < 1:
        raise ValueError("a partition needs at least one passage, one subset and one passage in a subset")
    # k clusters of one passage each would leave a single subset: two passages make two drafts, not one
    labels = _cluster(np.asarray(vectors), min(k, max(1, len(passages) - 1)), seed)
    clusters = [[i for i, label in enumerate(labels) if label == wanted] for wanted in sorted(set(labels))]
    chosen = _sample(clusters, m, Random(seed))  # noqa: S311 - reproducible on purpose
    words = perspectives([[passages[i] for i in indices] for indices in chosen])
    subsets = tuple(
        Subset(
            id=f"s{number}",
            perspective=perspective,
            passage_ids=tuple(passages[i].id for i in indices),
            clusters=tuple(int(labels[i]) for i in indices),
        )
        for number, (indices, perspective) in enumerate(zip(chosen, words, strict=True), 1)
    )
    return Partition(subsets=subsets, note=_note(clusters, passages, asked=m, got=len(subsets), k=k))


def _cluster(vectors: Any, k: int, seed: int) -> list[int]:
    """Cluster labels, numbered in order of first appearance, so that cluster 0 holds the best passage."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():  # identical passages give fewer clusters than asked; that is fine
        warnings.simplefilter("ignore", ConvergenceWarning)
        raw = KMeans(n_clusters=k, n_init=10, random_state=seed).fit_predict(vectors)
    order = {label: number for number, label in enumerate(dict.fromkeys(raw.tolist()))}
    return [order[label] for label in raw.tolist()]


def _sample(clusters: list[list[int]], m: int, random: Random) -> list[tuple[int, ...]]:
    """Up to m unique tuples with one member of each cluster, each tuple in order of rank."""
    possible = math.prod(len(cluster) for cluster in clusters)
    dealers = [_deal(cluster, random) for cluster in clusters]
    chosen: dict[tuple[int, ...], None] = {}
    for _ in range(50 * m):
        if len(chosen) == min(m, possible):
            break
        chosen.setdefault(tuple(sorted(next(dealer) for dealer in dealers)))
    return list(chosen)


def _deal(cluster: list[int], random: Random) -> Iterator[int]:
    """Members of a cluster without end: best first in the first round, shuffled in the later ones."""
    yield from cluster
    while True:
        again = list(cluster)
        random.shuffle(again)
        yield from again


def _note(
    clusters: list[list[int]], passages: Sequence[Passage], *, asked: int, got: int, k: int
) -> str | None:
    notes = []
    if len(clusters) < k:
        notes.append(f"Only {len(clusters)} of {k} clusters exist among {len(passages)} passages.")
    if got < asked:
        notes.append(f"Only {got} of {asked} unique subsets exist, so there are {got} drafts.")
    singles = [cluster[0] for cluster in clusters if len(cluster) == 1]
    if singles and got > 1:
        titles = ", ".join(f"“{passages[i].title}”" for i in singles)
        notes.append(f"A cluster of its own, so in every draft: {titles}.")
    return " ".join(notes) or None
