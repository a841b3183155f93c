"""The retriever's own view of the evidence: how near the nearest sentence of a passage is to the question.

A passage is an average of its sentences; the one sentence that answers is what counts. With a weak verifier
this is the strongest signal of a draft's worth.
"""

import numpy as np

from specrag.retrieval.base import Embedder
from specrag.retrieval.retriever import Retrieved
from specrag.scoring import FLOOR
from specrag.text import sentences

MAX_SENTENCES = 12
"""Sentences of one passage that are compared; a chunk rarely has more."""


class EvidenceScorer:
    """Compares every sentence of the retrieved passages with the question."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def relevance(self, found: Retrieved) -> dict[str, float]:
        """Passage id to the cosine similarity of its nearest sentence, in (0, 1]."""
        split = {passage.id: sentences(passage.text)[:MAX_SENTENCES] for passage in found.passages}
        texts = [sentence for parts in split.values() for sentence in parts]
        if not texts:
            return {passage.id: FLOOR for passage in found.passages}
        near = self._embedder.embed(texts) @ np.asarray(found.question_vector)  # (sentences,)
        values = iter(near.tolist())
        return {
            passage_id: min(1.0, max([FLOOR, *(next(values) for _ in parts)]))
            for passage_id, parts in split.items()
        }
