"""What a killed process leaves behind, and how it goes away.

Rows that no line of the catalogue names were never committed, or are on their way out. They are never found;
here they are removed, unless somebody is writing them at this moment. A collection under its provisional name
is a `reindex` that did not come to its end: before the switch it is undone, after it it is finished.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from specrag.retrieval import records
from specrag.retrieval.catalogue import Catalogue, batches
from specrag.retrieval.client import discard, drop, find
from specrag.retrieval.naming import GONE, NEXT, is_ours
from specrag.retrieval.underway import UnderWay

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection


def tidy(client: "Client", catalogue: Catalogue, underway: UnderWay) -> None:
    """Bring the store to a state in which nothing is half done, but for what others are doing."""
    _finish_switches(client, underway)
    sweep(client, catalogue, underway)
    for item in client.list_collections():
        target = None if is_ours(item.name) else find(client, item.name)
        if target is not None:
            _remove_orphans(target, catalogue, underway)


def sweep(client: "Client", catalogue: Catalogue, underway: UnderWay) -> None:
    """Remove what silent writers left of their documents."""
    for note in underway.stale():
        if note.kind == "edition":
            underway.forget(note)
            target = find(client, note.collection)
            if target is not None:
                _remove_unnamed(target, {"document_id": note.document_id}, catalogue, underway)


def remove_edition(target: "Collection", document_id: str, edition: str) -> int:
    """Remove the rows of one edition; their number."""
    ids = rows_of(target, {"document_id": document_id})[document_id, edition]
    remove_rows(target, ids)
    return len(ids)


def remove_rows(target: "Collection", ids: Sequence[str]) -> None:
    """Remove rows; those that are not there are no error."""
    for some in batches(ids):
        target.delete(ids=some)


def rows_of(target: "Collection", where: Any) -> defaultdict[tuple[str, str], list[str]]:
    """The ids of rows by document and edition."""
    found = target.get(where=where, include=["metadatas"])
    rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row_id, record in zip(found["ids"], found["metadatas"] or [], strict=True):
        rows[str(record["document_id"]), records.edition_of(record)].append(row_id)
    return rows


def _finish_switches(client: "Client", underway: UnderWay) -> None:
    names = {item.name for item in client.list_collections()}
    for name in (name for name in names if name.startswith(GONE)):
        drop(client, name)
    for name in (name for name in names if name.startswith(NEXT)):
        final = name.removeprefix(NEXT)
        if final not in names:
            provisional = find(client, name)
            if provisional is not None:
                provisional.modify(name=final)
        else:
            _undo_switch(client, underway, name, final)


def _undo_switch(client: "Client", underway: UnderWay, name: str, final: str) -> None:
    """Remove the copy of a `reindex` that is dead.

    Looked up before its claim is judged and taken away: who claims afterwards has another copy, and who was
    only slow finds its claim gone.
    """
    copy = find(client, name)
    if copy is not None and not any(note.kind != "edition" for note in underway.live(final)):
        for note in underway.stale():
            if note.kind != "edition" and note.collection == final:
                underway.forget(note)
        discard(client, copy)


def _remove_orphans(target: "Collection", catalogue: Catalogue, underway: UnderWay) -> None:
    """Counts first: orphans are rare, and reading every record is slow."""
    lines = catalogue.newest(target.name).values()
    if target.count() != sum(line.document.chunks for line in lines):
        _remove_unnamed(target, None, catalogue, underway)


def _remove_unnamed(target: "Collection", where: Any, catalogue: Catalogue, underway: UnderWay) -> None:
    """Remove editions without a writer that do not count: without a line, or replaced.

    The order of the three questions matters: who wrote a row that we saw had left a note before, and takes
    the note away only after the line is there.
    """
    rows = rows_of(target, where)
    written = {(note.document_id, note.writer) for note in underway.live(target.name)}
    lines = catalogue.lines(target.name)
    newest = {line.document.id: line.edition for line in reversed(lines)}
    # While the newest line is its writer's, who may still take it back, the one before stays.
    sure = {identity for identity, edition in newest.items() if (identity, edition) not in written}
    ready = {(line.document.id, line.edition) for line in lines if line.document.id not in sure}
    ready |= newest.items()
    for line in lines:
        if (line.document.id, line.edition) not in ready:
            catalogue.remove(target.name, line.document.id, line.edition)
    for key in rows.keys() - written - ready:
        remove_rows(target, rows[key])
