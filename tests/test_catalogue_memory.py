"""A store of one process remembers its catalogue; every write must end what it remembers."""

import numpy as np

from specrag.retrieval.chroma import ChromaStore
from specrag.types import Chunk, DocumentInfo


def _add(store: ChromaStore, document_id: str) -> None:
    info = DocumentInfo(id=document_id, title="t", source="s", pages=1, chunks=1, added_at="2026")
    chunk = Chunk(
        id=f"{document_id}-0", document_id=document_id, title="t", source="s", text="mill", position=0
    )
    store.add("docs", info, [chunk], np.ones((1, 1), dtype=np.float32))


def test_what_is_added_replaced_and_deleted_is_seen_at_once() -> None:
    """Asked before each write, so that there is something to remember wrongly."""
    store = ChromaStore(None)
    store.ensure_collection("docs", "ones-1")
    assert store.editions("docs") == {}
    _add(store, "a" * 16)
    first = store.editions("docs")
    assert list(first) == ["a" * 16]
    _add(store, "a" * 16)
    assert store.editions("docs") != first
    _add(store, "b" * 16)
    assert {document.id for document in store.documents("docs")} == {"a" * 16, "b" * 16}
    store.delete("docs", "a" * 16)
    assert list(store.editions("docs")) == ["b" * 16]
    store.delete_collection("docs")
    store.ensure_collection("docs", "ones-1")
    assert store.editions("docs") == {}
    store.close()
