"""Follow-up questions: when one needs its conversation, and what a rewriting of it has to keep.

A model writes the question that stands alone, and a small one often writes another question instead. So its
text counts only if it is one question, keeps the words of the follow-up and brings in nothing but words of
the conversation; else the follow-up is asked with the key terms of the last exchange behind it. Earlier
answers quote documents: whatever they demand, no more than their words can get into a question.

The rules for when a question stands alone are for English; in other languages only very short questions are
seen as follow-ups.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from specrag.text import content_words, is_hollow, normalise_answer
from specrag.types import Exchange

How: TypeAlias = Literal["model", "terms", "unchanged"]
"""How a follow-up became the question that is asked; told by the span "rewrite"."""

EXCHANGES: Final = 3
"""The last ones are read; what was asked before them hardly ever matters."""
QUESTION_CHARACTERS: Final = 300
ANSWER_CHARACTERS: Final = 240
_TERM_WORDS = 8
_SHORT_ANSWER = 3
"""An answer of so few words is a term itself."""
_NEW_WORDS = 1
"""A rewriting may need a word of its own ("How many people work at the factory?"), and no more."""
_MOST_WORDS = 40

_OPENING = re.compile(
    r"^(and|or|but|so|also|then|else|what about|how about|what if|any other)\b", re.IGNORECASE
)
_POINTING = re.compile(
    r"\b(it|its|itself|they|them|their|theirs|he|him|his|she|her|hers|this|these|those(?! who| that)"
    r"|the (?:same|former|latter|other|others|first|second) ?(?:one)?\b|another one|(?:that|which|the) ones?"
    r"|(?:about|of|for|with|to|in|on|at|from|than|like|by|is|was|does|did|do|can) that"
    r"|(?:else|instead|otherwise|there|that|too|then)(?=\W*$))\b",
    re.IGNORECASE,
)
_EXPLETIVE = re.compile(
    r"\bit (?:takes?|took|costs?|rains?|snows?)\b|\b(?:is|was) it \w+ (?:to|that)\b", re.IGNORECASE
)
""""How long does it take": this "it" points to nothing."""
_OWNED = re.compile(r"(?<=\w )([A-Z]\w*\b.*?)\b(?:its|their|his|her)\b")
"""Whose it is has been said: "Does the Larkspur 3 need its brakes checked?"."""
_DEFINITION = re.compile(r"^(what|who|where|when) (is|are|was|were)\b", re.IGNORECASE)
_FEW = 2
_ASKING: Final = frozenset({"why", "when", "where", "who", "whom", "whose", "which", "how"})
_POINTERS: Final = frozenset(
    {
        "about", "after", "all", "also", "another", "any", "anything", "before", "else", "former", "he",
        "her", "hers", "him", "his", "i", "instead", "latter", "me", "my", "none", "one", "ones", "other",
        "others", "otherwise", "same", "she", "some", "something", "theirs", "too", "us",
    }
)  # fmt: skip
"""Words of a follow-up that a rewriting replaces or drops."""
_QUESTION = re.compile(r"[^?？؟]*[?？؟]")  # noqa: RUF001 - of several scripts
_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")  # noqa: RUF001 - both apostrophes
_QUOTES = "\"'“”‘’`*- "  # noqa: RUF001 - models like to quote


def bounded(earlier: Sequence[Exchange]) -> tuple[Exchange, ...]:
    """The last exchanges, each cut to what a prompt needs of it."""
    return tuple(
        Exchange(
            question=_cut(exchange.question, QUESTION_CHARACTERS),
            answer=_cut(exchange.answer, ANSWER_CHARACTERS),
        )
        for exchange in earlier[-EXCHANGES:]
    )


def stands_alone(question: str) -> bool:
    """Whether a question can be understood without what was said before it."""
    if _OPENING.search(question) or _points(question):
        return False
    words = set(content_words(question)) - _POINTERS
    return len(words) >= _FEW or bool(words and _DEFINITION.search(question))


def tidied_rewriting(text: str) -> str:
    """What a model wrote, without quotes and without what comes after the first question mark."""
    line = " ".join(text.split()).strip(_QUOTES)
    asked = _QUESTION.match(line)
    return (asked[0] if asked else line).strip(_QUOTES)


def fault(rewriting: str, follow_up: str, earlier: Sequence[Exchange]) -> str | None:
    """Why a rewriting cannot stand for the follow-up, in words that go on "it ..."; None if it can."""
    asked, said = _roots(follow_up), _roots(_text(earlier))
    new = _roots(rewriting) - asked
    # in order: the first that holds is told
    checks = (
        (is_hollow(rewriting) or not _QUESTION.fullmatch(rewriting), "is not a question"),
        (len(_WORD.findall(rewriting)) > _MOST_WORDS, "is too long"),
        (normalise_answer(rewriting) in _questions(earlier), "repeats an earlier question"),
        (not _kept(rewriting, follow_up), "leaves out words of the follow-up"),
        (not new & said, "brings in nothing of the conversation"),
        (bool(_names(rewriting) - said - asked), "names what nobody has spoken of"),
        (len(new - said) > _NEW_WORDS, "speaks of something else"),
        (_points(rewriting), "still points to the conversation"),
    )
    return next((why for failed, why in checks if failed), None)


def with_terms(follow_up: str, earlier: Sequence[Exchange]) -> str:
    """The follow-up with the key terms of its conversation in brackets; unchanged if there are none.

    They are what the last question that stands alone is about, and the names in the last answer.
    """
    alone = (exchange for exchange in reversed(earlier) if stands_alone(exchange.question))
    terms = _phrases(next(alone, earlier[-1]).question, set(content_words(follow_up)))
    known = set(content_words(f"{follow_up} {' '.join(terms)}"))
    answer = content_words(earlier[-1].answer)
    short = len(answer) <= _SHORT_ANSWER and not any(word.isdigit() for word in answer)
    terms += (_phrases if short else _capitalised)(earlier[-1].answer, known)
    kept: list[str] = []
    for term in terms:
        if sum(len(one.split()) for one in [*kept, term]) <= _TERM_WORDS:
            kept.append(term)
    return f"{follow_up} ({', '.join(kept)})" if kept else follow_up


def _points(question: str) -> bool:
    return bool(_POINTING.search(_OWNED.sub(r"\1", _EXPLETIVE.sub("", question))))


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit].rstrip()}…"


def _text(earlier: Sequence[Exchange]) -> str:
    return "\n".join(f"{exchange.question}\n{exchange.answer}" for exchange in earlier)


def _questions(earlier: Sequence[Exchange]) -> set[str]:
    return {normalise_answer(exchange.question) for exchange in earlier}


def _kept(rewriting: str, follow_up: str) -> bool:
    """Whether the words of the follow-up that mean something, and what it asks for, are still there."""
    asked = _ASKING & set(_lower(follow_up))
    return _roots(follow_up) <= _roots(rewriting) and asked <= set(_lower(rewriting))


def _roots(text: str) -> set[str]:
    """The words that carry meaning, without the endings that a rewriting may change."""
    return {_root(word) for word in content_words(text) if word not in _POINTERS}


def _root(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:  # noqa: PLR2004 - "bed" keeps its end
            return word.removesuffix(ending)
    return word


def _names(text: str) -> set[str]:
    """Words within a sentence that look like names or numbers."""
    words = _WORD.findall(text)
    telling = [word for word in words[1:] if not word.islower()]
    telling += [word for word in words[:1] if any(sign.isdigit() for sign in word)]
    return {root for word in telling for root in _roots(word)}


def _lower(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _phrases(text: str, known: set[str]) -> list[str]:
    """Stretches of words that carry meaning, in order, without those that are made of known words only."""
    found: list[str] = []
    for part in re.split(r"[^\w\s'’.-]+|(?<=\w)\.(?:\s|$)", text):  # noqa: RUF001 - both apostrophes
        run: list[str] = []
        for word in [*_WORD.findall(part), ""]:
            if set(content_words(word)) - _POINTERS - _ASKING:
                run.append(word)
            elif run:
                found.append(" ".join(run))
                run = []
    return [phrase for phrase in dict.fromkeys(found) if not set(content_words(phrase)) <= known]


def _capitalised(text: str, known: set[str]) -> list[str]:
    """Names within the sentences of a long answer."""
    name = r"[A-Z][\w-]*"
    runs = re.findall(rf"(?<=[\w,;:] ){name}(?: {name})*|\b{name}(?: {name})+", text)
    return [name for name in dict.fromkeys(runs) if not set(content_words(name)) <= known]
