"""What the searches put forward for a question, and how their rankings become one order."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specrag.config import Settings
from specrag.retrieval.base import Vectors
from specrag.retrieval.bm25 import Matches
from specrag.retrieval.fusion import TOGETHER, Ranking, fuse
from specrag.retrieval.recency import RECENT, preference
from specrag.types import Passage, SearchName


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What the searches put forward, in the order of their fusion."""

    question: str
    question_vector: Vectors
    passages: tuple[Passage, ...]
    vectors: Mapping[str, Vectors]
    """Of each passage."""
    matches: Matches
    readable: float
    """How much of the question the embedder can read, in [0, 1]."""
    dense: int = 0
    """Passages that the vectors put forward."""
    bm25: int = 0
    """Passages that the words put forward."""
    settings: Settings = field(repr=False)

    @property
    def mixed(self) -> bool:
        """Whether both ways of searching found something."""
        return bool(self.dense and self.bm25)


def fused(candidates: Candidates, mode: SearchName) -> tuple[Passage, ...]:
    """The candidates, best first, each with its places."""
    passages, matches = candidates.passages, candidates.matches
    nearest = [one.id for one in sorted(passages, key=lambda one: (-one.score, one.id))]
    worded = sorted(
        (identity for one in passages if matches.scores.get(identity := one.id, 0.0) > 0),
        key=lambda identity: (-matches.scores[identity], identity),
    )
    rankings = {
        "dense": [Ranking(ids=nearest)],
        "bm25": [Ranking(ids=worded)],
        "hybrid": _both(candidates, nearest, worded),
    }[mode]
    total = sum(ranking.weight for ranking in rankings)
    dates = {one.id: one.published_at for one in passages}
    order = fuse(rankings, beside=preference(dates, RECENT * candidates.settings.prefer_recent * total))
    near = {identity: place for place, identity in enumerate(nearest, 1)} if mode != "bm25" else {}
    by_words = {identity: place for place, identity in enumerate(worded, 1)}
    by_id = {one.id: one for one in passages}
    return tuple(
        replace(by_id[identity], dense_rank=near.get(identity), bm25_rank=by_words.get(identity))
        for identity in order
    )


def _both(candidates: Candidates, nearest: list[str], worded: list[str]) -> list[Ranking]:
    """By vectors as far as the embedder reads the question, by words, and by the sum of both scores."""
    trust = candidates.readable**2
    sums = {one.id: trust * one.score + candidates.matches.share(one.id) for one in candidates.passages}
    together = sorted(sums, key=lambda identity: (-sums[identity], identity))
    return [
        Ranking(ids=nearest, weight=trust),
        Ranking(ids=worded),
        Ranking(ids=together, weight=TOGETHER),
    ]
