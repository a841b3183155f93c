"""Which sentences of a passage a text rests on, judged by the words that they share. Pure, no model.

A sentence is evidence if a rationale repeats much of it. Small models rephrase, so where none does, the one
sentence that holds most of the answer is: a mark that says "look here" is worth more than none, and a passage
that shares no word with the answer stays unmarked.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from specrag.sentences import sentences
from specrag.text import content_words

_WORD: Final = re.compile(
    r"\d+(?:[.,:\u066b\u066c]\d+)*"
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\d]+"
)
"""Numbers whole ("3.4"), scripts without spaces by the character, and runs of letters."""
_LEAST_WORDS: Final = 2
_LEAST_SHARE: Final = 0.4
_SHORT: Final = 3
_STEM: Final = 6
"""Letters by which two words are the same: "shortens", "shortened"."""
_LEAST_OF_ANSWER: Final = 0.25
"""Share of an answer that its best sentence has to hold; a chance word in common is no evidence."""
_NUMBER_WEIGHT: Final = 3
"""A number of the answer says more about where it comes from than a word does."""
_ABC: Final = re.compile("[\u0041-\u024f\u0370-\u058f]")
"""Scripts with upper and lower case, whose short words carry little and whose endings change."""


def split_evidence(
    text: str, rationales: Sequence[str], answers: Sequence[str] = ()
) -> tuple[tuple[str, bool], ...]:
    """The text in pieces that join to it again; True marks the sentences that a rationale repeats.

    Without such a sentence, the one that holds most of `answers` (or else of the rationales) is marked.
    """
    parts = tuple(pieces(text))
    told = [words(rationale) for rationale in rationales]
    said = [words(part) for part in parts]
    marks = [any(_repeats(sentence, other) for other in told) for sentence in said]
    if not any(marks) and (best := _best(said, answers, told)) is not None:
        marks[best] = True
    return tuple(zip(parts, marks, strict=True))


def evidence_in(text: str, rationales: Sequence[str], answers: Sequence[str] = ()) -> tuple[str, ...]:
    """The sentences of a text that are evidence, in order."""
    return tuple(piece for piece, marked in split_evidence(text, rationales, answers) if marked)


def nearest(sentence: str, marks: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of those texts that a sentence repeats, the nearest first; else of the one most like it."""
    said = words(sentence)
    shared = {key: _weight(words(text) & said) for key, text in marks.items()}
    ranked = sorted(shared, key=lambda key: -shared[key])
    repeated = tuple(key for key in ranked if _repeats(words(marks[key]), said))
    return repeated or tuple(key for key in ranked[:1] if shared[key] >= _LEAST_WORDS)


def words(text: str) -> frozenset[str]:
    """The words that carry meaning, cut to a stem: short ones are dropped, unless they are numbers.

    Marks over and under letters, such as Arabic vowels, do not count.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(character for character in folded if unicodedata.category(character) != "Mn")
    return frozenset(stem for word in _WORD.findall(bare) if (stem := _stem(word)))


def _stem(word: str) -> str:
    """What a word is compared by; nothing for one that carries no meaning."""
    if not _ABC.match(word):
        return word
    if len(word) <= _SHORT or not content_words(word):
        return ""
    return word.removesuffix("s")[:_STEM]


def _repeats(sentence: frozenset[str], rationale: frozenset[str]) -> bool:
    shared = len(sentence & rationale)
    return shared >= _LEAST_WORDS and shared >= _LEAST_SHARE * len(sentence)


def _best(
    said: Sequence[frozenset[str]], answers: Sequence[str], told: Sequence[frozenset[str]]
) -> int | None:
    """Index of the sentence that holds most of what was answered; None if none holds a word of it."""
    wanted = frozenset[str]().union(*map(words, answers)) or frozenset[str]().union(*told)
    context = frozenset[str]().union(*told)
    values = [(_weight(sentence & wanted), _weight(sentence & context)) for sentence in said]
    best = max(range(len(values)), key=lambda index: (values[index], -index), default=None)
    least = max(1.0, _LEAST_OF_ANSWER * _weight(wanted))
    return best if best is not None and values[best][0] >= least else None


def _weight(shared: frozenset[str]) -> int:
    return sum(_NUMBER_WEIGHT if word[0].isdigit() else 1 for word in shared)


def pieces(text: str) -> Iterator[str]:
    """Sentences and what stands between them, each a piece of its own; they join to the text."""
    at = 0
    for sentence in sentences(text):
        start = text.index(sentence, at)
        if start > at:
            yield text[at:start]
        at = start + len(sentence)
        yield sentence
    if at < len(text):
        yield text[at:]
