"""The perspective map: the passages of a run in two dimensions, as the partition sees them.

Subsets are formed from question-conditioned embeddings of hundreds of dimensions. Their two principal
components show who lies near whom, and how much of the whole that is: only distances mean something, and both
axes have one scale so that they do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specrag.types import Passage, Spot

FEWEST = 3
"""Fewer passages lie on a line whatever they say."""
_TINY = 1e-6
"""A direction so much shorter than the first one is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerspectiveMap:
    """Where the passages lie."""

    spots: tuple[Spot, ...] = ()
    """In the order of the passages; empty where there are too few for a map, or all say the same."""
    variance: float | None = None
    """Share of the embeddings' variance that the two directions hold, in (0, 1]; None without a map."""


def perspective_map(
    passages: Sequence[Passage], vectors: Any, clusters: Sequence[int] = ()
) -> PerspectiveMap:
    """The map of passages with their question-conditioned embeddings (K, d), scaled to [-1, 1].

    `clusters` are those of the passages, or of the first ones, where a strategy reads no others. The same
    embeddings always give the same map: the passage that is farthest out along an axis lies on its positive
    side.
    """
    if len(passages) < FEWEST:
        return PerspectiveMap()
    rows = np.asarray(vectors, dtype=np.float64)
    left, lengths, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)  # (K, r), (r,)
    if lengths[0] < _TINY:
        return PerspectiveMap()
    kept = np.where(lengths[:2] >= _TINY * lengths[0], lengths[:2], 0.0)
    places = left[:, :2] * kept  # (K, 2)
    places *= [_sign(axis) for axis in places.T]
    places = np.round(places / np.abs(places).max(), 4) + 0.0  # no "-0.0" in files
    if places.shape[1] == 1:  # embeddings of one dimension
        places = np.column_stack([places, np.zeros(len(places))])
    labels: list[int | None] = [*clusters, *[None] * (len(passages) - len(clusters))]
    return PerspectiveMap(
        spots=tuple(
            Spot(passage_id=passage.id, x=float(x), y=float(y), cluster=label)
            for passage, (x, y), label in zip(passages, places, labels, strict=True)
        ),
        variance=round(float((kept**2).sum() / (lengths**2).sum()), 4),
    )


def _sign(axis: Any) -> float:
    """The sign that puts the farthest coordinate on the positive side.

    Of two that are nearly as far the first counts, or rounding would choose the side.
    """
    far = np.abs(axis)
    return -1.0 if axis[int(np.argmax(far >= far.max() * (1 - _TINY)))] < 0 else 1.0
