"""What the commands share: how errors leave, where words go, and how progress looks in a terminal."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from specrag.build import Parts
from specrag.config import Settings, load_settings
from specrag.errors import SpecragError, UsageError
from specrag.terminal import bar, say

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to stdout and nothing else there.")
]
Collection = Annotated[str, typer.Option("--collection", help="Name of the collection.")]

FAILURE, WRONG_USAGE, INTERRUPTED = 1, 2, 130


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
def parts(*, in_memory: bool = False, **overrides: Any) -> Iterator[Parts]:
    """The program's parts under the settings of this call, with progress in the terminal."""
    settings: Settings = load_settings(**overrides)
    with bar() as progress:
        made = Parts(settings, progress=progress, in_memory=in_memory)
        try:
            yield made
        finally:
            made.close()


def files_of(paths: list[Path]) -> list[Path]:
    """The files among `paths`; a folder stands for every file below it that is not hidden.

    Raises:
        UsageError: a path does not exist.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            below = (item for item in path.rglob("*") if item.is_file())
            files += sorted(item for item in below if not _hidden(item.relative_to(path)))
        elif path.exists():
            files.append(path)
        else:
            raise UsageError(f"There is no file or folder {path}.")
    return files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
