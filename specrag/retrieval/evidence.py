"""The retriever's own view of the evidence: how near every sentence of the passages is to the question.

A passage is an average of its sentences; the one sentence that answers is what counts. With a weak verifier
this is the strongest signal of a draft's worth. The same comparison serves the evidence focus, in which a
draft reads only the nearest sentences of its subset.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specrag.retrieval.base import Embedder
from specrag.retrieval.retriever import Retrieved
from specrag.scoring import FLOOR
from specrag.sentences import sentences
from specrag.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of a passage."""

    text: str
    similarity: float
    """Cosine similarity to the question, in [-1, 1]."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The sentences of every retrieved passage, in document order."""

    sentences: Mapping[str, tuple[Sentence, ...]]
    """By passage id; empty for a passage without a sentence."""

    def relevance(self, passage_id: str) -> float:
        """Similarity of the passage's nearest sentence to the question, cut to (0, 1]."""
        nearest = max((sentence.similarity for sentence in self.sentences[passage_id]), default=FLOOR)
        return min(1.0, max(FLOOR, nearest))

    def focus(self, passages: Sequence[Passage], n: int) -> tuple[Passage, ...]:
        """The passages, each cut to what it holds of the `n` sentences nearest to the question.

        A passage without one of them keeps its own nearest sentence, so every passage stays visible and
        keeps its number; ids do not change, so a citation still means the whole passage.
        """
        ranked = sorted(
            (
                (-sentence.similarity, place, number)
                for place, passage in enumerate(passages)
                for number, sentence in enumerate(self.sentences[passage.id])
            )
        )
        kept = {(place, number) for _, place, number in ranked[:n]}
        seen = {place for place, _ in kept}
        for _, place, number in ranked[n:]:
            if place not in seen:
                seen.add(place)
                kept.add((place, number))
        return tuple(
            replace(passage, text=self._text(passage, {number for at, number in kept if at == place}))
            for place, passage in enumerate(passages)
        )

    def _text(self, passage: Passage, kept: set[int]) -> str:
        chosen = [s.text for number, s in enumerate(self.sentences[passage.id]) if number in kept]
        return " ".join(chosen) or passage.text


class EvidenceScorer:
    """Compares every sentence of the retrieved passages with the question."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def compare(self, found: Retrieved) -> Evidence:
        """All sentences with their similarities, from one pass of the embedder."""
        split = {passage.id: sentences(passage.text) for passage in found.passages}
        texts = [text for parts in split.values() for text in parts]
        near = self._embedder.embed(texts) @ np.asarray(found.question_vector)  # (sentences,)
        values = iter(near.tolist())
        return Evidence(
            {
                passage_id: tuple(Sentence(text=text, similarity=next(values)) for text in parts)
                for passage_id, parts in split.items()
            }
        )
