"""The words that set a subset apart from the others, for a person to read.

A word counts by how often the subset uses it and by how few other subsets do (tf-idf over subsets).
"""

import math
from collections import Counter
from collections.abc import Sequence

from specrag.text import content_words
from specrag.types import Passage

TERMS = 3


def perspectives(groups: Sequence[Sequence[Passage]]) -> list[str]:
    """One short list of words for each group of passages, such as "rules, nights, permit"."""
    counts = [Counter(_words(group)) for group in groups]
    spread = Counter(word for count in counts for word in count)
    return [", ".join(_top(count, spread, len(groups))) for count in counts]


def _words(group: Sequence[Passage]) -> list[str]:
    text = " ".join(f"{passage.title} {passage.text}" for passage in group)
    return [word for word in content_words(text) if len(word) > 1 and not word.isdigit()]


def _top(count: Counter[str], spread: Counter[str], groups: int) -> list[str]:
    def weight(word: str) -> float:
        return (1 + math.log(count[word])) * math.log((1 + groups) / spread[word])

    return sorted(count, key=lambda word: (-weight(word), word))[:TERMS]
