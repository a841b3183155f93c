"""Which files a person means who names files and folders."""

from collections.abc import Sequence
from pathlib import Path

from specrag.errors import UsageError


def files_of(paths: Sequence[Path]) -> list[Path]:
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
