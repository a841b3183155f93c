"""What a file is, told by its content first and its extension second.

An extension is a claim, the first bytes are evidence. Containers (ZIP, OLE) are opened far enough to know
what they hold (`inside`), so that a workbook called `.csv` is read as a workbook and an OpenDocument text is
refused by its name. Nothing is read as text because nothing better was found: bytes that are not text are
refused. Only the beginning of a text is decoded here, because files may be large.
"""

import io
import re
from pathlib import PurePath
from typing import NoReturn

from specrag.errors import DocumentError
from specrag.ingest.formats import BY_EXTENSION, SUPPORTED, Format
from specrag.ingest.inside import OLE, ZIP, Held, held_by_ole, held_by_zip
from specrag.ingest.text import decode, looks_binary, marked_encoding

_BINARY: frozenset[Format] = frozenset(("pdf", "docx", "pptx", "xlsx", "xlsb", "ods", "epub"))
_BEFORE_HTML = re.compile(r"\s*(?:<\?xml[^>]*>)?", re.IGNORECASE)
_HTML = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_COMMENT = re.compile(r"\s*<!--")
_SAMPLE = 65_536
# Beginnings that puremagic is unsure of, or that would pass for text.
_MAGIC = (
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
    (b"{\\rtf", "an RTF document (save it as DOCX or PDF)"),
    (b"%!PS", "a PostScript document (make a PDF of it)"),
    (b"Rar!\x1a\x07", "a RAR archive (unpack it)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive (unpack it)"),
    (b"\x1f\x8b", "a gzip archive (unpack it)"),
)


def identify(data: bytes, name: str) -> Format:
    """The format to read `data` in.

    Raises:
        DocumentError: `unsupported`, `type_mismatch`, `encrypted` or `corrupt`, and what the file really is.
    """
    claimed = BY_EXTENSION.get(PurePath(name).suffix.lower())
    start = data[:1024]
    if start.lstrip().startswith(b"%PDF-") or (claimed == "pdf" and b"%PDF-" in start):
        return "pdf"
    if start.startswith(ZIP):
        return _held(held_by_zip(io.BytesIO(data), name), name, claimed)
    if start.startswith(OLE):
        return _held(held_by_ole(data, name), name, claimed)
    for magic, kind in _MAGIC:
        if start.startswith(magic) and (kind != "a Windows program" or looks_binary(data)):
            _refuse(name, claimed, kind)
    decoded = decode(_beginning(data))
    if decoded is None:
        _refuse_binary(data, name, claimed)
    return _textual(decoded[0][:4096], name, claimed)


def _beginning(data: bytes) -> bytes:
    """Whole lines from the beginning, because a character that is cut in two is none in most encodings."""
    lines, newline, _ = data[:_SAMPLE].rpartition(b"\n")
    return data if len(data) <= _SAMPLE or not newline else lines + newline


def _held(held: Held, name: str, claimed: Format | None) -> Format:
    if held.archive and claimed is None:
        where = (
            "inside another one; unpack it and add" if "/" in name else "; add it whole or unpack it to add"
        )
        raise DocumentError("unsupported", f"{name} is a ZIP archive {where} its files.".replace(" ;", ";"))
    return held.format or _refuse(name, claimed, held.words)


def _textual(start: str, name: str, claimed: Format | None) -> Format:
    if claimed == "markdown":
        return claimed
    if claimed == "html" or _begins_as_html(start):
        return "html"
    if claimed == "xls":
        return "csv"  # what many programs export under this name
    if claimed in _BINARY:
        _refuse(name, claimed, "plain text")
    if claimed is None and start.lstrip()[:1] in ("{", "["):
        return "json"  # which falls back to text as it stands
    return claimed or "code"


def _begins_as_html(start: str) -> bool:
    # A loop, because one pattern for any number of comments can take time exponential in that number.
    prolog = _BEFORE_HTML.match(start)
    at = prolog.end() if prolog else 0
    while opening := _COMMENT.match(start, at):
        closing = start.find("-->", opening.end())
        if closing < 0:
            return False
        at = closing + len("-->")
    return _HTML.match(start, at) is not None


def _refuse_binary(data: bytes, name: str, claimed: Format | None) -> NoReturn:
    known = _named(data[:_SAMPLE])
    if known is None and claimed in _BINARY:
        raise DocumentError(
            "corrupt",
            f"{name} is damaged: it does not begin as {claimed.upper()} files do; get a fresh copy.",
        )
    _refuse(name, claimed, known or "no text and of no type that is known here")


def _named(data: bytes) -> str | None:
    """A name for bytes that are no text, from the tables of puremagic."""
    import puremagic

    if marked_encoding(data) or not data:
        return None
    try:
        matches = puremagic.magic_string(data)
    except (puremagic.PureError, ValueError):
        return None
    first = next((match for match in matches if match.name), None)
    return None if first is None else f"“{first.name}”"


def _refuse(name: str, claimed: Format | None, kind: str) -> NoReturn:
    extension = PurePath(name).suffix.lower()
    if claimed is not None:
        raise DocumentError(
            "type_mismatch",
            f"{name} is called {extension} but its content is {kind}; specrag reads {SUPPORTED}.",
        )
    raise DocumentError("unsupported", f"{name} is {kind}; specrag reads only {SUPPORTED}.")
