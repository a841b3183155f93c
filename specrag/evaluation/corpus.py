"""Where the systems look: among the passages that a question brings, or in the union of all of them.

Either way it is a collection of an ordinary store, so that the ordinary retriever finds the passages, and a
pipeline that asks again, hop by hop, can. Passages are put in whole, as the file has them.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np

from specrag.evaluation.questions import Question, Seen
from specrag.ingest.chunks.searchable import prefix
from specrag.retrieval.base import Embedder, VectorStore
from specrag.types import Chunk, DocumentInfo

CorpusName: TypeAlias = Literal["given", "open"]
GIVEN: Final = "evaluation-given"
OPEN: Final = "evaluation-open"
_SLICE: Final = 200
"""Passages of one document of the open corpus; the store counts documents, the systems see passages."""
_BATCH: Final = 32
_WHEN: Final = "2000-01-01T00:00:00+00:00"
"""No day of its own, so that the same file makes the same collection."""


class Corpus(Protocol):
    """Where the passages of a question are found."""

    @contextmanager
    def hold(self, question: Question) -> Iterator[str]:
        """The name of the collection that holds them for as long as it is held."""
        ...


class GivenCorpus:
    """Only what the question brings."""

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    @contextmanager
    def hold(self, question: Question) -> Iterator[str]:
        """See `Corpus.hold`."""
        self._store.ensure_collection(GIVEN, self._embedder.fingerprint)
        try:
            put(self._store, self._embedder, GIVEN, question.passages, "given")
            yield GIVEN
        finally:
            self._store.delete_collection(GIVEN)


class OpenCorpus:
    """The passages of all questions together and nothing else, indexed once."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        questions: Iterable[Question],
        *,
        tell: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        """Index what is not there yet, remove what no question brings.

        `tell` hears how many passages are in, and of how many.
        """
        passages = list({one.id: one for question in questions for one in question.passages}.values())
        parts = [passages[start : start + _SLICE] for start in range(0, len(passages), _SLICE)]
        wanted = {_identity(part): part for part in parts}
        store.ensure_collection(OPEN, embedder.fingerprint)
        there = set(store.editions(OPEN))
        for identity in sorted(there - wanted.keys()):  # first, or a passage of both would be there twice
            store.delete(OPEN, identity)
        done = 0
        for identity, part in wanted.items():
            if identity not in there:
                put(store, embedder, OPEN, part, identity)
            done += len(part)
            tell(done, len(passages))
        self.passages = len(passages)

    @contextmanager
    def hold(self, question: Question) -> Iterator[str]:  # noqa: ARG002 - the same for every question
        """See `Corpus.hold`."""
        yield OPEN


def _identity(part: Sequence[Seen]) -> str:
    """Follows from every passage of a slice, whose ids follow from their texts."""
    return f"slice-{hashlib.sha256(' '.join(one.id for one in part).encode()).hexdigest()[:32]}"


def put(
    store: VectorStore, embedder: Embedder, collection: str, passages: Sequence[Seen], identity: str
) -> None:
    """Passages as one document of a collection, a chunk each."""
    chunks = [
        Chunk(
            id=one.id,
            document_id=identity,
            title=one.title,
            source=one.title,
            text=one.text,
            position=place,
        )
        for place, one in enumerate(passages)
    ]
    info = DocumentInfo(
        id=identity, title=identity, source=identity, pages=1, chunks=len(chunks), added_at=_WHEN
    )
    texts = [prefix(one.title, None, None) + one.text for one in passages]
    vectors = [embedder.embed(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)]
    store.add(collection, info, chunks, np.concatenate(vectors))
