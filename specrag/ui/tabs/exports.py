"""Where the file of an export lies until gradio has copied it for the browser.

Gradio serves only what is in its own cache or in the folder for temporary files, and copies the latter; the
copy has an address that nobody can guess and is deleted with the rest of the cache. Ours is needed for a
moment only: a visitor has two at most, and whoever sweeps deletes those that nobody has written to lately.
"""

import hashlib
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
_KEPT_S: Final = 600.0
_EACH: Final = 2
"""For each visitor: one that gradio copies, and one that is being written."""
_NAME_LENGTH: Final = 60


def exported(library: Library, who: Visitor, shelf: Shelf) -> Path:
    """Write a collection to a file that its visitor can download.

    Raises:
        StoreError: it may not be read by them, or cannot be read.
    """
    return library.export(who, shelf.name, folder_for(who) / f"{file_name(shelf.title)}.zip")


def folder_for(who: Visitor) -> Path:
    """A new folder for one file of a visitor; an older one of theirs may be deleted for it."""
    sweep()
    ours = f"{_PREFIX}{hashlib.sha256(who.id.encode()).hexdigest()[:16]}-"
    for folder in sorted(_folders(ours), key=_written, reverse=True)[_EACH - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=ours))


def sweep() -> None:
    """Delete what was exported a while ago, whichever process has written it."""
    for folder in _folders(_PREFIX):
        if time.time() - _written(folder) > _KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)


def file_name(title: str, otherwise: str = "collection") -> str:
    """A title as a name that every file system takes."""
    plain = re.sub(r"[^\w.-]+", "-", title).strip("-._")[:_NAME_LENGTH]
    return plain or otherwise


def _folders(prefix: str) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"{prefix}*"))


def _written(folder: Path) -> float:
    """When something was last written there, in seconds since 1970; 0 if it is gone meanwhile."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:  # another process was faster, or it is no folder of ours
        return 0.0
