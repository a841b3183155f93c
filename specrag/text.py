"""Small text laws that several steps share: content words, equal answers, abstentions.

All scripts are meant: words are runs of letters and digits of any alphabet. Nothing here knows a model.
"""

import re
import unicodedata

_WORD = re.compile(r"\w+")
_ARTICLES = frozenset({"a", "an", "the"})
FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "many",
        "may",
        "more",
        "most",
        "much",
        "not",
        "of",
        "on",
        "or",
        "our",
        "so",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
_SOURCES = r"(?:passages?|texts?|documents?|contexts?|sources?|evidence)(?: provided| given)?"
_SAID = (
    r"(?:in|mentioned|provided|specified|stated|given|found|answered|known|available|clear|possible"
    r"|explicitly)"
)
_SAY = (
    r"(?:(?:explicitly|directly|specifically) )?(?:say|state|mention|answer|contain|provide|specify|give"
    r"|include|tell|describe|discuss|identify|indicate|explain|reveal|address|name|list)s?"
)
_FACT = r"(?:answer|information|detail|name|date|year|number|amount|price|value|reason|location|question)s?"
_ALONE = r"(?:(?!\b(?:but|though|although|while|whereas|however)\b|, and\b|[.;:]\s).)*?"
"""As long as nothing else is said; "640 Wh, but its weight is not mentioned" says something."""
_IS = r"(?:is|are|was|were)"
_IS_NOT = rf"\b{_IS} not (?:explicitly |directly |specifically )?"
_END = r"(?: here| anywhere| at all)?\W*$"
_NO = rf"^\W*(?:there {_IS} )?no (?:(?:specific|explicit|direct|clear|further|relevant) )?"
_NEWS = r"(?:answer|information|indication|details?)"
_ASKED = r"(?:who|what|when|where|which|why|how|whether|if)"
_ABSTENTIONS = re.compile(
    "|".join(
        (  # an example of each; what comes between "^" and "$" is the whole answer
            rf"\bnot {_SAID}\b[^.]*\b{_SOURCES}\b",  # "not mentioned in any of the passages"
            rf"\b{_SOURCES} (?:do|does|did) not {_SAY}\b",  # "the passages do not say"
            rf"\b(?:none|neither) of (?:the|these|those) {_SOURCES} {_SAY}\b",
            rf"\bno {_SOURCES} {_SAY}\b",  # "no passage mentions it"
            rf"^\W*(?:the )?answer\b[^.]*\b(?:is|was) (?:not {_SAID}|unknown)\b",
            rf"^{_ALONE}{_IS_NOT}(?:mentioned|specified|stated|known|disclosed){_END}",  # "it is not stated"
            rf"^{_ALONE}\b{_FACT}\b{_ALONE}{_IS_NOT}(?:provided|given|available|clear|answered){_END}",
            rf"^\W*(?:(?:it|this|that) is )?(?:not {_SAID}|unknown|unanswerable)\W*$",
            rf"{_NO}mention\b",  # "there is no mention of it"
            rf"{_NO}{_NEWS}(?: {_IS} {_SAID}\b|\W*$)",  # "no information is given", not "is collected"
            rf"{_NO}{_NEWS} (?:about|on|regarding|for|to|in|that|provided|given)\b",
            rf"{_NO}evidence(?: (?:in|about)\b[^.]*\b{_SOURCES}\b|\W*$)",
            r"\b(?:I|we) (?:do|did) not know\b",
            r"^\W*do not know\b",
            rf"^\W*(?:it(?: is| was|['’]s) )?(?:not clear|unclear)(?: {_ASKED}\b|\W*$)",  # noqa: RUF001 - apostrophes
            r"\b(?:cannot|can not) be (?:answered|determined)\b",
        )
    ),
    re.IGNORECASE,
)
_SHORT_NOT = re.compile(r"(?<=\bca)(n)['’]t\b|(?<=\w)n['’]t\b", re.IGNORECASE)  # noqa: RUF001 - apostrophes
_NUMBER = r"\d{1,2}"
_CITED = re.compile(rf"\s*\[({_NUMBER}(?:\s*[,;]\s*{_NUMBER})*)\]")
_ANNOUNCEMENT = re.compile(
    r"^\W*(the\s+)?(short\s+)?answer(\s+is)?(\s+to\s+the\s+question(\b.*\bis)?)?\W*$",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION_WORDS = frozenset({"how", "what", "when", "where", "which", "who", "whom", "whose", "why"})
_ASKING_VERBS = frozenset(
    {"are", "could", "did", "do", "does", "had", "has", "have", "is", "should", "was", "were", "would"}
)
"""Not "can", "may" and "will", with which a name can begin."""


def content_words(text: str) -> list[str]:
    """Lower-case words of the text that carry meaning, in order and with repetitions."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for word in _WORD.findall(folded) if word not in FUNCTION_WORDS]


def normalise_answer(answer: str) -> str:
    """The form in which two answers are equal: case, articles, punctuation and spaces do not count."""
    folded = unicodedata.normalize("NFKC", answer).casefold()
    return " ".join(word for word in _WORD.findall(folded) if word not in _ARTICLES)


def is_abstention(answer: str) -> bool:
    """Whether the answer says that the passages do not hold one.

    "The charger is not in the box" is an answer; only what is said of the passages counts, or the whole.
    """
    return bool(_ABSTENTIONS.search(_in_full(answer)))


def _in_full(text: str) -> str:
    """The text with "not" for "n't"; "can't" keeps its n."""
    return _SHORT_NOT.sub(lambda found: f"{found[1] or ''} not", text)


def is_hollow(answer: str) -> bool:
    """Whether an answer holds no word, or only announces one ("The answer is:")."""
    return not _WORD.search(_ANNOUNCEMENT.sub("", answer))


def asking_words(question: str) -> frozenset[str]:
    """The word that a question begins with, if it is one that asks; English only."""
    first = _WORD.search(question)
    word = first[0].casefold() if first else ""
    return frozenset({word} & (_QUESTION_WORDS | _ASKING_VERBS))


def cited_numbers(text: str) -> set[int]:
    """The numbers that stand in brackets, as in "[2]" and "[1, 3]"."""
    return {int(number) for cited in _CITED.findall(text) for number in re.findall(_NUMBER, cited)}


def without_citations(text: str) -> str:
    """The text without numbers in brackets, which count in the prompt that it was written from only."""
    return _CITED.sub("", text).strip()


def printable(text: str) -> str:
    """The text on one line, without signs that would steer a terminal."""
    return "".join(sign for sign in text if sign.isprintable())


def overlap(words: list[str], text: str) -> float:
    """Share of the distinct `words` that occur in `text`, in [0, 1]."""
    wanted = set(words)
    return len(wanted & set(content_words(text))) / len(wanted) if wanted else 0.0
