"""A child process that is watched while it works and never outlives its purpose.

The parent looks in twice a second (`tick`), so progress can be read from the files that the child writes.
The child's input is a pipe that closes when the parent dies, however it dies; a child that cares reads it.
"""

import errno
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a child ended."""

    code: int
    """Exit status; negative for the signal that ended it."""
    last_line: str
    """The last thing it complained of."""


def run(command: Sequence[str], *, env: Mapping[str, str], tick: Callable[[], None]) -> Result:
    """Run `command` to its end.

    Raises:
        OSError: with ENOSPC when the child says that the disk is full.
    """
    with subprocess.Popen(  # noqa: S603 - our own command line, without a shell
        list(command),
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            complaints = _wait(process, tick)
        finally:
            process.kill()  # does nothing to a child that has ended
    if "No space left on device" in complaints:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    return Result(code=process.returncode, last_line=lines[-1] if lines else "no message")


def _wait(process: subprocess.Popen[bytes], tick: Callable[[], None]) -> str:
    # Not communicate(): that would close the child's input at once.
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)
    complaints = b""
    while process.poll() is None:
        try:
            process.wait(timeout=LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            tick()
        complaints += process.stderr.read() or b""
    return (complaints + (process.stderr.read() or b"")).decode(errors="replace")


def bytes_under(folder: Path) -> int:
    """Bytes of all files below `folder` at this moment; files may come and go meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(parent) / name).stat().st_size
    return total
