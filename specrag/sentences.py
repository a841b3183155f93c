"""Where a sentence ends, in several scripts: not at the full stop of an abbreviation."""

import re

from specrag.text import FUNCTION_WORDS

_END = re.compile(r"(?<=[.!?…؟۔।])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - scripts
_TITLE = r"Dr|Mr|Mrs|Ms|Prof|St|Mt|Ft|Gen|Lt|Col|Capt|Gov|Sen|Rep|Rev|Hon|vs?|e\.g|i\.e|cf|ca|approx"
"""Something always follows these."""
_ABBREVIATION = re.compile(
    rf"(?<![\w.])(?:(?P<title>{_TITLE})|[A-Z](?:\.[A-Z])*|Jr|Sr|Inc|Ltd|Co|Corp|etc|[ap]\.m)\.$"
)
_LONGEST = 12
"""Letters that are looked at on either side of a full stop."""
_WORD = re.compile(r"\w+")


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the empty ones."""
    pieces, start = [], 0
    for end in _END.finditer(text):
        before = text[max(start, end.start() - _LONGEST) : end.start()]  # all of "A. A. ..." would take n²
        if "\n" in end[0] or not is_abbreviated(before, text[end.end() : end.end() + _LONGEST]):
            pieces.append(text[start : end.start()])
            start = end.end()
    return [part for piece in (*pieces, text[start:]) if (part := piece.strip())]


def is_abbreviated(before: str, after: str) -> bool:
    """Whether the full stop at the end of `before` shortens a word and ends no sentence.

    After a title it does ("Dr. Mengele"). After initials and the like ("U.S. Army") it does unless `after`
    begins with a function word with a capital ("in the U.S. The ..."). English only.
    """
    found = _ABBREVIATION.search(before[-_LONGEST:])
    if found is None or found["title"]:
        return found is not None
    word = _WORD.search(after)
    return word is None or not (word[0][0].isupper() and word[0].casefold() in FUNCTION_WORDS)
