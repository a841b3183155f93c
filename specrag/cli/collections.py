"""`specrag collections`: make, name, describe, delete, export and import collections."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from specrag.cli.common import Json, Tell, friendly, parts, pass_on, print_json, shelves, told_parts
from specrag.errors import UsageError
from specrag.library.library import OPERATOR, Library, Shelf
from specrag.models.weights import Progress as Step

app = typer.Typer(help="Make, name, delete, export and import collections.", invoke_without_command=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or title of the collection.")]


@app.callback()
def collections(context: typer.Context, as_json: Json = False) -> None:
    """Make, name, delete, export and import collections."""
    pass_on(context, as_json=as_json)
    if context.invoked_subcommand is None:
        list_collections(as_json=as_json)


@app.command("list")
def list_collections(as_json: Json = False) -> None:
    """All collections, those of visitors too."""
    with friendly(), parts() as made:
        found = made.library.collections(OPERATOR)
    if as_json:
        print_json(_told(found))
        return
    table = Table("name", "title", "documents", "chunks", "note")
    for shelf in found:
        table.add_row(shelf.name, shelf.title, str(shelf.documents), str(shelf.chunks), _note(shelf))
    Console().print(table)


@app.command("create")
def create(
    title: Annotated[str, typer.Argument(help="Any text of up to 80 characters.")],
    description: Annotated[str, typer.Option("--description", help="What it is about.")] = "",
    as_json: Json = False,
) -> None:
    """Make an empty collection."""
    with friendly(), parts() as made:
        shelf = made.library.create(OPERATOR, title, description)
    _say(shelf, f"“{shelf.title}” was made; its name is {shelf.name}", as_json=as_json)


@app.command("rename")
def rename(name: Name, title: str, as_json: Json = False) -> None:
    """Give a collection another title; its name stays."""
    with friendly(), parts() as made:
        where = made.library.find(OPERATOR, name)
        made.library.rename(OPERATOR, where, title)
        shelf = made.library.shelf(OPERATOR, where)
    _say(shelf, f"{where} is called “{shelf.title}”", as_json=as_json)


@app.command("describe")
def describe(name: Name, text: str, as_json: Json = False) -> None:
    """Say what a collection is about; an empty text says nothing any more."""
    with friendly(), parts() as made:
        where = made.library.find(OPERATOR, name)
        made.library.describe(OPERATOR, where, text)
        shelf = made.library.shelf(OPERATOR, where)
    _say(shelf, f"{where}: {shelf.description}", as_json=as_json)


@app.command("delete")
def delete(name: Name, as_json: Json = False) -> None:
    """Delete a collection with its documents, and check that it is gone."""
    with friendly(), parts() as made:
        library = shelves(made)
        where = library.find(OPERATOR, name)
        removed = library.delete(OPERATOR, where)
    if as_json:
        print_json({"schema": "specrag.delete/1", "collection": where, "documents_removed": removed})
    else:
        typer.echo(f"{where}: deleted, {removed} documents removed")


@app.command("export")
def export(
    name: Name,
    file: Annotated[Path, typer.Argument(help="The file, or a folder for one named after the title.")],
    originals: Annotated[
        bool, typer.Option("--originals/--no-originals", help="Also the files that were read.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Write a collection to one file."""
    with friendly(), told_parts() as (made, tell):
        library = shelves(made)
        where = library.find(OPERATOR, name)
        path = library.export(
            OPERATOR,
            where,
            file,
            originals=originals,
            progress=lambda done, total: tell(Step(step=f"exporting {where}", done=done, total=total)),
        )
    size = path.stat().st_size
    if as_json:
        print_json({"schema": "specrag.export/1", "collection": where, "path": str(path), "bytes": size})
    else:
        typer.echo(f"{path}: {size:,} bytes")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A file that `specrag collections export` has written.")],
    title: Annotated[str | None, typer.Option("--title", help="By default the one in the file.")] = None,
    as_json: Json = False,
) -> None:
    """Make a collection of a file; wholly or not at all."""
    with friendly(), told_parts() as (made, tell):
        if not file.is_file():
            raise UsageError(f"There is no file {file}.")
        shelf = _imported(made.library, file, title, tell)
    _say(shelf, f"“{shelf.title}” was imported as {shelf.name}", as_json=as_json)


def _imported(library: Library, file: Path, title: str | None, tell: Tell) -> Shelf:
    def progress(stage: str, done: int, total: int) -> None:
        tell(Step(step=f"{stage} {file.name}", done=done, total=total))

    return library.import_(OPERATOR, file, title=title, progress=progress)


def _say(shelf: Shelf, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_told([shelf]))
    else:
        typer.echo(sentence)


def _told(found: list[Shelf]) -> dict[str, Any]:
    return {"schema": "specrag.collections/1", "collections": [asdict(shelf) for shelf in found]}


def _note(shelf: Shelf) -> str:
    notes = {
        "read-only": shelf.read_only,
        "of another embedder: reindex it": shelf.mismatch,
        f"{shelf.stale} documents cut in another way": bool(shelf.stale),
        f"ends {shelf.expires_at}": shelf.expires_at is not None,
    }
    return "; ".join(note for note, holds in notes.items() if holds)
