"""Lines of JSON that grow one by one and survive a process that is killed while it writes.

A line is on the disk before `append` returns. A torn one at the end, which a machine that lost power leaves,
is cut off when the file is read, so that the next line does not continue it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from specrag.evaluation.problems import EvaluationError

T = TypeVar("T")


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Put a row on the disk.

    Raises:
        EvaluationError: it cannot be written.
    """
    text = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        with path.open("ab") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise EvaluationError(f"{path} cannot be written: {error.strerror or error}.") from error


def read(path: Path, kind: type[T], what: str) -> Iterator[T]:
    """The rows that were written whole, each made into a `kind`; none where there is no file.

    Raises:
        EvaluationError: the file cannot be read, or a row is none of this kind; `what` is what it should be,
            for the sentence.
    """
    try:
        data = path.read_bytes() if path.exists() else b""
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror or error}.") from error
    for number, text in enumerate(data[:whole].splitlines(), 1):
        try:
            yield kind(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise EvaluationError(f"{path}, line {number}: it is no {what}; use --restart.") from error
