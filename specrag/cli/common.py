"""What the commands share: how errors leave, where words go, and how progress looks in a terminal."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from specrag.build import Parts
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


def pass_on(context: typer.Context, **given: Any) -> None:
    """Let options before the subcommand count as if they stood after it, where others may overrule them."""
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: given}


def print_json(document: dict[str, Any]) -> None:
    """The one document of `--json`."""
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    sys.stdout.write(text.encode("utf-8", "replace").decode("utf-8"))  # a path may hold lone surrogates


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
