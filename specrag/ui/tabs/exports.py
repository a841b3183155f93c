"""Where the file of an export lies until gradio has copied it for the browser.

Gradio serves only what is in its own cache or in the folder for temporary files, and copies the latter; the
copy has an address that nobody can guess and is deleted with the rest of the cache. Ours is deleted at the
next export, at the latest after an hour.
"""

import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

from specrag.library.library import Library
from specrag.library.shelves import Shelf
from specrag.library.visitors import Visitor

_PREFIX: Final = "specrag-export-"
_KEPT_S: Final = 3600.0
_NAME_LENGTH: Final = 60


def exported(library: Library, who: Visitor, shelf: Shelf) -> Path:
    """Write a collection to a file that its visitor can download.

    Raises:
        StoreError: it may not be read by them, or cannot be read.
    """
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    return library.export(who, shelf.name, folder / f"{_file_name(shelf.title)}.zip")


def _file_name(title: str) -> str:
    """A title as a name that every file system takes."""
    plain = re.sub(r"[^\w.-]+", "-", title).strip("-._")[:_NAME_LENGTH]
    return plain or "collection"


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            old = time.time() - folder.stat().st_mtime > _KEPT_S
        except FileNotFoundError:  # another process was faster
            continue
        if old:
            shutil.rmtree(folder, ignore_errors=True)
