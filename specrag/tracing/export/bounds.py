"""How much a file from outside may hold, found out before anything is made of it.

A trace is small: the largest run that the settings allow stays well below every number here. What is larger
was not written by this program, and reading it could take the server's memory or its minutes.
"""

import math
from typing import Any, Final

from specrag.errors import TraceError

BYTES: Final = 32 * 2**20
"""Of the file."""
DEPTH: Final = 32
"""Lists and objects within each other."""
VALUES: Final = 2_000_000
"""Of any kind, in the whole file."""
ITEMS: Final = 100_000
"""In one list or object."""
LETTERS: Final = 1_000_000
"""In one text; the longest is a prompt that fills a model's context."""
WHOLE: Final = 2**53
"""The largest whole number that every reader of JSON keeps."""


def check_size(data: bytes) -> None:
    """Refuse a file that is too long to be a run.

    Raises:
        TraceError: it is.
    """
    if len(data) > BYTES:
        raise TraceError(f"This file has more than {BYTES // 2**20} MB, which no run has.")


def check_values(document: Any) -> None:
    """Refuse what is too deep, too much, or no number.

    Raises:
        TraceError: one sentence on the first of them.
    """
    left = VALUES
    level = [document]
    for _ in range(DEPTH):
        below: list[Any] = []
        for value in level:
            _check(value)
            if isinstance(value, dict | list):
                left -= len(value)
                if left < 0:
                    raise TraceError(f"This file holds more than {VALUES:,} values; a run has fewer.")
                below += value.values() if isinstance(value, dict) else value
        if not below:
            return
        level = below
    raise TraceError(f"This file nests its values more than {DEPTH} deep; a run does not.")


def _check(value: Any) -> None:
    match value:
        case float() if not math.isfinite(value):
            raise TraceError("This file holds a number that is too large for a run.")
        case int() if abs(value) > WHOLE:
            raise TraceError("This file holds a number that is too large for a run.")
        case str() if len(value) > LETTERS:
            raise TraceError(f"This file holds a text of {len(value):,} characters; a run has shorter ones.")
        case dict() | list() if len(value) > ITEMS:
            raise TraceError(f"This file holds a list of {len(value):,} items; a run has {ITEMS:,} at most.")
        case _:
            pass
