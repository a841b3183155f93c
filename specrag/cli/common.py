"""What the commands share: how errors leave, where words go, and how progress looks in a terminal."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
