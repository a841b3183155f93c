"""One process owns an embedded store; another one is told which.

Chroma in process loses rows silently when two processes write to one folder. The lock is the operating
system's, so it is free again when its holder dies, however it dies; the file beside it only says who it is.
"""

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from specrag.errors import StoreError, StoreLocked


class StoreLock:
    """Held from construction until `release`."""

    def __init__(self, folder: Path) -> None:
        """Take the lock of `folder`.

        Raises:
            StoreLocked: another process (or another store of this one) holds it.
            StoreError: the folder cannot be written.
        """
        self._holder = folder / "holder.json"
        # Of the process, not of a thread: the one that starts the program is not the one that ends it.
        self._lock = FileLock(folder / "store.lock", thread_local=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            self._holder.write_text(json.dumps(_self_description()), encoding="utf-8")
        except Timeout:
            raise StoreLocked(f"The store {folder} is in use by {self._who()}.") from None
        except OSError as error:
            raise StoreError(
                f"The store {folder} cannot be opened ({error.strerror or error}); set SPECRAG_HOME to a"
                " folder on a local disk that you may write to."
            ) from error

    def release(self) -> None:
        """Free the lock; a second call does nothing."""
        if self._lock.is_locked:
            self._holder.unlink(missing_ok=True)
            self._lock.release()

    def _who(self) -> str:
        holder = {}
        with suppress(OSError, ValueError):  # written a moment after the lock is taken
            holder = json.loads(self._holder.read_text(encoding="utf-8"))
        remedy = "stop that process, or set SPECRAG_HOME to another folder"
        if not holder:
            return f"another process; {remedy}"
        if holder.get("pid") == os.getpid():
            return f"this very process (pid {os.getpid()}); close the other store first"
        since = f"“{holder.get('command')}”, started {holder.get('started')}"
        return f"process {holder.get('pid')} ({since}); {remedy}"


def _self_description() -> dict[str, str | int]:
    return {
        "pid": os.getpid(),
        "command": " ".join((Path(sys.argv[0]).name, *sys.argv[1:2])),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
