"""Where the copies of uploads lie, which belongs to one process at a time.

Replicas of the program may share one home. The first takes the folder, the next one `folder-2`, and so on;
whoever starts takes over what lies in folders that nobody holds any more. The lock is the operating system's,
so it is free when its holder dies, however it dies.
"""

import errno
import itertools
import logging
import re
import shutil
import sqlite3
from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from specrag.errors import DocumentError, StoreError, TransientError
from specrag.ingest.jobs.state import Job
from specrag.ingest.jobs.store import JobStore

_LOCK, _DATABASE, _COPIES, _UNPACKING = "queue.lock", "jobs.db", "copies", "unpacking"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_log = logging.getLogger(__name__)


class JobFolder:
    """A folder with its lock, held from construction until `close`."""

    def __init__(self, root: Path) -> None:
        """Take the lock of `root` and open its list of jobs.

        Raises:
            Timeout: another process (or another queue of this one) holds it.
            OSError, sqlite3.Error: it cannot be written.
        """
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        # Of the process, not of a thread: the one that starts the program is not the one that ends it.
        self._lock = FileLock(root / _LOCK, thread_local=False)
        self._lock.acquire(timeout=0)
        try:
            self._copies.mkdir(exist_ok=True)
            self.store = JobStore(root / _DATABASE)
        except BaseException:
            self._lock.release()
            raise

    @property
    def _copies(self) -> Path:
        return self.root / _COPIES

    def path(self, job: str) -> Path:
        """Where the copy of a job lies, or would."""
        return self._copies / job

    def unpacking(self, job: str) -> Path:
        """An empty folder for the files of an archive, until they are among the copies."""
        folder = self.root / _UNPACKING / job
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def holds(self, job: Job) -> bool:
        """Whether the copy of a job is here in full; a power cut may have cut it short."""
        try:
            return self.path(job.id).stat().st_size == job.size
        except OSError:
            return False

    def copy(self, source: Path, job: str, shown: str) -> int:
        """Copy an upload, wholly or not at all; its bytes.

        Raises:
            DocumentError: the upload cannot be read.
            TransientError: the disk is full.
        """
        target = self.path(job)
        try:
            shutil.copyfile(source, target)
            return target.stat().st_size
        except OSError as error:
            target.unlink(missing_ok=True)
            raise not_copied(shown, error) from error

    def remove(self, *jobs: str) -> None:
        """Delete copies; those that are not there are no error, and those that stay go at the next start."""
        for job in jobs:
            _delete(self.path(job))

    def sweep(self, wanted: Container[str]) -> None:
        """Delete what is neither ours nor the copy of a job in `wanted`."""
        for path in self._copies.iterdir():
            if path.name not in wanted:
                _delete(path)
        for path in self.root.iterdir():
            if path.name not in (_LOCK, _COPIES) and not path.name.startswith(_DATABASE):
                _delete(path)

    def close(self) -> None:
        """Close the list and free the lock; a second call does nothing."""
        self.store.close()
        self._lock.release()


def take(folder: Path) -> JobFolder:
    """The first folder that is free, with all that lay in the other free ones.

    Raises:
        StoreError: no folder can be written.
    """
    try:
        ours = _first_free(folder)
        for other in _free_others(folder, ours):
            _adopt(ours, other)
            other.close()
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise StoreError(
            f"The folder {folder} for uploads cannot be used ({why}); set SPECRAG_HOME to a folder on a local"
            " disk that you may write to."
        ) from error
    return ours


def not_copied(shown: str, error: OSError) -> DocumentError | TransientError:
    """One sentence about a copy that did not succeed."""
    if error.errno in _FULL:
        return TransientError(f"There is no room on the server's disk for {shown}; add it later.")
    return DocumentError(
        "unreadable", f"{shown} could not be copied ({error.strerror or error}); upload it again."
    )


def _first_free(folder: Path) -> JobFolder:
    for number in itertools.count(1):
        try:
            return JobFolder(folder if number == 1 else folder.with_name(f"{folder.name}-{number}"))
        except Timeout:
            continue
    raise AssertionError  # the count has no end


def _free_others(folder: Path, ours: JobFolder) -> Iterator[JobFolder]:
    numbered = re.compile(re.escape(folder.name) + r"(-\d+)?")
    for path in sorted(folder.parent.iterdir()):
        if path != ours.root and numbered.fullmatch(path.name) and (path / _DATABASE).exists():
            try:
                yield JobFolder(path)
            except Timeout:
                continue


def _adopt(ours: JobFolder, other: JobFolder) -> None:
    """Take over the jobs of another folder; killed at any point, it can be done again."""
    last = max((job.place for job in ours.store.load()), default=0)
    jobs = [replace(job, place=job.place + last) for job in other.store.load()]
    for job in jobs:
        if job.has_copy and other.path(job.id).exists():
            other.path(job.id).replace(ours.path(job.id))
    ours.store.write(jobs)
    other.store.write(forget=[job.id for job in jobs])
    other.sweep(())
    if jobs:
        _log.info("took over %d uploads of %s", len(jobs), other.root.name)


def _delete(path: Path) -> None:
    """Delete as far as the disk lets us: what is left over must not stop the queue."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s cannot be deleted: %s", path.name, error.strerror or error)
