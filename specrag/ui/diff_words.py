"""Which words of two texts differ, as pieces that join to each text exactly as it was.

Words are compared, not characters: half a word that happens to be the same says nothing to a reader. The time
grows with the product of the lengths, and texts come from imported files, so only beginnings are compared.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_EASTERN: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORDS: Final = re.compile(rf"\s+|\d+(?:[.,]\d+)+|[{_EASTERN}]|(?:(?![{_EASTERN}])\w)+|[^\w\s]")
"""Scripts without spaces between words are compared by character."""
MOST_WORDS: Final = 600
"""Words and spaces of a text that are compared; the rest counts as different where it is."""
LONGEST: Final = 20_000
"""Characters of a text that are shown."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text."""

    text: str
    changed: bool
    """Whether the other text does not have it here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordDiff:
    """Two texts in pieces."""

    before: tuple[Piece, ...]
    after: tuple[Piece, ...]

    @property
    def changed(self) -> bool:
        """Whether the texts differ."""
        return any(piece.changed for piece in (*self.before, *self.after))


def word_diff(before: str, after: str) -> WordDiff:
    """Compare two texts word by word."""
    before, after = before[:LONGEST], after[:LONGEST]
    if before == after:
        whole = (Piece(before, changed=False),) if before else ()
        return WordDiff(before=whole, after=whole)
    first, second = _WORDS.findall(before), _WORDS.findall(after)
    left, right = _compared(first[:MOST_WORDS], second[:MOST_WORDS])
    left.append(("".join(first[MOST_WORDS:]), True))
    right.append(("".join(second[MOST_WORDS:]), True))
    return WordDiff(before=_joined(left), after=_joined(right))


def _compared(
    first: Sequence[str], second: Sequence[str]
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    left: list[tuple[str, bool]] = []
    right: list[tuple[str, bool]] = []
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for kind, begin, end, other, until in matcher.get_opcodes():
        left.append(("".join(first[begin:end]), kind != "equal"))
        right.append(("".join(second[other:until]), kind != "equal"))
    return left, right


def _joined(pieces: Sequence[tuple[str, bool]]) -> tuple[Piece, ...]:
    """Pieces without needless seams: a space between two changed words belongs to the change."""
    told = [piece for piece in pieces if piece[0]]
    for place in range(1, len(told) - 1):
        text, changed = told[place]
        if not changed and text.isspace() and told[place - 1][1] and told[place + 1][1]:
            told[place] = (text, True)
    seams = [0, *(at for at, (one, other) in enumerate(pairwise(told), 1) if one[1] != other[1]), len(told)]
    return tuple(
        Piece("".join(text for text, _ in told[begin:end]), changed=told[begin][1])
        for begin, end in pairwise(seams)
        if begin < end
    )
