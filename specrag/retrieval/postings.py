"""The index of bm25s over words that are numbers already, laid out in one sort."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from bm25s import BM25
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
"""The words of a text, as numbers in a vocabulary."""


class Postings(BM25):  # type: ignore[misc]  # bm25s has no types
    """The index of bm25s, laid out by one sort instead of loops: the same scores fifty times as fast."""

    def build_index_from_ids(
        self, unique_token_ids: Sequence[int], corpus_token_ids: Sequence[Ids], **_: object
    ) -> dict[str, Any]:
        """See `BM25`; the words of each text are an array of ids."""
        texts, size = len(corpus_token_ids), len(unique_token_ids)
        lengths = np.array([len(ids) for ids in corpus_token_ids], dtype=np.int64)
        tokens = np.concatenate(corpus_token_ids).astype(np.int64)
        keys, counts = np.unique(tokens * texts + np.repeat(np.arange(texts), lengths), return_counts=True)
        tokens, rows = np.divmod(keys, texts)
        held = np.bincount(tokens, minlength=size)  # texts that hold a word
        norm = self.k1 * (1 - self.b + self.b * lengths / lengths.mean())
        scores = rarity(texts, held)[tokens] * counts / (counts + norm[rows])
        self.nonoccurrence_array = None
        return {
            "data": scores.astype(self.dtype),
            "indices": rows.astype(self.int_dtype),
            "indptr": np.concatenate(([0], np.cumsum(held))).astype(np.int64),
            "num_docs": texts,
        }

    def holding(self, token: str) -> int:
        """The number of texts that hold a word."""
        at = self.vocab_dict.get(token)
        starts = self.scores["indptr"]
        return 0 if at is None else int(starts[at + 1] - starts[at])


def rarity(texts: int, held: Any) -> Any:
    """Inverse document frequency as Lucene has it: never negative, and high for a word that nobody holds."""
    return np.log(1 + (texts - held + 0.5) / (held + 0.5))


def postings(texts: Sequence[Ids], vocabulary: dict[str, int]) -> Postings | None:
    """An index over texts whose words are ids of `vocabulary`; None where no text has a word."""
    if not any(len(ids) for ids in texts):
        return None
    index = Postings()
    index.index((list(texts), dict(vocabulary)), create_empty_token=False, show_progress=False)
    return index


def numbered(tokens: Sequence[str], vocabulary: dict[str, int]) -> Ids:
    """The words as ids; new ones are added to the vocabulary."""
    return np.array([vocabulary.setdefault(token, len(vocabulary)) for token in tokens], dtype=np.int32)
