"""What a person sees in the terminal while something is prepared: lines and one progress bar, on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from specrag.models.weights import Progress as Step


def say(text: str) -> None:
    """A line for the person."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@contextmanager
def bar() -> Iterator[Callable[[Step], None]]:
    """A progress bar on stderr for the steps that are told to it; it shows nothing until the first one."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        tasks: dict[str, Any] = {}

        def tell(state: Step) -> None:
            if state.step not in tasks:
                if not console.is_terminal:
                    say(state.step)
                for task in tasks.values():
                    progress.update(task, visible=False)
                tasks[state.step] = progress.add_task(state.step, total=state.total or None)
            progress.update(tasks[state.step], completed=state.done, total=state.total or None)

        yield tell
