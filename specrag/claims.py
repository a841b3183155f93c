"""Whether two answers to one question say the same, contradict each other, or neither.

They agree when one says no more than the other: its words and its amounts are among the other's. They
contradict each other when they fill the same place differently: other numbers of one unit, other names, a
denial. An answer of another kind ("an electric cargo bike" beside "160 kilograms") does neither. The rules on
number words, units and denials are English; elsewhere digits, names and short answers are compared.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from specrag.text import content_words, normalise_answer

_KINDS: Final[dict[str, dict[str, str]]] = {
    "mass": {"gram": "g", "kilogram": "kg", "tonne": "t"},
    "length": {
        "millimetre": "mm millimeter",
        "centimetre": "cm centimeter",
        "metre": "m meter",
        "kilometre": "km kilometer",
    },
    "time": {
        "second": "s sec",
        "minute": "min",
        "hour": "h hr",
        "day": "",
        "night": "",
        "week": "",
        "month": "",
        "year": "",
    },
    "money": {"euro": "€ eur", "dollar": "$ usd", "pound": "£ gbp"},
    "power": {"watt": "w wh", "kilowatt": "kw kwh"},  # "watt-hours" are read up to the hyphen
    "share": {"percent": "%"},
    "volume": {"litre": "l liter"},
    "heat": {"degree": ""},
}
"""Units of a kind, each with its other spellings in the singular."""
_KIND_OF: Final = {unit: kind for kind, units in _KINDS.items() for unit in units}
_UNITS: Final = {
    spelling: unit
    for units in _KINDS.values()
    for unit, others in units.items()
    for spelling in (unit, *others.split())
}
_SPELLED: Final = {
    word: str(number)
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 2
    )
}
_SPELLED_WORD = re.compile(rf"\b({'|'.join(_SPELLED)})\b", re.IGNORECASE)
_ONE = re.compile(rf"\bone(?=[\s-]+(?:{'|'.join(_KIND_OF)})\b)", re.IGNORECASE)
"""Elsewhere "one" is a pronoun more often than a number."""
_BOUND = re.compile(r"\b(?:no|not)\s+(?:more|less|fewer|later|earlier)\s+than\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:not|no longer|instead of|rather than)\s+(?:[^\W\d]+\s+){0,2}?\d[\d.,]*", re.IGNORECASE
)
_AMOUNT = re.compile(r"(?:\b([^\W\d_]+)\s+)?([€$£])?(\d+(?:[.,]\d+)*)(?:[\s-]*([^\W\d_]+|[%€$£]))?")
_YEAR = re.compile(r"[12]\d{3}")
_LETTERS = re.compile(r"[^\W\d_]+")
_DENIALS = frozenset({"no", "not", "never", "none", "nobody", "nothing", "cannot", "without"})
_DENIAL = re.compile(rf"\b(?:{'|'.join(_DENIALS)})\b|n['’]t\b", re.IGNORECASE)  # noqa: RUF001 - apostrophes
_SHORT = 3
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """What of an answer is compared."""

    words: frozenset[str]
    names: frozenset[str]
    """Words with a capital: a draft goes on in mid-sentence, so these are names."""
    amounts: frozenset[tuple[str, str]]
    """(unit, number); what the answer denies is left out."""
    denied: frozenset[tuple[str, str]]
    denies: bool

    @property
    def units(self) -> set[str]:
        return {unit for unit, _ in self.amounts}

    @property
    def kinds(self) -> set[str]:
        return {_KIND_OF[unit] for unit in self.units if unit in _KIND_OF}

    def numbers(self, unit: str) -> set[str]:
        return {number for known, number in self.amounts if known == unit}


def agree(first: str, second: str) -> bool:
    """Whether two answers to one question say the same in other words."""
    one, two = _claim(first), _claim(second)
    if _other_numbers(one, two):
        return False
    shared = one.amounts & two.amounts
    if any(unit in _KIND_OF for unit, _ in shared) or (shared and _nested(one.amounts, two.amounts)):
        return _nested(one.names, two.names)
    return one.denies == two.denies and _nested(one.words, two.words)


def contradict(first: str, second: str) -> bool:
    """Whether two answers to one question cannot both be right.

    Where both say how much, the numbers decide; an amount and something else are answers of two kinds.
    Without amounts two names contradict each other, a denial what it denies, and any two short answers.
    """
    if agree(first, second):
        return False
    one, two = _claim(first), _claim(second)
    if one.amounts & two.denied or two.amounts & one.denied:
        return True
    if one.kinds or two.kinds:
        measured = [unit for unit in one.units & two.units if unit in _KIND_OF]
        converted = not measured and bool(one.kinds & two.kinds)
        return converted or any(one.numbers(unit) != two.numbers(unit) for unit in measured)
    if _other_numbers(one, two) or (one.names - two.names and two.names - one.names):
        return True
    denied = one.denies != two.denies and _nested(one.words - _DENIALS, two.words - _DENIALS)
    return denied or max(len(one.words), len(two.words)) <= _SHORT


def holds(texts: Sequence[str], answer: str) -> bool:
    """Whether the texts hold what an answer claims: its measured amounts, or else its numbers and names.

    What stands beside a measured amount is mostly the question said again. A number may lack its unit in the
    texts, as it does in a table, but not have another one.
    """
    text = _in_digits(" ".join(texts))
    found, claim = _amounts(text), _claim(answer)
    bare = {number for unit, number in found if unit not in _KIND_OF}
    if claim.kinds:
        measured = {(unit, number) for unit, number in claim.amounts if unit in _KIND_OF}
        return all(amount in found or amount[1] in bare for amount in measured)
    named = {_stem(word.lower()) for word in _LETTERS.findall(text)}
    numbers = {number for _, number in found}
    return claim.names <= named and all(number in numbers for _, number in claim.amounts)


def _claim(answer: str) -> _Claim:
    text = _BOUND.sub(" ", _in_digits(answer))
    stated = _amounts(_DENIED.sub(" not ", text))
    return _Claim(
        words=frozenset(map(_stem, content_words(text) or normalise_answer(text).split())),
        names=frozenset(
            _stem(word.lower())
            for word in _LETTERS.findall(text)
            if word[0].isupper() and content_words(word) and not _known_unit(word)
        ),
        amounts=stated,
        denied=_amounts(text) - stated,
        denies=bool(_DENIAL.search(text)),
    )


def _in_digits(text: str) -> str:
    return _SPELLED_WORD.sub(lambda found: _SPELLED[found[0].lower()], _ONE.sub("1", text))


def _amounts(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(
        (_unit(before, sign, number, after), _plain(number))
        for before, sign, number, after in _AMOUNT.findall(text)
    )


def _other_numbers(one: _Claim, two: _Claim) -> bool:
    return any(one.numbers(unit) != two.numbers(unit) for unit in one.units & two.units)


def _unit(before: str, sign: str, number: str, after: str) -> str:
    """What a number counts: a known unit, a year, the name that it belongs to, or the word behind it."""
    unit = _known_unit(sign or after)
    if unit:
        return unit
    if _YEAR.fullmatch(number) and not content_words(after):
        return "dated"  # a year names when, not how long: it measures nothing
    if before[:1].isupper() and content_words(before) and not after[:1].isupper():
        return _stem(before.lower())
    return _stem(after.lower()) if content_words(after) else ""


def _known_unit(word: str) -> str:
    return _UNITS.get(word.lower(), _UNITS.get(_stem(word.lower()), ""))


def _stem(word: str) -> str:
    """The word without a plural s; short words keep it, so that "as" stays."""
    return word.removesuffix("s") if len(word) > _SHORT and not word.endswith("ss") else word


def _plain(number: str) -> str:
    """A number without the commas of its thousands: 3,890 is 3890, and 3,4 is 3.4."""
    whole = re.sub(r",(?=\d{3}(?!\d))", "", number).replace(",", ".")
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def _nested(one: frozenset[_T], two: frozenset[_T]) -> bool:
    return one <= two or two <= one
