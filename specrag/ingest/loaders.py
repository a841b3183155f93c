"""A file becomes a document, or one sentence that says why not.

What a file is follows from its content (`sniff`), how its text is found from its reader (`readers`); this
module owns the limits, the identity and the promise that a document always has text. The identity is the hash
of the bytes: the same file is the same document whatever it is called.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Literal, assert_never

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.ingest.readers.content import Content
from specrag.ingest.readers.docx import read_docx
from specrag.ingest.readers.html import read_html
from specrag.ingest.readers.pdf import read_pdf
from specrag.ingest.readers.plain import read_code, read_markdown, read_text
from specrag.ingest.sniff import SUFFIXES, Format, identify
from specrag.ingest.text import clean_name
from specrag.types import Document

_MEDIA_TYPES: dict[Format, str] = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "markdown": "text/markdown",
    "text": "text/plain",
    "code": "text/plain",
}
_MEGABYTE = 1_000_000
_ID_LENGTH = 16
_XML_FACTOR = 2

__all__ = ["SUFFIXES", "check_size", "document_id", "load", "read"]

OnPage = Callable[[int, int], None]


def read(
    path: Path, name: str, settings: Settings, *, password: str | None = None, on_page: OnPage | None = None
) -> Document:
    """Read one file.

    Args:
        path: where the bytes are now.
        name: what the visitor calls the file; shown, and used for its extension.
        settings: the limits.
        password: opens an encrypted PDF.
        on_page: called as `(done, total)` while pages are read.

    Raises:
        DocumentError: with a stable reason and a sentence that names the file and the remedy.
    """
    shown = clean_name(name)
    data = load(path, shown, settings)
    kind = identify(data, shown)
    if kind == "pdf":
        limits = {"max_pages": settings.max_pages, "max_characters": settings.max_characters}
        content = read_pdf(data, shown, **limits, password=password, on_page=on_page or _ignore)
    else:
        content = _content(kind, data, shown, settings)
    characters = sum(len(page.text) for page in content.pages)
    if characters == 0:
        raise DocumentError("no_text", f"{shown} holds no text to index; check that it is the right file.")
    if characters > settings.max_characters:
        raise DocumentError(
            "too_large",
            f"{shown} has {characters} characters, more than the {settings.max_characters} that"
            " SPECRAG_MAX_CHARACTERS allows; split it.",
        )
    return Document(
        id=document_id(data),
        title=(content.title or "")[:300] or PurePath(shown).stem or shown,
        source=shown,
        pages=content.pages,
        published_at=content.published_at,
        encoding=content.encoding,
        media_type=_MEDIA_TYPES[kind],
    )


def load(path: Path, shown: str, settings: Settings) -> bytes:
    """The bytes of a file that is neither empty nor too large; its size is looked at before its content."""
    try:
        check_size(path.stat().st_size, shown, settings)
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise DocumentError(
            "unreadable", f"{shown} cannot be read ({why}); check that it is a file."
        ) from error


def check_size(size: int, shown: str, settings: Settings) -> None:
    """Refuse files that are empty or above the limit."""
    if size == 0:
        raise DocumentError("empty_file", f"{shown} is empty (0 bytes); upload the file again.")
    if size > settings.max_file_mb * _MEGABYTE:
        raise DocumentError(
            "too_large",
            f"{shown} has {size / _MEGABYTE:.1f} MB, more than the {settings.max_file_mb} MB that"
            " SPECRAG_MAX_FILE_MB allows; split it.",
        )


def document_id(data: bytes) -> str:
    """The identity of a file's content."""
    return hashlib.sha256(data).hexdigest()[:_ID_LENGTH]


def _content(
    kind: Literal["docx", "html", "markdown", "text", "code"], data: bytes, shown: str, settings: Settings
) -> Content:
    match kind:
        case "docx":
            return read_docx(data, shown, max_xml_mb=settings.max_file_mb * _XML_FACTOR)
        case "html":
            return read_html(data, shown)
        case "markdown":
            return read_markdown(data, shown)
        case "text":
            return read_text(data, shown)
        case "code":
            return read_code(data, shown)
        case _:
            assert_never(kind)


def _ignore(_done: int, _total: int) -> None:
    pass
