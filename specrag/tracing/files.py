"""Traces as files: the `specrag.trace/1` document on disk."""

import uuid
from contextlib import suppress
from pathlib import Path

from specrag.errors import TraceError
from specrag.tracing.codec import from_json, to_json
from specrag.tracing.trace import Trace


def save_trace(trace: Trace, path: str | Path) -> Path:
    """Write a trace to a file, wholly or not at all; a file that is there is replaced.

    Raises:
        TraceError: the file cannot be written.
    """
    target = Path(path)
    part = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}"
    try:
        part.write_bytes((to_json(trace, indent=2) + "\n").encode("utf-8", "replace"))
        part.replace(target)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise TraceError(f"The trace cannot be written to {target}: {error.strerror}.") from error
    return target


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `save_trace`, `specrag trace export` or `specrag ask --json` wrote.

    Raises:
        TraceError: the file cannot be read or is not a `specrag.trace/1` document.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TraceError(f"The trace {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise TraceError(f"The trace {path} cannot be read: it is not a text file.") from error
    return from_json(text)
