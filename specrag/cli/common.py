"""What the commands share: how errors leave, where words go, and how progress looks in a terminal."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

import typer

from specrag.build import Parts
from specrag.cli.reports import html_of
from specrag.config import Settings, load_settings
from specrag.errors import SpecragError, UsageError
from specrag.ingest.index import IngestResult
from specrag.ingest.intake import take
from specrag.library.library import Library
from specrag.models.weights import Progress as Step
from specrag.terminal import bar, say

Tell: TypeAlias = Callable[[Step], None]

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to stdout and nothing else there.")
]
Collection = Annotated[str, typer.Option("--collection", help="Name or title of the collection.")]
Password = Annotated[str | None, typer.Option("--password", help="Opens encrypted files.")]

FAILURE, WRONG_USAGE, INTERRUPTED = 1, 2, 130
STDOUT = Path("-")
"""What `--json -` says in the place of a file."""


class NotWritten(SpecragError):
    """A finished result could not be put where it was wanted."""

    kind: ClassVar[str] = "output"


def pass_on(context: typer.Context, **given: Any) -> None:
    """Let options before the subcommand count as if they stood after it, where others may overrule them."""
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: given}


def print_json(document: dict[str, Any]) -> None:
    """The one document of `--json`."""
    sys.stdout.write(_json(document))


def _json(document: dict[str, Any]) -> str:
    return _whole(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def _whole(text: str) -> str:
    """The text without lone surrogates, which a path may hold and no file can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_places(json_out: Path | None, markdown_out: Path | None, html_out: Path | None = None) -> None:
    """Try the files of a result before it is computed: afterwards hours of work would be lost.

    Raises:
        UsageError: a file cannot be written, or two of them are the same one.
    """
    given = {
        "--json": None if json_out == STDOUT else json_out,
        "--markdown": markdown_out,
        "--html": html_out,
    }
    before: dict[Path, str] = {}
    for option, file in given.items():
        if file is None:
            continue
        try:
            _try(file)
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror or error}.") from error
        other = before.setdefault(file.resolve(), option)
        if other != option:
            raise UsageError(f"{file} is named for both {other} and {option}; name two files.")


def _try(file: Path) -> None:
    """Open it as it will be opened, without changing what is there or leaving anything behind."""
    try:
        with file.open("xb"):
            pass
    except FileExistsError:
        if file.is_file() or file.is_dir():  # a pipe would wait for its reader
            file.open("r+b").close()
    else:
        file.unlink()


def put_out(
    document: dict[str, Any],
    tables: str,
    json_out: Path | None,
    markdown_out: Path | None,
    html_out: Path | None = None,
) -> None:
    """The tables on stdout, or the document alone where `--json -` asks for it; then the files.

    Whatever fails, the rest is still written, because the result may have taken hours.

    Raises:
        NotWritten: with a sentence for each place that failed.
    """
    made = _json(document)
    failed = [_printed(made if json_out == STDOUT else _whole(tables))]
    if json_out is not None and json_out != STDOUT:
        failed.append(_kept(json_out, made))
    if markdown_out is not None:
        failed.append(_kept(markdown_out, _whole(tables)))
    if html_out is not None:
        failed.append(_page_kept(html_out, document))
    if said := [one for one in failed if one]:
        raise NotWritten(" ".join(said))


def _printed(text: str) -> str:
    """What went wrong, if anything did."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
            # what is still buffered would fail a second time when Python ends, with a traceback
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return f"The result cannot be printed: {error.strerror or error}."
    return ""


def _kept(file: Path, text: str) -> str:
    """What went wrong, if anything did."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"{file} cannot be written: {error.strerror or error}."
    return ""


def _page_kept(file: Path, document: dict[str, Any]) -> str:
    """What went wrong, if anything did."""
    try:
        return _kept(file, _whole(html_of(document)))
    except SpecragError as error:
        return f"{file} is not written: {error}"


@contextmanager
def friendly() -> Iterator[None]:
    """Turn expected errors into one sentence and an exit status."""
    try:
        yield
    except UsageError as error:
        say(f"Error: {error}")
        raise typer.Exit(WRONG_USAGE) from error
    except SpecragError as error:
        say(f"Error: {error}")
        raise typer.Exit(FAILURE) from error
    except KeyboardInterrupt as error:
        say("Stopped.")
        raise typer.Exit(INTERRUPTED) from error


@contextmanager
def told_parts(*, in_memory: bool = False, **overrides: Any) -> Iterator[tuple[Parts, Tell]]:
    """The program's parts under the settings of this call, and the progress bar of the terminal."""
    settings: Settings = load_settings(**overrides)
    with bar() as tell:
        made = Parts(settings, progress=tell, in_memory=in_memory)
        try:
            yield made, tell
        finally:
            made.close()


@contextmanager
def parts(*, in_memory: bool = False, **overrides: Any) -> Iterator[Parts]:
    """The same, for whoever has no progress of their own to tell."""
    with told_parts(in_memory=in_memory, **overrides) as (made, _):
        yield made


def shelves(made: Parts) -> Library:
    """The collections without an embedder, which takes seconds to load: to list, to find and to delete."""
    return Library(store=made.store, originals=made.originals, settings=made.settings)


def taken(made: Parts, tell: Tell, path: Path, collection: str, **options: Any) -> list[IngestResult]:
    """Index a file, or each file of an archive, with progress in the terminal."""

    def progress(stage: str, done: int, total: int) -> None:
        tell(Step(step=f"{stage} {path.name}", done=done, total=total))

    return take(made.indexer, path, path.name, collection, progress=progress, **options)
