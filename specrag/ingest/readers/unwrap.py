"""Lines of a page back to paragraphs. Pure; the only evidence is the text itself.

A line that fills the column was broken to fit it, so the break is not a statement. A short line ends
something: a paragraph, a heading, a row of a table. A hyphen at the end of a line is dropped unless the
document writes the same word with a hyphen elsewhere.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

_CUT = "\x02"
"""Stands where a word was cut at the end of a line, so that the lengths of the lines stay known."""
# pdfium replaces the hyphen and the line break by U+FFFE; soft hyphens and plain ones appear as well.
_HYPHEN = re.compile(r"(?<=\w)(?:[\ufffe\xad\x02](?:\r?\n)?|[-\u2010]\r?\n)(?=\w)")
_PRESENTATION = re.compile(r"[\ufb00-\ufb06\ufb50-\ufdff\ufe70-\ufefc]+")
_SENTENCE_END = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\u061f\u0964\u1362][\"')\]\u00bb\u201d\u2019\u300d\u300f]*$"
)
_ITEM = re.compile(r"[•◦▪‣●○\u2013—*]|[-+] |\(?\d{1,3}[.)] |\(?[a-z][.)] ")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
"""Scripts without blanks between words: joined without one, and counted double where they set the width."""
_NUMBER = re.compile(r"(?<!\S)[-+(]?\d[\d.,\u00a0]*[%)]?(?!\S)")
_ROW = 2
"""Lines one below the other with the same count of numbers, and at least so many, are rows of a table."""
_FULL, _NEARLY_FULL = 0.75, 0.92
_LONGEST = 40
"""Characters of a word that are looked at."""
_COLUMN = 30
"""Where no line is longer than this, the lines are no paragraphs."""


def rejoin_hyphens(pages: Sequence[str]) -> list[str]:
    """Words that were cut at line ends made whole again; ligatures and drawn Arabic forms as letters."""
    plain = [_PRESENTATION.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text) for text in pages]
    # The boundary keeps this linear: text of a single endless word would take for ever otherwise.
    written = {word.lower() for text in plain for word in re.findall(r"\b\w+-\w+", text)}

    def join(match: re.Match[str]) -> str:
        before, after = (
            match.string[max(0, match.start() - _LONGEST) : match.start()],
            match.string[match.end() : match.end() + _LONGEST],
        )
        left, right = re.findall(r"\w+", before)[-1], re.findall(r"\w+", after)[0]
        keep = f"{left}-{right}".lower() in written or not right[0].islower()
        return f"-{_CUT}" if keep else _CUT

    return [_HYPHEN.sub(join, text) for text in plain]


def unwrap(text: str) -> str:
    """Paragraphs with an empty line between them; short lines (headings, rows) stay lines."""
    lines = [line.strip() for line in re.split(r"\r\n?|\n", text)]
    widths = sorted(_width(part) for line in lines for part in line.split(_CUT) if part)
    column = widths[len(widths) * 4 // 5] if widths else 0
    pieces = lines[:1]
    for before, after in pairwise(lines):
        filled = _width(before.rpartition(_CUT)[2]) / column if column >= _COLUMN else 0.0
        pieces += [_between(before, after, filled), after]
    return "".join(pieces).replace(_CUT, "")


def _between(before: str, after: str, filled: float) -> str:
    if not before or not after or _ITEM.match(after):
        return "\n"
    ended = _SENTENCE_END.search(before) is not None
    numbers = len(_NUMBER.findall(before))
    if numbers >= _ROW and not ended and numbers == len(_NUMBER.findall(after)):
        return "\n"
    if filled >= _NEARLY_FULL or (filled >= _FULL and not ended) or (after[0].islower() and not ended):
        return "" if _WIDE.match(before[-1]) and _WIDE.match(after[0]) else " "
    return "\n\n" if ended else "\n"


def _width(line: str) -> int:
    return len(line) + len(_WIDE.findall(line))
