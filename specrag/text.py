"""Small text laws that several steps share: sentences, content words, equal answers, abstentions.

All scripts are meant: a sentence may end in a full-width stop, and words are runs of letters and digits of
any alphabet. Nothing here knows a model.
"""

import re
import unicodedata

_SENTENCE_END = re.compile(r"(?<=[.!?…؟۔।])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - scripts
_WORD = re.compile(r"\w+")
_ARTICLES = frozenset({"a", "an", "the"})
_FUNCTION_WORDS = frozenset(
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
_SOURCES = r"(passages?|texts?|documents?|contexts?|sources?|evidence)"
_SAID = (
    r"(in|mentioned|provided|specified|stated|given|found|answered|known|available|clear|possible|explicitly)"
)
_ABSTENTIONS = re.compile(
    rf"\bnot {_SAID}\b[^.]*\b{_SOURCES}\b"
    rf"|\b{_SOURCES} (do|does|did) not (say|state|mention|answer|contain|provide|specify|give|include)\b"
    rf"|^\W*(the )?answer\b[^.]*\b(is|was) (not {_SAID}|unknown)\b"
    rf"|^\W*((it|this|that) is )?(not {_SAID}|unknown|unanswerable)\W*$"
    r"|^\W*no (answer|information|mention|evidence)\b"
    r"|\b(cannot|can not|can't) be (answered|determined)\b",
    re.IGNORECASE,
)
_ANNOUNCEMENT = re.compile(
    r"^\W*(the\s+)?(short\s+)?answer(\s+is)?(\s+to\s+the\s+question(\s+is)?)?\W*$", re.IGNORECASE
)


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the empty ones."""
    return [part for piece in _SENTENCE_END.split(text) if piece and (part := piece.strip())]


def content_words(text: str) -> list[str]:
    """Lower-case words of the text that carry meaning, in order and with repetitions."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for word in _WORD.findall(folded) if word not in _FUNCTION_WORDS]


def normalise_answer(answer: str) -> str:
    """The form in which two answers are equal: case, articles, punctuation and spaces do not count."""
    folded = unicodedata.normalize("NFKC", answer).casefold()
    return " ".join(word for word in _WORD.findall(folded) if word not in _ARTICLES)


def is_abstention(answer: str) -> bool:
    """Whether the answer says that the passages do not hold one.

    "The charger is not in the box" is an answer; only what is said of the passages counts, or the whole.
    """
    return bool(_ABSTENTIONS.search(answer))


def is_hollow(answer: str) -> bool:
    """Whether an answer holds no word, or only announces one ("The answer is:")."""
    return not _WORD.search(_ANNOUNCEMENT.sub("", answer))


def overlap(words: list[str], text: str) -> float:
    """Share of the distinct `words` that occur in `text`, in [0, 1]."""
    wanted = set(words)
    return len(wanted & set(content_words(text))) / len(wanted) if wanted else 0.0
