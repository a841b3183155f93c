"""Reading rows of a collection by what they belong to, of the editions that count."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from specrag.retrieval import records
from specrag.retrieval.catalogue import batches
from specrag.types import Chunk

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection


Counting: TypeAlias = Callable[[set[tuple[str, str]]], set[tuple[str, str]]]
"""Of editions, as (document, edition), those that count now."""


def chunks_of(rows: "Collection", document_id: str, edition: str) -> list[Chunk]:
    """The chunks of one edition of a document, in order."""
    read = _read(rows.get(where={"document_id": document_id}, include=["documents", "metadatas"]))
    chunks = [chunk for chunk, of in read if of == edition]
    return sorted(chunks, key=lambda chunk: chunk.position)


def chunks_by_id(rows: "Collection", chunk_ids: list[str], counting: Counting) -> dict[str, Chunk]:
    """The chunks of these ids that are there and count."""
    found: dict[str, Chunk] = {}
    for some in batches(chunk_ids):
        where: Any = {"chunk_id": {"$in": some}}
        read = _read(rows.get(where=where, include=["documents", "metadatas"]))
        editions = counting({(chunk.document_id, edition) for chunk, edition in read}) if read else set()
        found.update((chunk.id, chunk) for chunk, edition in read if (chunk.document_id, edition) in editions)
        of_old = [chunk_id for chunk_id in some if chunk_id not in found]
        if of_old:  # rows without an edition go by the id of their chunk
            old = _read(rows.get(ids=of_old, include=["documents", "metadatas"]))
            editions = counting({(chunk.document_id, "") for chunk, _ in old}) if old else set()
            found.update((chunk.id, chunk) for chunk, _ in old if (chunk.document_id, "") in editions)
    return found


def vectors_of(rows: "Collection", chunk_ids: list[str], counting: Counting) -> dict[str, Any]:
    """The vectors of chunks that are there, by chunk."""
    found: dict[str, Any] = {}
    for some in batches(chunk_ids):
        where: Any = {"chunk_id": {"$in": some}}
        got: Any = rows.get(where=where, include=["embeddings", "metadatas"])
        pairs = list(zip(got["metadatas"], got["embeddings"], strict=True))
        if len(pairs) > len({record["chunk_id"] for record, _ in pairs}):  # one has several editions
            editions = counting({(record["document_id"], record["edition"]) for record, _ in pairs})
            pairs = [pair for pair in pairs if (pair[0]["document_id"], pair[0]["edition"]) in editions]
        found.update((record["chunk_id"], vector) for record, vector in pairs)
        of_old = [chunk_id for chunk_id in some if chunk_id not in found]
        if of_old:  # rows without an edition go by the id of their chunk
            got = rows.get(ids=of_old, include=["embeddings"])
            found.update(zip(got["ids"], got["embeddings"], strict=True))
    return found


def _read(found: Any) -> list[tuple[Chunk, str]]:
    """Chunks with their editions."""
    return [
        (records.to_chunk(row_id, text, record), records.edition_of(record))
        for row_id, text, record in zip(found["ids"], found["documents"], found["metadatas"], strict=True)
    ]
