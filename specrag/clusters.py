"""Which passages belong together: k-means over question-conditioned embeddings (paper, section 3.2).

Labels are numbered in order of first appearance, so that cluster 0 holds the best passage and a seed always
gives the same numbers.
"""

import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

_ONE_AT_A_TIME = threading.Lock()


def condition_on_question(vectors: Any, question: Any) -> Any:
    """Embeddings (K, d) seen from the question (d,): the products whose sum is the similarity, normalised.

    Two passages are near each other when they resemble the question in the same way.
    """
    products = np.asarray(vectors) * np.asarray(question)[None, :]
    norms = np.linalg.norm(products, axis=1, keepdims=True)
    return products / np.maximum(norms, 1e-12)


def cluster(vectors: Any, k: int, seed: int) -> list[int]:
    """A cluster label for each row of `vectors` (K, d); at most k clusters, fewer where rows are equal."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    rows = np.asarray(vectors)
    # one thread: fifty rows need no more, and its helpers would slow the models' thread (`models/worker.py`);
    # one call at a time: both settings belong to the process
    with _ONE_AT_A_TIME, warnings.catch_warnings(), threadpool_limits(1):
        # identical passages give fewer clusters than asked; that is fine
        warnings.simplefilter("ignore", ConvergenceWarning)
        raw = KMeans(n_clusters=min(k, len(rows)), n_init=10, random_state=seed).fit_predict(rows)
    order = {label: number for number, label in enumerate(dict.fromkeys(raw.tolist()))}
    return [order[label] for label in raw.tolist()]


def members(labels: Sequence[int]) -> list[list[int]]:
    """The rows of each cluster, in order; the clusters in order of their label."""
    found: dict[int, list[int]] = {label: [] for label in sorted(set(labels))}
    for row, label in enumerate(labels):
        found[label].append(row)
    return list(found.values())
