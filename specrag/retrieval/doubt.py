"""What a person should know of a retrieval: that hardly anything matches, and what was left out.

A search always finds something, and a model answers from whatever it is given, so the reader must be told
when the documents do not seem to be about the question. It takes both signs at once: no passage is near by
meaning, and none holds the telling words of the question. The limits are measured in docs/retrieval.md: they
call 1 in 50 answerable questions weak, and 4 in 5 of those asked to documents about other things.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from specrag.ingest.chunks.searchable import prefix
from specrag.retrieval.bm25 import Matches
from specrag.types import Passage

NEAR: Final = 0.45
"""Similarity from which a passage is about the question."""
HELD: Final = 0.5
"""Share of the question's words, rare ones counting more, from which a passage is about it."""
HELD_BLIND: Final = 0.3
"""The same where the embedder cannot read the question: words are the only sign then, and have endings."""


def note(
    passages: Sequence[Passage], matches: Matches, readable: float, dropped: Mapping[str, str]
) -> str | None:
    """The sentences, or None if there is nothing to say.

    `readable` is how much of the question the embedder can read; `dropped` names near-duplicates and what
    stays in their stead.
    """
    said = (_weak(passages, matches, readable), _duplicates(passages, dropped))
    return " ".join(sentence for sentence in said if sentence) or None


def _weak(passages: Sequence[Passage], matches: Matches, readable: float) -> str | None:
    if not passages:
        return None
    best = max(passage.score for passage in passages)
    trust = readable**2
    if best * trust >= NEAR:
        return None
    said = f"the best similarity is {best:.2f}"
    if matches.rarity:
        held = max(matches.held(prefix(one.title, one.section, one.lead) + one.text) for one in passages)
        if held >= HELD_BLIND + trust * (HELD - HELD_BLIND):
            return None
        words = f"holds only {held:.0%} of its telling words" if held else "holds any of its words"
        said += f", and {'the best' if held else 'no'} passage {words}"
    return f"The documents hardly match the question: {said}; the answer may be a guess."


def _duplicates(passages: Sequence[Passage], dropped: Mapping[str, str]) -> str | None:
    if not dropped:
        return None
    if len(dropped) == 1:
        stays = next(iter(dropped.values()))
        title = next(passage.title for passage in passages if passage.id == stays)
        return f"1 passage was left out, because one of “{title}” says the same in nearly the same words."
    return f"{len(dropped)} passages were left out, because others say the same in nearly the same words."
