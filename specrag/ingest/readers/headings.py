"""Where the headings of a text are, through all the cleaning that moves characters about.

A walk over a tree puts two marks around each heading; when the text is final, the marks are taken out and
their places are the offsets. The marks are noncharacters of Unicode, which no text may contain, and are taken
out of what files bring.
"""

import re

from specrag.types import Heading

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARKED = re.compile(f"{_OPEN}(.*?){_CLOSE}", re.DOTALL)
_LONGEST = 300


def mark(heading: str) -> str:
    """A heading that will be found again."""
    return f"{_OPEN}{heading}{_CLOSE}" if heading else ""


def unmarked(text: str) -> str:
    """Text without marks."""
    return text.replace(_OPEN, "").replace(_CLOSE, "")


def located(text: str) -> tuple[str, tuple[Heading, ...]]:
    """Text without marks, and where each of them stood."""
    headings: list[Heading] = []
    removed = 0
    for found in _MARKED.finditer(text):
        inner = unmarked(found[1])
        if inner.strip():
            headings.append(Heading(start=found.start() - removed, text=inner.strip()[:_LONGEST]))
        removed += len(found[0]) - len(inner)
    return unmarked(text), tuple(headings)
