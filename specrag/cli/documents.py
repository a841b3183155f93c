"""`specrag ingest` and `specrag documents`: what is in a collection."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from specrag.cli.common import FAILURE, Collection, Json, friendly, parts, print_json
from specrag.errors import StoreError
from specrag.ingest.files import files_of
from specrag.ingest.index import IngestResult
from specrag.library import OWN, SAMPLE, documents_of
from specrag.terminal import say

app = typer.Typer(help="List, show and delete documents.", invoke_without_command=True)


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders.")],
    collection: Collection = OWN,
    as_json: Json = False,
) -> None:
    """Read files into a collection. The same file twice is a duplicate and changes nothing."""
    with friendly():
        _writable(collection)
        with parts() as made:
            results = []
            for path in files_of(paths):
                results.append((path, made.indexer.ingest(path, path.name, collection)))
                say(_line(results[-1][1]))
        if as_json:
            files = [_file(path, result) for path, result in results]
            print_json({"schema": "specrag.ingest/1", "collection": collection, "files": files})
        if any(result.status == "failed" for _, result in results):
            raise typer.Exit(FAILURE)


@app.callback()
def documents(
    context: typer.Context,
    collection: Collection = OWN,
    as_json: Json = False,
) -> None:
    """List, show and delete documents."""
    if context.invoked_subcommand is None:
        list_documents(collection, as_json=as_json)


@app.command("list")
def list_documents(collection: Collection = OWN, as_json: Json = False) -> None:
    """The documents of a collection."""
    with friendly(), parts() as made:
        found = documents_of(made.store, collection)
        if as_json:
            rows = [asdict(document) for document in found]
            print_json({"schema": "specrag.documents/1", "collection": collection, "documents": rows})
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
        document = made.store.document(collection, document_id)
        if document is None:
            raise StoreError(
                f"There is no document “{document_id}” in “{collection}”; see `specrag documents`."
            )
        chunks = made.store.chunks(collection, document_id)
        if as_json:
            rows = [{"id": chunk.id, "text": chunk.text, "page": chunk.page} for chunk in chunks]
            print_json({"document": asdict(document), "chunks": rows})
            return
        typer.echo(f"{document.title} ({document.source}), {document.pages} pages, {document.chunks} chunks")
        for chunk in chunks:
            page = f" page {chunk.page}" if chunk.page else ""
            typer.echo(f"\n[{chunk.id}{page}]\n{chunk.text}")


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
            removed = {item: made.store.delete(collection, item) for item in document_ids}
        if as_json:
            print_json({"schema": "specrag.delete/1", "collection": collection, "chunks_removed": removed})
        else:
            for item, chunks in removed.items():
                typer.echo(f"{item}: deleted, {chunks} chunks removed")


@app.command("reindex")
def reindex(collection: Collection = OWN, as_json: Json = False) -> None:
    """Embed every chunk of a collection again, after SPECRAG_EMBEDDER was changed."""
    with friendly(), parts() as made:
        chunks = made.indexer.reindex(collection, lambda _, done, total: say(f"{done} of {total} chunks"))
    if as_json:
        print_json({"schema": "specrag.reindex/1", "collection": collection, "chunks": chunks})
    else:
        typer.echo(f"{collection}: {chunks} chunks embedded again")


def _writable(collection: str) -> None:
    if collection == SAMPLE:
        raise StoreError("The sample collection is read-only; choose another name with --collection.")


def _file(path: Path, result: IngestResult) -> dict[str, Any]:
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
    }


def _line(result: IngestResult) -> str:
    if result.status == "failed":
        return f"failed: {result.error}"
    return f"{result.status}: {result.name}, {result.pages} pages, {result.chunks} chunks"
