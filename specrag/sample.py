"""The sample collection: own texts about an invented product, so that a first visit works without a file.

It holds a planted contradiction between an old and a new page, an outdated page, and noise.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specrag.errors import DocumentError, StoreError, StoreUnreachable
from specrag.ingest.index import Indexer
from specrag.library.library import SAMPLE
from specrag.retrieval.base import VectorStore

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleQuestion:
    """An example question; every string of `answers` counts as right."""

    question: str
    answers: tuple[str, ...]
    note: str


def questions() -> tuple[SampleQuestion, ...]:
    """The example questions of the sample collection."""
    content = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
    return tuple(
        SampleQuestion(question=item["question"], answers=tuple(item["answers"]), note=item["note"])
        for item in content["questions"]
    )


def _ignore(_done: int, _total: int) -> None:
    """The listener of someone who does not care."""


def ensure_sample(indexer: Indexer, progress: Callable[[int, int], None] = _ignore) -> None:
    """Index the sample pages that are missing or cut in another way, and drop those no longer part of it.

    Raises:
        DocumentError: a page cannot be read.
        StoreUnreachable: the store's server is away; what is missing is added the next time.
    """
    pages = sorted(FOLDER.glob("*.md"))
    if not pages:
        raise DocumentError(
            "unreadable", f"The sample pages are missing from {FOLDER.name}; run from a checkout."
        )
    _adopt(indexer)
    wanted = set()
    for done, page in enumerate(pages):
        progress(done, len(pages))
        result = indexer.ingest(page, page.name, SAMPLE, refresh=True)
        if result.reason == StoreUnreachable.kind:
            raise StoreUnreachable(result.error)
        if result.document_id is None:
            raise DocumentError(result.reason or "corrupt", f"The sample page {page.name}: {result.error}")
        wanted.add(result.document_id)
    for document in indexer.store.documents(SAMPLE):
        if document.id not in wanted:
            _drop(indexer.store, document.id)
    progress(len(pages), len(pages))


def _adopt(indexer: Indexer) -> None:
    """Give the sample the embedder in use; nobody else can, since it is read-only."""
    store = indexer.store
    if SAMPLE in store.collections() and store.collection(SAMPLE).fingerprint != indexer.embedder_fingerprint:
        indexer.reindex(SAMPLE)


def _drop(store: VectorStore, document_id: str) -> None:
    """Remove a page, or find that another replica that starts at this moment has done so."""
    try:
        store.delete(SAMPLE, document_id)
    except StoreError:
        if store.find(SAMPLE, document_id) is not None:
            raise
