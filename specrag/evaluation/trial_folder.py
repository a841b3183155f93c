"""The temporary folder of a trial: removed at its end, or by a later process if this one dies before.

Whoever works in one holds a lock in it, which the operating system lets go of with the process. The process's
number would not tell: in a container it is the same after each start.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import FileLock

_PREFIX: Final = "specrag-trial-"
_LOCK: Final = "trial.lock"
_YOUNG_S: Final = 60.0
"""A folder that is younger may be one whose lock is about to be taken."""


@contextmanager
def trial_folder() -> Iterator[Path]:
    """A new folder, until its trial has ended."""
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as made,
        FileLock(Path(made) / _LOCK, thread_local=False),
    ):
        yield Path(made)


def sweep() -> None:
    """Remove the folders of trials whose process is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is held, or somebody else's, or gone meanwhile
            if not folder.is_symlink() and folder.is_dir() and _age_s(folder) > _YOUNG_S:
                with FileLock(folder / _LOCK, timeout=0):
                    pass  # nobody works in it any more
                shutil.rmtree(folder, ignore_errors=True)


def _age_s(folder: Path) -> float:
    return time.time() - folder.stat().st_mtime
