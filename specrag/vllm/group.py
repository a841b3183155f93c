"""Processes that belong together: a server and the workers that it starts, ended as one.

A server gets a session of its own, so all its workers share its process group. Python's resource tracker is
in that group too and is left alone: it cleans up the shared memory of killed workers and ends by itself.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
LOOK_EVERY_S = 0.05
TRACKER = b"resource_tracker"


def end(group: int, *, within_s: float) -> bool:
    """Kill every process of a group, if any is left; tells whether all were gone in time."""
    deadline = time.monotonic() + within_s
    while members := _alive(group):
        for pid in members:
            if not _is_tracker(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def _alive(group: int) -> list[int]:
    """Members that still run; one that only waits to be collected by its parent does not count."""
    if not PROC.is_dir():  # no such list on macOS: the kernel has the group at least
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        return []
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit() and _belongs(entry, group)]


def _belongs(entry: Path, group: int) -> bool:
    try:
        # pid (name) state parent group ...: the name may hold spaces and brackets itself
        state, _, of_group = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(of_group) == group and state not in "ZX"


def _is_tracker(pid: int) -> bool:
    try:
        return TRACKER in (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False
