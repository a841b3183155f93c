"""Several rankings become one by reciprocal rank fusion (Cormack, Clarke and Büttcher 2009).

A passage gets 1 / (60 + place) from every ranking that names it, times the weight of the ranking. Places are
comparable where scores are not: a cosine and a BM25 score have no common scale. Equal sums are ordered by id,
so nothing depends on the order in which rankings or passages came in.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

CONSTANT: Final = 60
"""Of the paper: how little the first places differ from each other."""
TOGETHER: Final = 8.0
"""Weight of the ranking by both scores added up, beside 1 for each of the two it is made of.

Places alone forget that the first is far ahead of the second. Measured in docs/retrieval.md.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Ids, best first, and how much they count."""

    ids: Sequence[str]
    """Each once."""
    weight: float = 1.0
    """0 leaves the ranking out."""


def fuse(rankings: Iterable[Ranking], *, beside: Mapping[str, float] | None = None) -> list[str]:
    """All ids that a ranking names, best first.

    `beside` is added to the sums of ids that some ranking names; it brings in no id of its own.
    """
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for place, identity in enumerate(ranking.ids, 1):
            shares.setdefault(identity, []).append(ranking.weight * share(place))
    for identity, more in (beside or {}).items():
        if identity in shares:
            shares[identity].append(more)
    # fsum: the last digit must not depend on which ranking came first
    return sorted(shares, key=lambda identity: (-math.fsum(shares[identity]), identity))


def share(place: int) -> float:
    """What a place, counted from 1, is worth."""
    return 1 / (CONSTANT + place)
