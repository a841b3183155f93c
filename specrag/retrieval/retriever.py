"""From a question to passages: two ways of searching put candidates forward, and the best of both stay.

Vectors find what means the same, words find names, codes and what the embedder cannot read. Every candidate
gets both of its scores, whichever way it came in; their places are fused (`fusion.py`), a cross-encoder may
read the best again, and of passages that say the same one stays. Passages come in that order, best first,
which is not always the order of their similarities.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specrag.config import Settings, load_settings
from specrag.errors import StoreError
from specrag.ingest.chunks.searchable import prefix
from specrag.retrieval import doubt
from specrag.retrieval.base import Embedder, Vectors, VectorStore
from specrag.retrieval.bm25 import Bm25, Matches
from specrag.retrieval.candidates import Candidates, fused
from specrag.retrieval.duplicates import Text, distinct
from specrag.retrieval.readable import Readability
from specrag.retrieval.records import to_passage
from specrag.retrieval.rerank import Reranker
from specrag.types import Passage, SearchName


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What was found for a question."""

    passages: tuple[Passage, ...]
    """Best first; empty if the collection is, or nothing matches."""
    vectors: Vectors
    """One row for each passage: (K, d)."""
    question_vector: Vectors
    """(d,)"""
    note: str | None = None
    """What a person should know of it, in a sentence or two."""
    duplicates: int = 0
    """Near-duplicates that were left out."""


class Retriever:
    """Finds the passages that match a question best."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        *,
        bm25: Bm25 | None = None,
        reranker: Reranker | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Take what searches.

        Args:
            store: where chunks and vectors are.
            embedder: of the questions; the one that the collections are from.
            bm25: the search by words, over the same store; None leaves the vectors alone.
            reranker: orders the best candidates anew; None keeps the order of the fusion.
            settings: of every search that brings none of its own.
        """
        self._store = store
        self._embedder = embedder
        self._bm25 = bm25
        self._reranker = reranker
        self._settings = settings or load_settings({})
        file = embedder.tokenizer_file
        self._readability = Readability(file) if file.is_file() else None

    def retrieve(
        self, question: str, collection: str, k: int, *, documents: Collection[str] | None = None
    ) -> Retrieved:
        """The `k` passages that match `question` best: `embed`, then `search`."""
        vector = self.embed(question, collection)
        return self.search(vector, collection, k, question=question, documents=documents)

    @property
    def reranks(self) -> bool:
        """Whether a cross-encoder orders the candidates anew."""
        return self._reranker is not None

    def holds(self, collection: str) -> bool:
        """Whether there is any document to find."""
        return bool(self._store.editions(collection))

    def embed(self, question: str, collection: str) -> Vectors:
        """The vector (d,) of a question to `collection`.

        Raises:
            StoreError: the collection is missing, or its vectors come from another embedder.
        """
        self._store.check(collection, self._embedder.fingerprint)
        vector: Vectors = self._embedder.embed([question])[0]
        return vector

    def search(
        self,
        vector: Vectors,
        collection: str,
        k: int,
        *,
        question: str,
        documents: Collection[str] | None = None,
    ) -> Retrieved:
        """The `k` best passages, of `documents` only if given, with their vectors.

        Raises:
            StoreError: the store cannot be read.
            ModelError: the cross-encoder cannot compute.
        """
        return self.choose(self.candidates(vector, collection, k, question=question, documents=documents), k)

    def candidates(
        self,
        vector: Vectors,
        collection: str,
        k: int,
        *,
        question: str,
        documents: Collection[str] | None = None,
        settings: Settings | None = None,
    ) -> Candidates:
        """What vectors and words put forward, at least `k` each where there are so many.

        `settings` are those of one run.
        """
        settings = settings or self._settings
        mode: SearchName = settings.search if self._bm25 is not None else "dense"
        wanted = max(k, settings.candidates)
        dense = self._store.query(collection, vector, wanted, documents=documents) if mode != "bm25" else []
        matches = Matches()
        if self._bm25 is not None and mode != "dense":
            also = [passage.id for passage in dense]
            matches = self._bm25.matches(collection, question, wanted, documents, also=also)
        found, vectors = self._with_vectors(collection, vector, dense, matches)
        made = Candidates(
            question=question,
            question_vector=vector,
            passages=tuple(found),
            vectors=vectors,
            matches=matches,
            readable=self._readability.of(question) if self._readability else 1.0,
            dense=len(dense),
            bm25=len(matches.hits),
            settings=settings,
        )
        return replace(made, passages=fused(made, mode))

    def choose(self, candidates: Candidates, k: int) -> Retrieved:
        """The `k` best of the candidates that are no near-duplicates of each other."""
        order = self._reranked(candidates)
        texts = (
            Text(
                id=passage.id,
                title="\n".join(filter(None, (passage.title, passage.section, passage.lead))),
                text=passage.text,
                date=passage.published_at,
            )
            for passage in order
        )
        kept = distinct(texts, k)
        by_id = {passage.id: passage for passage in order}
        passages = tuple(by_id[identity] for identity in kept.ids)
        nothing = np.empty((0, self._embedder.dimension), dtype=np.float32)
        return Retrieved(
            passages=passages,
            vectors=np.stack([candidates.vectors[one.id] for one in passages]) if passages else nothing,
            question_vector=candidates.question_vector,
            note=doubt.note(passages, candidates.matches, candidates.readable, kept.dropped),
            duplicates=len(kept.dropped),
        )

    def again(
        self, passages: Sequence[Passage], question: str, collection: str, *, vectors: bool = True
    ) -> Retrieved:
        """Passages that were found before, with the vectors that the next steps need.

        Those of passages come from the store where it still holds the same text; the store may be another
        one by now, and the collection gone, so anything else is embedded anew. Without `vectors` only the
        question is.

        Raises:
            ModelError: the embedder cannot compute.
        """
        known = self._kept_vectors(passages, collection) if vectors else {}
        missing = [passage for passage in passages if vectors and passage.id not in known]
        texts = [prefix(one.title, one.section, one.lead) + one.text for one in missing]
        question_vector, *made = self._embedder.embed([question, *texts])
        known |= {passage.id: vector for passage, vector in zip(missing, made, strict=True)}
        nothing = np.empty((0, self._embedder.dimension), dtype=np.float32)
        return Retrieved(
            passages=tuple(passages),
            vectors=np.stack([known[one.id] for one in passages]) if vectors and passages else nothing,
            question_vector=question_vector,
        )

    def _kept_vectors(self, passages: Sequence[Passage], collection: str) -> dict[str, Vectors]:
        """Vectors of the passages that are in the store as they were."""
        try:
            self._store.check(collection, self._embedder.fingerprint)
            chunks = self._store.lookup(collection, [passage.id for passage in passages])
            same = [one.id for one in passages if one.id in chunks and chunks[one.id].text == one.text]
            return dict(zip(same, self._store.vectors(collection, same), strict=True)) if same else {}
        except StoreError:  # the run needs nothing of the store but these
            return {}

    def _with_vectors(
        self, collection: str, vector: Vectors, dense: list[Passage], matches: Matches
    ) -> tuple[list[Passage], dict[str, Vectors]]:
        """All that was put forward, with their similarities, whichever way they came in."""
        known = {passage.id for passage in dense}
        missing = [hit for hit, _ in matches.hits if hit not in known]
        others = self._store.lookup(collection, missing) if missing else {}
        ids = [*(passage.id for passage in dense), *others]
        if not ids:
            return [], {}
        vectors = dict(zip(ids, self._store.vectors(collection, ids), strict=True))
        length = float(np.linalg.norm(vector)) or 1.0
        by_words = [
            to_passage(chunk, float(vectors[identity] @ vector) / length)
            for identity, chunk in others.items()
        ]
        return [*dense, *by_words], vectors

    def _reranked(self, candidates: Candidates) -> tuple[Passage, ...]:
        if self._reranker is None or not candidates.passages:
            return candidates.passages
        read = candidates.passages[: candidates.settings.candidates]
        texts = [prefix(one.title, one.section, one.lead) + one.text for one in read]
        scores = self._reranker.scores(candidates.question, texts)
        ranked = sorted(zip(scores, range(len(read)), strict=True), key=lambda pair: (-pair[0], pair[1]))
        return (*(read[place] for _, place in ranked), *candidates.passages[len(read) :])
