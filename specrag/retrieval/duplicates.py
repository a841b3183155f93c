"""Passages that say the same in nearly the same words, of which one is enough.

Two pages that differ in one figure, name or "not" are no duplicates: they contradict each other, and showing
that is what this program is for. So near-duplicates share most of their runs of three words, and give the
same figures, names, symbols and denials in the same order; also their titles must not tell two things apart.
Where a script has no capitals every word may be a name, so only texts of the same words are duplicates there.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

NEARLY: Final = 0.8
"""Jaccard similarity of the sets of shingles from which two texts are nearly the same."""
_RUN: Final = 3
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
    title: frozenset[str]


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
    return first.facts == second.facts and _jaccard(first.shingles, second.shingles) >= NEARLY


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
        facts=tuple(unit.casefold() for unit in units if _fact(unit)),
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
