"""What a file is, told by its content first and its extension second.

An extension is a claim, the first bytes are evidence. Containers (ZIP, OLE) are opened far enough to know
what they hold, so that a workbook is refused by its name and a DOCX called `.doc` is read. Nothing is read as
text because nothing better was found: bytes that are not text are refused.
"""

import io
import re
import zipfile
from pathlib import PurePath
from typing import Literal, NoReturn, TypeAlias

from specrag.errors import DocumentError
from specrag.ingest.text import decode, looks_binary, marked_encoding

Format: TypeAlias = Literal["pdf", "docx", "html", "markdown", "text", "code"]

SUFFIXES = (".pdf", ".docx", ".html", ".md", ".txt")
"""What a person is told to bring; more spellings, and code and data as text, are read as well."""
SUPPORTED = "PDF, DOCX, HTML, Markdown and plain text"

_BY_EXTENSION: dict[str, Format] = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
}
_BEFORE_HTML = re.compile(r"\s*(?:<\?xml[^>]*>)?", re.IGNORECASE)
_HTML = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_COMMENT = re.compile(r"\s*<!--")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIPPED = {
    "xl/": "an Excel workbook",
    "ppt/": "a PowerPoint presentation",
    "META-INF/container.xml": "an EPUB book",
    "content.xml": "an OpenDocument file",
    "AndroidManifest.xml": "an Android app",
}
# Beginnings that puremagic is unsure of, or that would pass for text.
_MAGIC = (
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
)


def identify(data: bytes, name: str) -> Format:
    """The format to read `data` in.

    Raises:
        DocumentError: `unsupported`, `type_mismatch`, `encrypted` or `corrupt`, and what the file really is.
    """
    claimed = _BY_EXTENSION.get(PurePath(name).suffix.lower())
    start = data[:1024]
    if start.lstrip().startswith(b"%PDF-") or (claimed == "pdf" and b"%PDF-" in start):
        return "pdf"
    if start.startswith(b"PK\x03\x04"):
        return _zipped(data, name, claimed)
    if start.startswith(_OLE):
        _refuse_ole(data, name, claimed)
    for magic, kind in _MAGIC:
        if start.startswith(magic) and (kind != "a Windows program" or looks_binary(data)):
            _refuse(name, claimed, kind)
    decoded = decode(data)
    if decoded is None:
        known = _named(data)
        if known is None and claimed in ("pdf", "docx"):
            raise DocumentError(
                "corrupt", f"{name} is damaged: it does not begin as {claimed.upper()} files do."
            )
        _refuse(name, claimed, known or "no text and of no type that is known here")
    return _textual(decoded[0][:4096], name, claimed)


def _textual(start: str, name: str, claimed: Format | None) -> Format:
    if claimed == "markdown":
        return claimed
    if claimed == "html" or _begins_as_html(start):
        return "html"
    if claimed in ("pdf", "docx"):
        _refuse(name, claimed, "plain text")
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


def _zipped(data: bytes, name: str, claimed: Format | None) -> Format:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise DocumentError("corrupt", f"{name} is damaged: its ZIP container cannot be opened.") from error
    if any(member.startswith("word/") for member in members):
        return "docx"
    kinds = (kind for part, kind in _ZIPPED.items() if any(member.startswith(part) for member in members))
    return _refuse(name, claimed, next(kinds, "a ZIP archive"))


def _refuse_ole(data: bytes, name: str, claimed: Format | None) -> NoReturn:
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise DocumentError(
            "encrypted",
            f"{name} is protected by a password; save it without one in Office and upload it again.",
        )
    _refuse(name, claimed, "a file of Office 97-2003")


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
