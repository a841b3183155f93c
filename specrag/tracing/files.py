"""Traces as files: the `specrag.trace/1` document on disk."""

import os
import uuid
from contextlib import suppress
from pathlib import Path

from specrag.errors import TraceError
from specrag.tracing.codec import to_json
from specrag.tracing.export.importing import document_of, read_bytes, read_trace
from specrag.tracing.trace import Trace


def save_trace(trace: Trace, path: str | Path) -> Path:
    """Write a trace to a file, wholly or not at all; a file that is there is replaced.

    Raises:
        TraceError: the file cannot be written.
    """
    return write_file((to_json(trace, indent=2) + "\n").encode(), path)


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `save_trace`, `specrag trace export` or `specrag ask --json` wrote.

    Raises:
        TraceError: the file cannot be read, is not a `specrag.trace/1` document, or cannot be of a run.
    """
    return read_trace(document_of(read_bytes(path)))


def write_file(data: bytes, path: str | Path) -> Path:
    """Write an export, wholly or not at all; a file that is there is replaced.

    Raises:
        TraceError: the file cannot be written.
    """
    target = Path(path)
    try:
        write_whole(data, target)
    except OSError as error:
        raise TraceError(f"The trace cannot be written to {target}: {error.strerror}.") from error
    return target


def write_whole(data: bytes, target: Path) -> None:
    """Write a file wholly or not at all, and onto the disk; nothing is left beside it where that fails.

    Raises:
        OSError: the file cannot be written.
    """
    part = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}"
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
