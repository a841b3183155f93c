"""UTF-8 with a few bytes that are none: pasted from another program, or cut off inside a character.

To guess one encoding for all of it would garble every character that is right. A stray byte among plain ones
is a quotation mark or an accent of Windows-1252; anything else that is broken is said to be (U+FFFD).
"""

import re
from collections.abc import Iterator

_VALID = re.compile(
    rb"(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]{2})+"
)
_TYPICAL = re.compile(rb"\xc3[\x80-\xbf]|\xe2\x80[\x90-\xbf]|\xe2\x82\xac")
"""Accented letters, typographic marks and the euro sign, hardly ever meant in another encoding."""
_FIRST_LEAD = 0xC2
_DENSE = 3
"""What a broken byte beside others counts, compared with a stray one: other encodings look like that."""
_RIGHT = re.compile(r"[\x80-\u017f]|[\u0800-\ufffc\U00010000-\U0010ffff]|[\u0180-\u07ff]{2,}")
"""Characters that are no coincidence. A letter and a quotation mark of Windows-1252 may look like one of
Hebrew or Syriac."""


def is_mostly_utf8(data: bytes) -> bool:
    """Whether more of the characters beyond ASCII are right than broken."""
    right, stray, dense = _counts(data)
    return right > 0 and right >= stray + _DENSE * dense


def has_typical_utf8(data: bytes) -> bool:
    """Whether bytes with stray ones hold accented letters in UTF-8, which a guess would tear apart."""
    _, stray, dense = _counts(data)
    return dense <= stray and _TYPICAL.search(data) is not None


def mended(data: bytes) -> str:
    """The text, with stray bytes as Windows-1252."""
    parts: list[str] = []
    at = 0
    for start, end in _gaps(data):
        parts.append(data[at:start].decode("utf-8"))
        parts.append(data[start:end].decode("cp1252", "replace") if _is_stray(data, start, end) else "\ufffd")
        at = end
    return "".join((*parts, data[at:].decode("utf-8")))


def _counts(data: bytes) -> tuple[int, int, int]:
    """Characters beyond ASCII that are right, stray bytes, and other broken bytes."""
    stray = dense = 0
    for start, end in _gaps(data):
        if _is_stray(data, start, end):
            stray += 1
        elif end < len(data):  # Half a character at the end says nothing about the others.
            dense += end - start
    right = sum(len(found[0]) for found in _RIGHT.finditer(data.decode("utf-8", "replace")))
    return right, stray, dense


def _gaps(data: bytes) -> Iterator[tuple[int, int]]:
    """Where bytes are that belong to no character."""
    at = 0
    for found in _VALID.finditer(data):
        if found.start() > at:
            yield at, found.start()
        at = found.end()
    if at < len(data):
        yield at, len(data)


def _is_stray(data: bytes, start: int, end: int) -> bool:
    """Whether a broken byte stands alone between bytes of ASCII, and is no character that was cut off."""
    before, after = data[max(0, start - 1) : start], data[end : end + 1]
    alone = end - start == 1 and before.isascii() and after.isascii()
    return alone and (end < len(data) or data[start] < _FIRST_LEAD)
