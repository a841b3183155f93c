"""When two drafts contradict each other, and how a person is told.

Two answers agree when one says no more than the other: its words and its quantities are among the other's.
Different numbers of the same thing never agree, and neither do a denial and its opposite. Where in doubt the
answers differ: a dispute that is none is seen through at a glance, one that is hidden is not. The rules about
number words, units and denials are English; for other scripts only equal words and digits agree.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from specrag.text import content_words, normalise_answer
from specrag.types import Draft, Passage, Side

_SPELLED: Final = {
    word: str(number)
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 2
    )
}
"""Without "one", which is a pronoun more often than a number."""
_SPELLED_WORD = re.compile(rf"\b({'|'.join(_SPELLED)})\b", re.IGNORECASE)
_UNITS: Final = {
    "kg": "kilogram",
    "g": "gram",
    "t": "tonne",
    "km": "kilometre",
    "kilometer": "kilometre",
    "meter": "metre",
    "m": "metre",
    "cm": "centimetre",
    "mm": "millimetre",
    "h": "hour",
    "hr": "hour",
    "min": "minute",
    "sec": "second",
    "s": "second",
    "w": "watt",
    "wh": "watt",  # "watt-hours" are read up to the hyphen
    "kwh": "kilowatt",
    "%": "percent",
    "€": "euro",
    "eur": "euro",
    "$": "dollar",
    "usd": "dollar",
    "£": "pound",
    "gbp": "pound",
}
_PLAIN_UNITS: Final = {*_UNITS.values(), "day", "week", "month", "year", "night", "degree", "litre", "people"}
_BOUND = re.compile(r"\b(?:no|not)\s+(?:more|less|fewer|later|earlier)\s+than\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:not|no longer|instead of|rather than)\s+(?:[^\W\d]+\s+){0,2}?\d[\d.,]*", re.IGNORECASE
)
_DENIAL = re.compile(r"\b(?:no|not|never|none|nobody|nothing|cannot|without)\b|n['’]t\b", re.IGNORECASE)  # noqa: RUF001 - apostrophes
_QUANTITY = re.compile(r"(?:([^\W\d_]+)\s+)?([€$£])?(\d+(?:[.,]\d+)*)(?:[\s-]*([^\W\d_]+|[%€$£]))?")
_YEAR = re.compile(r"[12]\d{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """What of an answer is compared."""

    words: frozenset[str]
    names: frozenset[str]
    """Words with a capital: a draft goes on in mid-sentence, so these are names."""
    amounts: frozenset[tuple[str, str]]
    """(unit, number); what the answer denies is left out."""
    denies: bool

    def numbers(self, unit: str) -> set[str]:
        return {number for known, number in self.amounts if known == unit}


def agree(first: str, second: str) -> bool:
    """Whether two answers to one question say the same in other words."""
    one, two = _claim(first), _claim(second)
    units = {unit for unit, _ in one.amounts} & {unit for unit, _ in two.amounts}
    if any(one.numbers(unit) != two.numbers(unit) for unit in units):
        return False
    shared = one.amounts & two.amounts
    measured = any(_known_unit(unit) for unit, _ in shared)
    if measured or (shared and _nested(one.amounts, two.amounts)):
        return _nested(one.names, two.names)
    if one.denies != two.denies:
        return False
    return bool(one.words and two.words) and _nested(one.words, two.words)


def sides_of(
    drafts: Sequence[Draft], answers: Sequence[Sequence[int]], passages: Sequence[Passage]
) -> tuple[Side, ...]:
    """The sides of a dispute, the chosen one first; none if nobody contradicts it.

    `answers` are the drafts of each well-scored answer, its best draft first, the chosen answer first. An
    answer from the very passages of the chosen one is another reading of them and no dispute between sources;
    an answer that cites nothing has no source at all.
    """
    chosen = drafts[answers[0][0]]
    sides = [_side(drafts, answers[0], passages)]
    for members in answers[1:]:
        rival = drafts[members[0]]
        if not rival.citations or not chosen.citations:
            continue
        side = _side(drafts, members, passages)
        known = next((place for place, other in enumerate(sides) if agree(other.answer, rival.answer)), None)
        if known is not None:
            sides[known] = _joined(sides[known], side)
        elif set(rival.citations) != set(chosen.citations):
            sides.append(side)
    return tuple(sides) if len(sides) > 1 else ()


def conflict_of(sides: Sequence[Side], passages: Sequence[Passage]) -> str | None:
    """One sentence per dispute: who says what, and which source is the newest where all are dated."""
    if not sides:
        return None
    said = [f"{_speakers(side)} “{side.answer}”" for side in sides]
    text = f"Sources disagree: {', '.join(said[:-1])}, and {said[-1]}."
    newest = _newest(sides, passages)
    return text if newest is None else f"{text} The newest of them says “{newest.answer}”."


def source_of(passage: Passage) -> str:
    """A passage as a source is named to a person: its title, with the date that the document states."""
    date = f" ({passage.published_at})" if passage.published_at else ""
    return f"{passage.title or passage.source}{date}"


def _claim(answer: str) -> _Claim:
    text = _SPELLED_WORD.sub(lambda found: _SPELLED[found[0].lower()], answer)
    text = _BOUND.sub(" ", text)
    stated = _DENIED.sub(" not ", text)
    return _Claim(
        words=frozenset(map(_stem, content_words(text) or normalise_answer(text).split())),
        names=frozenset(
            _stem(word.lower())
            for word in re.findall(r"[^\W\d_]+", text)
            if word[0].isupper() and content_words(word) and not _known_unit(word)
        ),
        amounts=frozenset(
            (_unit(before, sign, number, after), _plain(number))
            for before, sign, number, after in _QUANTITY.findall(stated)
        ),
        denies=bool(_DENIAL.search(text)),
    )


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
    stem = _stem(word.lower())
    return _UNITS.get(stem, _UNITS.get(word.lower(), stem if stem in _PLAIN_UNITS else ""))


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 2 and not word.endswith("ss") else word  # noqa: PLR2004 - "as"


def _plain(number: str) -> str:
    """A number without the commas of its thousands: 3,890 is 3890, and 3,4 is 3.4."""
    whole = re.sub(r",(?=\d{3}(?!\d))", "", number).replace(",", ".")
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def _nested(one: frozenset[str] | frozenset[tuple[str, str]], two: Iterable[object]) -> bool:
    other = frozenset(two)
    return one <= other or other <= one


def _side(drafts: Sequence[Draft], members: Sequence[int], passages: Sequence[Passage]) -> Side:
    cited = tuple(dict.fromkeys(one for index in members for one in drafts[index].citations))
    by_id = {passage.id: passage for passage in passages}
    return Side(
        draft_index=members[0],
        answer=drafts[members[0]].answer,
        passage_ids=cited,
        sources=tuple(source_of(by_id[one]) if one in by_id else one for one in cited) if passages else (),
    )


def _joined(side: Side, other: Side) -> Side:
    """A side with what another draft of the same claim rests on."""
    both = dict(zip(side.passage_ids, side.sources, strict=False))
    both |= dict(zip(other.passage_ids, other.sources, strict=False))
    ids = tuple(dict.fromkeys((*side.passage_ids, *other.passage_ids)))
    return replace(side, passage_ids=ids, sources=tuple(both[one] for one in ids if one in both))


def _speakers(side: Side) -> str:
    sources = list(dict.fromkeys(side.sources)) or [f"the passages of draft {side.draft_index + 1}"]
    verb = "says" if len(side.sources) > 0 and len(sources) == 1 else "say"
    return f"{' and '.join(sources)} {verb}"


def _newest(sides: Sequence[Side], passages: Sequence[Passage]) -> Side | None:
    """The side with the newest source, if every side has a dated one and one date is clearly the last.

    ISO dates are compared as far as both go: 2025 is neither before nor after 2025-03-10.
    """
    dates = {passage.id: passage.published_at or "" for passage in passages}
    newest = [max((dates.get(one, "") for one in side.passage_ids), default="") for side in sides]
    for place, date in enumerate(newest):
        others = [other for at, other in enumerate(newest) if at != place]
        if date and all(other and date[: len(other)] > other[: len(date)] for other in others):
            return sides[place]
    return None
