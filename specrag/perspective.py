"""The words that set a subset apart from the others, for a person to read.

A word counts by how often its passage uses it, title twice, and by how few subsets do (tf-idf over subsets).
The question's own words say nothing of a subset, and no passage of a subset names it alone.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from specrag.text import content_words
from specrag.types import Passage

TERMS = 3
_PALE = frozenset(
    re.findall(
        r"\w+",
        """
        about above after again all also always among another any because before below between both bring
        called came come each either else even ever every few first get give given gives go goes good half
        her him his hold holds however just keep keeps know known last least less like long made make makes
        must near neither never new next no none nothing now off often old once one only other others out
        over own per put rather same second see set several she should since some still such take takes
        their third three through too took two under until up upon us use used uses using usually very want
        wants way well went while within without yet
        """,
    )
)
"""Words that carry meaning in an answer but say nothing as the name of a subset. English only."""


def perspectives(groups: Sequence[Sequence[Passage]], *, question: str = "") -> list[str]:
    """One short list of words for each group of passages, such as "rules, nights, permit".

    A group without any telling word is called by the title of its first passage.
    """
    asked = frozenset(map(_stem, content_words(question)))
    counts = {passage.id: _words(passage, asked) for group in groups for passage in group}
    spread = Counter(
        word for group in groups for word in set().union(*(counts[passage.id] for passage in group))
    )
    rarity = {word: math.log((1 + len(groups)) / found) for word, found in spread.items()}
    return [", ".join(_top([counts[p.id] for p in group], rarity)) or group[0].title for group in groups]


def _words(passage: Passage, asked: AbstractSet[str]) -> Counter[str]:
    text = f"{passage.title} {passage.title} {passage.text}"
    return Counter(word for word in content_words(text) if _telling(word) and _stem(word) not in asked)


def _telling(word: str) -> bool:
    short = len(word) < 3 and word.isascii()  # noqa: PLR2004 - "l3" names nothing; two signs of Han may
    return not (short or word.isdigit() or word in _PALE)


def _stem(word: str) -> str:
    """The word without a plural s; enough to see that "bike" and "bikes" are one term."""
    return word.removesuffix("s") if not word.endswith("ss") else word


def _top(passages: Sequence[Counter[str]], rarity: dict[str, float]) -> list[str]:
    """The heaviest words of a subset; each passage gives its share of them at most."""
    ranked = sorted(
        (-(1 + math.log(count)) * rarity[word], word, number)
        for number, counts in enumerate(passages)
        for word, count in counts.items()
    )
    share = math.ceil(TERMS / len(passages))
    terms: dict[str, str] = {}
    given: Counter[int] = Counter()
    for _, word, number in ranked:
        if len(terms) < TERMS and given[number] < share and _stem(word) not in terms:
            terms[_stem(word)] = word
            given[number] += 1
    return list(terms.values())
