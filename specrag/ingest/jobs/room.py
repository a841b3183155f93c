"""How much may wait: files and bytes, of all owners together and of each.

One owner has at most half of the room, so that there is always some for the others. An archive may hold more
files than that; what its owner has beyond half takes no room from anybody else. What is still being copied
counts as well, or two uploads at once would both take the last place.
"""

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from specrag.config import Settings
from specrag.errors import TransientError
from specrag.ingest.jobs.state import Job

_LARGEST = 40
"""Files of the largest size that may wait; smaller ones may be more."""
_KEPT_LARGEST = 10
_MEGABYTE = 1_000_000
_SPARE = 100 * _MEGABYTE
"""Bytes of the disk that uploads leave to the store and the rest of the machine."""

Load: TypeAlias = tuple[str, int]
"""An owner and bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the settings allow."""

    files: int
    bytes: int
    kept_bytes: int
    """Of the copies of files that failed or were cancelled."""

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """The limits that follow from the settings."""
        largest = settings.max_file_mb * _MEGABYTE
        return cls(settings.max_waiting_files, _LARGEST * largest, _KEPT_LARGEST * largest)


class Room:
    """Lets uploads in, or says why not. The caller sees to it that one thread is here at a time."""

    def __init__(self, limits: Limits, disk: Path) -> None:
        self._limits = limits
        self._disk = disk
        self._arriving: dict[str, Load] = {}

    def enter(self, job: str, shown: str, load: Load, jobs: Iterable[Job]) -> None:
        """Reserve a place for a file that is going to be copied, until `arrived`.

        Raises:
            TransientError: there is no room; the sentence says of which kind.
        """
        waiting = [(item.state.owner, item.size) for item in jobs if item.state.state == "queued"]
        loads = [*waiting, *self._arriving.values()]
        own = [entry for entry in loads if entry[0] == load[0]]
        self._count(shown, loads, len(own))
        self._weigh(shown, load[1], loads, own)
        self._arriving[job] = load

    def arrived(self, job: str) -> None:
        """Give the reservation back: the job counts itself now, or never came."""
        self._arriving.pop(job, None)

    def _count(self, shown: str, loads: list[Load], own: int) -> None:
        files = self._limits.files
        half = max(1, files // 2)
        if sum(min(many, half) for many in Counter(owner for owner, _ in loads).values()) >= files:
            raise TransientError(f"{files} files are waiting already; add {shown} when some are done.")
        if own >= half:
            raise TransientError(f"{own} of your files are waiting already; add {shown} when some are done.")

    def _weigh(self, shown: str, size: int, loads: list[Load], own: list[Load]) -> None:
        by_owner: Counter[str] = Counter()
        for owner, many in loads:
            by_owner[owner] += many
        everybodys = sum(min(many, self._limits.bytes // 2) for many in by_owner.values())
        yours = sum(entry[1] for entry in own)
        if everybodys + size > self._limits.bytes or yours + size > self._limits.bytes // 2:
            whose = "your files" if yours + size > self._limits.bytes // 2 else "the files"
            taken = (yours if whose == "your files" else everybodys) // _MEGABYTE
            raise TransientError(
                f"{taken} MB of {whose} are waiting already; add {shown} when some are done."
            )
        arriving = sum(entry[1] for entry in self._arriving.values())
        if shutil.disk_usage(self._disk).free < arriving + size + _SPARE:
            raise TransientError(f"There is no room on the server's disk for {shown}; add it later.")
