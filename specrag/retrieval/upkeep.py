"""What a killed process leaves behind, and how it goes away: when the store is opened the next time.

Chunks without a line in the catalogue were never committed. A collection under its provisional name is a
`reindex` that did not come to its end: before the switch it is undone, after it it is finished.
"""

from collections.abc import Collection as Some
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from specrag.retrieval.catalogue import BATCH, Catalogue
from specrag.retrieval.naming import NEXT, is_ours

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection


def tidy(client: "Client", catalogue: Catalogue) -> None:
    """Bring the store to a state in which nothing is half done."""
    _finish_switches(client)
    for collection in client.list_collections():
        if not is_ours(collection.name):
            _remove_orphans(client.get_collection(collection.name, embedding_function=None), catalogue)


def batches(ids: Sequence[str]) -> Iterator[list[str]]:
    """Portions that Chroma takes well."""
    return (list(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH))


def remove_chunks(target: "Collection", document_id: str, keep: Some[str] = ()) -> int:
    """Remove the chunks of a document, but not those to `keep`; the number of chunks removed."""
    found = target.get(where={"document_id": document_id}, include=[])["ids"]
    ids = [chunk_id for chunk_id in found if chunk_id not in keep]
    for some in batches(ids):
        target.delete(ids=some)
    return len(ids)


def _finish_switches(client: "Client") -> None:
    names = {item.name for item in client.list_collections()}
    for name in (name for name in names if name.startswith(NEXT)):
        final = name.removeprefix(NEXT)
        if final in names:
            client.delete_collection(name)
        else:
            client.get_collection(name, embedding_function=None).modify(name=final)


def _remove_orphans(target: "Collection", catalogue: Catalogue) -> None:
    """Counts first: orphans are rare, and reading every record is slow."""
    lines = {document.id: document.chunks for document in catalogue.all(target.name)}
    if target.count() == sum(lines.values()):
        return
    rows = target.get(include=["metadatas"])["metadatas"] or []
    for document_id in {str(row["document_id"]) for row in rows} - lines.keys():
        remove_chunks(target, document_id)
