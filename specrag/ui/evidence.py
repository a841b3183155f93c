"""Which sentences of a passage a rationale rests on, judged by the words that they share. Pure, no model."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_SENTENCE: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
_LEAST_WORDS: Final = 2
_LEAST_SHARE: Final = 0.4
_SHORT: Final = 3


def split_evidence(text: str, rationales: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """The text in pieces that join to it again; True marks the sentences that a rationale repeats."""
    told = [words(rationale) for rationale in rationales]
    return tuple((piece, any(_repeats(words(piece), other) for other in told)) for piece in _sentences(text))


def words(text: str) -> frozenset[str]:
    """The words that carry meaning: short ones are dropped, unless they are numbers or not Latin."""
    found = (word.casefold() for word in _WORD.findall(text))
    return frozenset(word for word in found if len(word) > _SHORT or not word.isascii() or word.isdigit())


def _repeats(sentence: frozenset[str], rationale: frozenset[str]) -> bool:
    shared = len(sentence & rationale)
    return shared >= _LEAST_WORDS and shared >= _LEAST_SHARE * len(sentence)


def _sentences(text: str) -> list[str]:
    """Sentences and the space between them, each a piece of its own."""
    cuts = [at for match in _SENTENCE.finditer(text) for at in match.span()]
    return [text[start:end] for start, end in pairwise([0, *cuts, len(text)]) if end > start]
