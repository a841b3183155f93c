"""The words that BM25 counts, in every script: one tokenizer for questions and documents, so that they meet.

- Scripts that put spaces between words give stems; the stemmer follows from the script of the word itself.
- Scripts without spaces (Chinese, Japanese, Thai, ...) and Korean, whose endings stick to the word, give
  overlapping pairs of characters, which need no dictionary.
- Numbers and codes are kept whole ("X-100", "15,50", "v2.1"), since they are what vectors blur, and their
  parts are given too, so that "X 100" still finds "X-100". "C++" and "C#" are also known by their sign.

Text is hostile: every step is linear, and one word of a million letters is cut.
"""

import re
import threading
import unicodedata
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

import Stemmer

LONGEST: Final = 64
"""Characters that are read of one word; longer ones are blobs and keys, which nobody types in full."""
_SLICE: Final = 4096
"""Characters that are normalised at once: sorting a run of marks takes the square of its length."""

_UNSPACED: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_JOINERS: Final = r"[-._,/:'’+]"  # noqa: RUF001 - both apostrophes
_ARABIC_MARKS: Final = "\u0640\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
_HEBREW_MARKS: Final = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_DROPPED = re.compile(f"[{_ARABIC_MARKS}{_HEBREW_MARKS}\u0307\u00ad\u200b-\u200f\u2060\ufeff]")
"""Also the dot that is left of a Turkish capital I in lower case."""
_SIGN: Final = r"(?:\+\+|\#(?!\w))"
_SIGNED = re.compile(rf"(.*){_SIGN}", re.DOTALL)
_PLAIN = re.compile(rf"[a-z0-9]+(?:{_JOINERS}[a-z0-9]+)*{_SIGN}?")
"""The tokens of a text without accents and other scripts, ten times as fast as for all."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'’]\d{3})+")  # noqa: RUF001 - both apostrophes
_DECIMAL = re.compile(r"\d+[.,]\d+")
_POSSESSIVE = re.compile(r"['’]s$")  # noqa: RUF001 - both apostrophes
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_PIECES = re.compile(r"\d+|[^\W\d_]+")
_LATIN: Final = (range(0xC0, 0x250), range(0x1E00, 0x1F00), range(0x370, 0x400), range(0x1F00, 0x2000))
_NOT_DECOMPOSED: Final = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe"}  # noqa: RUF001
"""Letters that people without them on their keyboard write so, though Unicode sees no accent there."""
_ARABIC_POINTS: Final = {0x66B: ".", 0x66C: ","}
_ASKING: Final = frozenset({
    "what", "when", "where", "which", "who", "whom", "whose", "whi", "how",
    "do", "doe", "did", "is", "are", "was", "were",
})  # fmt: skip
"""Stems of English question words, and of the verbs beside them: an answer does not repeat them."""
_STEMMERS: Final = (
    (0x0000, 0x024F, "english"),
    (0x0400, 0x052F, "russian"),
    (0x0600, 0x06FF, "arabic"),
    (0x0370, 0x03FF, "greek"),
    (0x0900, 0x097F, "hindi"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x0530, 0x058F, "armenian"),
)
_local = threading.local()


def words(text: str) -> list[str]:
    """What BM25 counts in a text, in order and with repetitions."""
    found: list[str] = []
    for at in range(0, len(text), _SLICE):
        folded = _folded(text[at : at + _SLICE])
        tokens = _PLAIN if folded.isascii() else _tokens()
        for token in tokens.findall(folded):
            found += _forms(token)
    return found


def asked(question: str) -> list[str]:
    """The different words of a question, without those that only ask, unless there are no others.

    In capitals they do not ask, but name something ("WHO"), unless all of the question is in capitals.
    """
    found = list(dict.fromkeys(words(question)))
    capitals = "" if question.isupper() else " ".join(_CAPITALS.findall(question))
    names = set(words(capitals))
    return [word for word in found if word not in _ASKING or word in names] or found


def _folded(text: str) -> str:
    """One form for all ways of writing the same letters."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _DROPPED.sub("", plain).translate(_bare_letters())


@lru_cache(maxsize=65_536)
def _forms(token: str) -> tuple[str, ...]:
    """What a token counts as. Kept, since most tokens of a text are words that came before."""
    return tuple(_forms_of(token))


def _forms_of(token: str) -> list[str]:
    if token.isascii() and token.isalpha():  # most words of most texts: no other rule can apply
        return [_stem(token[:LONGEST])]
    if signed := _SIGNED.fullmatch(token):
        bare = signed[1]
        return [re.split(_JOINERS, bare)[-1][:LONGEST] + token[len(bare) :], *_forms_of(bare)]
    if _UNSPACED_RUN.match(token):
        return _pairs(token)
    if len(token) > LONGEST:
        return [form for part in re.split(_JOINERS, token) if part for form in _short(part[:LONGEST])]
    return _short(_POSSESSIVE.sub("", token))


def _short(token: str) -> list[str]:
    if any(character.isdigit() for character in token):
        return _number(token)
    return [_stem(part) for part in _split_word(token)]


def _pairs(run: str) -> list[str]:
    """Overlapping pairs of characters; a character that stands alone is a word."""
    letters = _letters().findall(run)
    if len(letters) == 1:
        return letters
    found = [first + second for first, second in pairwise(letters)]
    # a Chinese character is a word more often than a letter of another script
    return found + [letter for letter in letters if _HAN.match(letter)]


def _number(token: str) -> list[str]:
    """A number in one notation, or a code as a whole and in its parts."""
    if _GROUPED.fullmatch(token):
        return [re.sub(r"\D", "", token)]
    if _DECIMAL.fullmatch(token):
        return [token.replace(",", ".")]
    whole = re.sub(r"[-_/:'’+,]", "", token)  # noqa: RUF001 - both apostrophes
    parts = _PIECES.findall(token)
    return [whole, *parts] if len(parts) > 1 else [whole]


def _split_word(token: str) -> list[str]:
    """The parts of "well-known" and "l'eau"; initials such as "u.s.a" are one word as well."""
    parts = [part for part in re.split(_JOINERS, token) if part]
    initials = len(parts) > 1 and all(len(part) == 1 for part in parts)
    return [*parts, "".join(parts)] if initials else parts


def _stem(word: str) -> str:
    first = ord(word[0])
    for low, high, language in _STEMMERS:
        if low <= first <= high:
            return str(_stemmer(language).stemWord(word)) or word
    return word


def _stemmer(language: str) -> Stemmer.Stemmer:
    """One for each thread: a stemmer keeps the word that it works on."""
    known: dict[str, Stemmer.Stemmer] = _local.__dict__
    if language not in known:
        known[language] = Stemmer.Stemmer(language)
    return known[language]


@cache
def _marks() -> str:
    """Vowel signs and accents, as a class of characters: without them words of many scripts fall apart."""
    found = (chr(code) for code in range(0x300, 0x20000) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    return re.escape("".join(found))


@cache
def _tokens() -> re.Pattern[str]:
    """Runs of unspaced scripts, and words with single joiners between their parts."""
    letter = rf"(?:(?![{_UNSPACED}])[^\W_]|(?![{_UNSPACED}])[{_marks()}])"
    return re.compile(rf"[{_UNSPACED}]+|{letter}+(?:{_JOINERS}{letter}+)*{_SIGN}?")


@cache
def _letters() -> re.Pattern[str]:
    return re.compile(rf".[{_marks()}]*", re.DOTALL)


@cache
def _bare_letters() -> dict[int, str]:
    """Letters without their accents, which people leave out, and the digits of all scripts as 0 to 9."""
    bare = {code: unicodedata.normalize("NFD", chr(code))[0] for codes in _LATIN for code in codes}
    letters = {code: _NOT_DECOMPOSED.get(letter, letter) for code, letter in bare.items()}
    digits = {code: unicodedata.decimal(chr(code), None) for code in range(0x80, 0x20000)}
    return (
        {code: letter for code, letter in letters.items() if letter != chr(code)}
        | {code: str(digit) for code, digit in digits.items() if digit is not None}
        | _ARABIC_POINTS
        | {0x451: "\u0435"}  # yo without its dots
    )
