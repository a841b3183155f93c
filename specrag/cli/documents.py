"""`specrag ingest` and `specrag documents`: what is in a collection."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from specrag.cli.common import (
    FAILURE,
    Collection,
    Json,
    Password,
    friendly,
    parts,
    pass_on,
    print_json,
    shelves,
    taken,
    told_parts,
)
from specrag.errors import StoreError
from specrag.ingest.files import files_of
from specrag.ingest.index import IngestResult
from specrag.library.library import OPERATOR, OWN, SAMPLE, Library, documents_of
from specrag.models.weights import Progress as Step
from specrag.retrieval.naming import check_name
from specrag.terminal import say
from specrag.types import Chunk

app = typer.Typer(help="List, show and delete documents.", invoke_without_command=True)


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files, archives or folders.")],
    collection: Annotated[
        str, typer.Option("--collection", help="Name or title of the collection; a new one is made.")
    ] = OWN,
    password: Password = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove older documents of the same file name.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read files into a collection. The same file twice is a duplicate and changes nothing."""
    with friendly():
        _writable(collection)
        files = files_of(paths)
        results: list[IngestResult] = []
        with told_parts() as (made, tell):
            where = _place(made.library, collection)
            for path in files:
                for result in taken(made, tell, path, where, password=password, replace=replace):
                    results.append(result)
                    say(_line(result))
        if as_json:
            rows = [_file(result) for result in results]
            print_json({"schema": "specrag.ingest/1", "collection": where, "files": rows})
        if any(result.status == "failed" for result in results):
            raise typer.Exit(FAILURE)


def _place(library: Library, text: str) -> str:
    """The collection to write to; what cannot be a name becomes the title of a new one."""
    if library.called(OPERATOR, text) or _can_name(text):
        return library.place(text)
    shelf = library.create(OPERATOR, text)
    say(f"“{shelf.title}” was made; its name is {shelf.name}")
    return shelf.name


def _can_name(text: str) -> bool:
    try:
        check_name(text)
    except StoreError:
        return False
    return True


@app.callback()
def documents(
    context: typer.Context,
    collection: Collection = OWN,
    as_json: Json = False,
) -> None:
    """List, show and delete documents."""
    pass_on(context, collection=collection, as_json=as_json)
    if context.invoked_subcommand is None:
        list_documents(collection, as_json=as_json)


@app.command("list")
def list_documents(collection: Collection = OWN, as_json: Json = False) -> None:
    """The documents of a collection."""
    with friendly(), parts() as made:
        where = shelves(made).find(OPERATOR, collection)
        found = documents_of(made.store, where)
        if as_json:
            rows = [asdict(document) for document in found]
            print_json({"schema": "specrag.documents/1", "collection": where, "documents": rows})
            return
        table = Table("id", "title", "file", "pages", "chunks", "added")
        for item in found:
            table.add_row(item.id, item.title, item.source, str(item.pages), str(item.chunks), item.added_at)
        Console().print(table if found else f"The collection “{collection}” is empty.")


@app.command("show")
def show(
    document_id: Annotated[str, typer.Argument(metavar="ID")],
    collection: Collection = OWN,
    as_json: Json = False,
) -> None:
    """A document and its chunks."""
    with friendly(), parts() as made:
        where = shelves(made).find(OPERATOR, collection)
        document = made.store.document(where, document_id)
        chunks = made.store.chunks(where, document_id)
        if as_json:
            print_json({"document": asdict(document), "chunks": [_chunk(chunk) for chunk in chunks]})
            return
        typer.echo(f"{document.title} ({document.source}), {document.pages} pages, {document.chunks} chunks")
        for chunk in chunks:
            page = f" page {chunk.page}" if chunk.page else ""
            section = f" {chunk.section}" if chunk.section else ""
            typer.echo(f"\n[{chunk.id}{page}{section}]\n{chunk.text}")


@app.command("delete")
def delete(
    document_ids: Annotated[list[str], typer.Argument(metavar="ID...")],
    collection: Collection = OWN,
    as_json: Json = False,
) -> None:
    """Delete documents with all their chunks, and check that they are gone."""
    with friendly():
        _writable(collection)
        with parts() as made:
            library = shelves(made)
            where = library.find(OPERATOR, collection)
            removed = {item: library.delete_document(OPERATOR, where, item) for item in document_ids}
        if as_json:
            print_json({"schema": "specrag.delete/1", "collection": where, "chunks_removed": removed})
        else:
            for item, chunks in removed.items():
                typer.echo(f"{item}: deleted, {chunks} chunks removed")


@app.command("reindex")
def reindex(collection: Collection = OWN, as_json: Json = False) -> None:
    """Cut and embed a collection anew, after SPECRAG_EMBEDDER or the way of chunking was changed."""
    with friendly(), told_parts() as (made, tell):
        where = made.library.find(OPERATOR, collection)
        chunks = made.indexer.reindex(
            where, lambda stage, done, total: tell(Step(step=f"{stage} {where}", done=done, total=total))
        )
    if as_json:
        print_json({"schema": "specrag.reindex/1", "collection": where, "chunks": chunks})
    else:
        typer.echo(f"{where}: {chunks} chunks indexed again")


def _writable(collection: str) -> None:
    if collection == SAMPLE:
        raise StoreError("The sample collection is read-only; choose another name with --collection.")


def _chunk(chunk: Chunk) -> dict[str, Any]:
    return {"id": chunk.id, "text": chunk.text, "page": chunk.page, "section": chunk.section}


def _file(result: IngestResult) -> dict[str, Any]:
    # a file in an archive is called after both; no other name has a slash
    path = result.path.parent / result.name if "/" in result.name else result.path
    return {
        "path": str(path),
        "document_id": result.document_id,
        "status": result.status,
        "pages": result.pages,
        "chunks": result.chunks,
        "encoding": result.encoding,
        "seconds": round(result.seconds, 3),
        "error": result.error,
        "reason": result.reason,
        "warning": result.warning,
        "replaced": list(result.replaced),
    }


def _line(result: IngestResult) -> str:
    if result.status == "failed":
        return f"failed: {result.error}"
    line = f"{result.status}: {result.name}, {result.pages} pages, {result.chunks} chunks"
    replaced = f"; {len(result.replaced)} older removed" if result.replaced else ""
    return f"{line}{replaced}" + (f"\n  {result.warning}" if result.warning else "")
