"""Passages that say the same in nearly the same words, of which one is enough.

Two pages that differ in one figure, name or "not" are no duplicates: they contradict each other, and showing
that is what this program is for. So near-duplicates share most of their runs of three words, and give the
same figures, names, symbols and denials in the same order; also their titles must not tell two things apart.
A word in the place of another one ("winter" and "summer") is a contradiction too, unless both are forms of
one word: a text may only have more or fewer words than the other, and no such fact may be among them.
Where a script has no capitals every word may be a name, so only texts of the same words are duplicates there.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, TypeAlias

from specrag.retrieval.words import words as stems

NEARLY: Final = 0.8
"""Jaccard similarity of the sets of shingles from which two texts are nearly the same."""
_RUN: Final = 3
_REPEATS: Final = 16
"""Mean number of places in the other text where a word also stands, up to which texts are aligned. Prose has
less than 5; made-up text of a few words would take seconds.
"""
_EDGES: Final = "\"'“”„«»‘’`()[]{}<>.,;:!?¿¡…|*_#。，、；：！？「」『』（）،؛؟"  # noqa: RUF001 - all scripts
_COPY = re.compile(r"\W*(?:\(\d{1,2}\)|\bcopy(?: \d{1,2})?)\W*$|^\W*copy of\b", re.IGNORECASE | re.MULTILINE)
_NOT = re.compile(r"n['’]t$")  # noqa: RUF001 - both apostrophes
_POLAR: Final = frozenset({
    "no", "not", "nor", "never", "none", "nobody", "nothing", "neither", "cannot", "without", "except",
    "unless", "only", "hardly", "barely", "former", "formerly", "forbidden", "prohibited", "banned",
    "allowed", "permitted", "required", "optional", "above", "below", "before", "after", "over",
    "under", "more", "less", "most", "least", "minimum", "maximum", "up", "down", "in", "out",
    "increase", "increased", "increases", "decrease", "decreased", "decreases", "higher", "lower",
    "larger", "smaller", "longer", "shorter", "first", "last", "open", "closed", "true", "false",
    "always", "sometimes", "rarely", "all", "some", "any", "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve", "hundred", "thousand", "million", "billion",
    "half", "twice", "nicht", "kein", "keine", "keinen", "keiner", "keinem", "nie", "niemals", "ohne",
    "nur", "weder", "verboten", "erlaubt", "ne", "pas", "jamais", "sans", "aucun", "aucune", "ni",
    "rien", "interdit", "nunca", "sin", "ningún", "ninguna", "nada", "solo", "jamás", "prohibido",
    "não", "sem", "nenhum", "nenhuma", "non", "mai", "senza", "nessuno", "nessuna", "né", "niet",
    "geen", "nooit", "zonder", "nigdy", "bez", "inte", "aldrig", "utan", "ikke", "aldri", "uden",
    "uten", "ei", "не", "ни", "нет", "никогда", "без", "нельзя", "только",
})  # fmt: skip
"""Words that turn a sentence round, or count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What is compared of a passage."""

    id: str
    title: str
    text: str
    date: str | None = None
    """ISO date that its document states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Passages without their near-duplicates."""

    ids: tuple[str, ...]
    dropped: dict[str, str]
    """Id of each passage left out, and of the one that stays in its stead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Print:
    """A passage as it is compared."""

    text: Text
    words: tuple[str, ...]
    shingles: frozenset[tuple[str, ...]]
    facts: tuple[str, ...]
    """For each word itself if it is a fact, else nothing."""
    title: frozenset[str]


_Change: TypeAlias = tuple[slice, slice]
"""The words of two texts that stand in each other's place; one side may be empty."""


def distinct(texts: Iterable[Text], k: int) -> Distinct:
    """The `k` first of `texts`, best first, that are no near-duplicates of each other.

    Of two, the one with the newer date stays, at the better place; without two dates, the better one.
    """
    kept: list[_Print] = []
    dropped: dict[str, str] = {}
    for text in texts:
        found = _print(text)
        place = next((place for place, other in enumerate(kept) if _same(found, other)), None)
        if place is None:
            if len(kept) == k:
                break
            kept.append(found)
        elif _newer(text, kept[place].text):
            dropped[kept[place].text.id] = text.id
            kept[place] = found
        else:
            dropped[text.id] = kept[place].text.id
    ids = tuple(one.text.id for one in kept)
    return Distinct(ids=ids, dropped={gone: _last(dropped, stays) for gone, stays in dropped.items()})


def near_duplicates(first: Text, second: Text) -> bool:
    """Whether one of the two is enough."""
    return _same(_print(first), _print(second))


def _same(first: _Print, second: _Print) -> bool:
    if _told_apart(first.title, second.title):
        return False
    if first.words == second.words:
        return True
    if _jaccard(first.shingles, second.shingles) < NEARLY or _told(first.facts) != _told(second.facts):
        return False
    return _alignable(first, second) and all(
        _harmless(first, second, group) for group in _changes(first, second)
    )


def _told(facts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(fact for fact in facts if fact)


def _alignable(first: _Print, second: _Print) -> bool:
    """Whether texts can be aligned in no time, which those that only repeat themselves cannot."""
    here, there = Counter(first.words), Counter(second.words)
    pairs = sum(count * there[word] for word, count in here.items())
    return pairs <= _REPEATS * len(first.words)


def _changes(first: _Print, second: _Print) -> Iterator[list[_Change]]:
    """What differs; changes with less than a run of the same words between them are one, as in a swap."""
    group: list[_Change] = []
    matcher = SequenceMatcher(None, first.words, second.words, autojunk=False)
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        if tag != "equal":
            group.append((slice(begin, end), slice(other_begin, other_end)))
        elif end - begin >= _RUN and group:
            yield group
            group = []
    if group:
        yield group


def _harmless(first: _Print, second: _Print, group: list[_Change]) -> bool:
    """Whether the one text only says more, without facts, or the same in other forms of the words."""
    if any(_told(first.facts[here]) != _told(second.facts[there]) for here, there in group):
        return False
    words = [(" ".join(first.words[here]), " ".join(second.words[there])) for here, there in group]
    others = [(gone, come) for gone, come in words if stems(gone) != stems(come)]
    return not any(gone for gone, _ in others) or not any(come for _, come in others)


def _told_apart(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether titles name two things: "X-100" and "X-200", but not "Battery" and "Battery guide"."""
    only = (first - second, second - first)
    return all(only) or any(_figure(word) for words in only for word in words)


def _print(text: Text) -> _Print:
    units = _units(text.text)
    words = tuple(unit.casefold() for unit in units)
    return _Print(
        text=text,
        words=words,
        shingles=frozenset(tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))),
        facts=tuple(unit.casefold() if _fact(unit) else "" for unit in units),
        title=frozenset(unit.casefold() for unit in _units(_COPY.sub(" ", text.title))),
    )


def _units(text: str) -> list[str]:
    """Words as they are written, without the punctuation around them."""
    stripped = (unit.strip(_EDGES) for unit in unicodedata.normalize("NFKC", text).split())
    return [unit for unit in stripped if unit]


def _fact(unit: str) -> bool:
    """Whether a text with another word in its place, or without it, may say something else."""
    word = unit.casefold()
    if word in _POLAR or _NOT.search(word) or _figure(unit):
        return True
    return any(character.isupper() or unicodedata.category(character) == "Lo" for character in unit)


def _figure(unit: str) -> bool:
    """A number, a code, or a symbol such as "≤", "%" and "€"."""
    return any(character.isnumeric() or unicodedata.category(character)[0] == "S" for character in unit)


def _newer(text: Text, than: Text) -> bool:
    return bool(text.date and than.date and text.date > than.date)


def _jaccard(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> float:
    return len(first & second) / max(1, len(first | second))


def _last(dropped: dict[str, str], identity: str) -> str:
    """The one that stays in the end: who took a place may have lost it to a newer one."""
    while identity in dropped:
        identity = dropped[identity]
    return identity
