"""Text as it should have been: decoded, without control characters, with paragraphs but no stray blanks.

Pure functions on strings and bytes. The order matters when bytes are decoded: a byte-order mark is a
statement, UTF-8 that decodes is hardly ever a coincidence, and only what is left over needs statistics, on
the whole file, because the first kilobytes of a file are often plain ASCII.
"""

import codecs
import re
import unicodedata

from specrag.ingest.broken_utf8 import has_typical_utf8, is_mostly_utf8, mended

# The longer mark first: UTF-32 little-endian begins with the mark of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BREAKS = re.compile(r"\r\n?|\x85|\u2028|\u2029|\x0b")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\ufeff\ufffe\uffff]")  # and soft hyphens
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\))")
"""Colours and titles of a terminal."""
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_BLANKS = re.compile(r"[^\S\n]+")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_NAME_LENGTH = 255
_BINARY_SHARE = 0.02
_FEW = 4
"""Control characters that even a short text may hold."""
_LONG = 4096
"""Bytes."""
_WIDE_SHARE = 0.3
_SAMPLE = 65_536
_WRITTEN = (
    "cp1252", "cp932", "gb18030", "big5", "cp949", "euc_jp", "iso2022_jp", "cp1250", "cp1251", "cp1253",
    "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "koi8_r", "koi8_u", "cp866", "cp850", "cp437",
    "mac_roman", "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_15",
)  # fmt: skip
_DOUBLE_BYTE = ("cp932", "gb18030", "big5", "cp949", "euc_jp", "iso2022_jp")
"""What people write files in. Anything fits a short one, UTF-16 without a mark above all."""


def clean_name(name: str) -> str:
    """The name of a file as it is safe to show: no folders, no invisible characters that reorder or hide.

    The one path that stays is that of a file in an archive, `files.zip/inner/file.pdf`, which names no folder
    of any machine.
    """
    parts = [_clean_part(part) for part in re.split(r"[/\\]", _SURROGATES.sub("\ufffd", name))]
    if len(parts) > 1 and parts[0].lower().endswith(".zip"):
        inner = [part for part in parts[1:-1] if part]
        return _shortened(parts[0], inner, parts[-1] or "unnamed")
    return _cut(parts[-1] or "unnamed", _NAME_LENGTH)


def _clean_part(part: str) -> str:
    visible = "".join(char for char in part if unicodedata.category(char) not in ("Cc", "Zl", "Zp"))
    shown = unicodedata.normalize("NFC", _BIDI.sub("", visible)).strip()
    return "" if shown.strip(". ") == "" else shown


def _shortened(archive: str, inner: list[str], last: str) -> str:
    """The whole path, or where it is too long, without what lies between its ends."""
    whole = "/".join((archive, *inner, last))
    if len(whole) <= _NAME_LENGTH:
        return whole
    half = _NAME_LENGTH // 2
    return f"{_cut(archive, half - 2)}/…/{_cut(last, half - 2)}"


def _cut(name: str, length: int) -> str:
    stem, dot, suffix = name.rpartition(".")
    if len(name) > length and dot and len(suffix) < 16:  # noqa: PLR2004 - longer is no extension
        return f"{stem[: length - len(suffix) - 1]}.{suffix}"
    return name[:length]


def verbatim(text: str) -> str:
    """Text with its indentation and inner blanks, for code and Markdown; blank lines at most two in a row."""
    lines = [line.rstrip() for line in _scrub(text).split("\n")]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")


def prose(text: str) -> str:
    """Text with single blanks, and one empty line at most between paragraphs."""
    lines = [_BLANKS.sub(" ", line).strip() for line in _scrub(text).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _scrub(text: str) -> str:
    text = _ESCAPES.sub("", text) if "\x1b" in text else text
    text = _BREAKS.sub("\n", _SURROGATES.sub("\ufffd", text)).replace("\f", "\n\n")
    return unicodedata.normalize("NFC", _CONTROLS.sub("", text))


def marked_encoding(data: bytes) -> str | None:
    """The encoding that a byte-order mark states."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def decode(data: bytes) -> tuple[str, str] | None:
    """Text and the name of its encoding, or None if these bytes are not text."""
    if marked := marked_encoding(data):
        return data.decode(marked, "replace").lstrip("\ufeff"), marked
    if wide := _wide_without_mark(data):
        return data.decode(wide, "replace"), wide
    if looks_binary(data):
        return None
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return (mended(data), "utf-8") if is_mostly_utf8(data) else _guess(data)


def looks_binary(data: bytes) -> bool:
    """Whether there are more control characters than any text has."""
    sample = data[:_SAMPLE]
    controls = sum(sample.count(code) for code in range(32) if code not in b"\t\n\x0b\f\r\x1b")
    return controls > max(_FEW, _BINARY_SHARE * len(sample)) and marked_encoding(data) is None


def _wide_without_mark(data: bytes) -> str | None:
    """UTF-16 of Latin text shows as NULs in every other place."""
    sample = data[:_SAMPLE]
    half = max(1, len(sample) // 2)
    even, odd = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if odd > _WIDE_SHARE and even < _BINARY_SHARE:
        return "utf-16-le"
    return "utf-16-be" if even > _WIDE_SHARE and odd < _BINARY_SHARE else None


def _guess(data: bytes) -> tuple[str, str] | None:
    from charset_normalizer import from_bytes

    # A long file may end inside a character, which rules out the very encoding that it is in.
    lines = data[: data.rfind(b"\n") + 1] if len(data) > _LONG else b""
    matches = from_bytes(data if lines.isascii() else lines, cp_isolation=list(_WRITTEN))
    best = matches.best()
    if best is None:
        return None
    # Western text is often equally plausible in several code pages; the Web's default is the likeliest.
    ties = {m.encoding for m in matches if m.chaos <= best.chaos and m.coherence >= best.coherence}
    encoding = "cp1252" if "cp1252" in ties | set(best.could_be_from_charset) else best.encoding
    if encoding not in _DOUBLE_BYTE and has_typical_utf8(data):
        return mended(data), "utf-8"
    return data.decode(encoding, "replace"), codecs.lookup(encoding).name
