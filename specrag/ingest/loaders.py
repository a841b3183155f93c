"""A file becomes a document, or one sentence that says why not.

What a file is follows from its content (`sniff`), how its text is found from its reader (`readers`); this
module owns the limits, the identity and the promise that a document always has text. The identity is the hash
of the bytes: the same file is the same document whatever it is called.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePath

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.ingest.formats import SUFFIXES, Format
from specrag.ingest.readers.content import MEGABYTE, Content, Limits, OnPage, Reader, Source, unheard
from specrag.ingest.readers.data import read_json, read_json_lines
from specrag.ingest.readers.delimited import read_delimited
from specrag.ingest.readers.docx import read_docx
from specrag.ingest.readers.epub import read_epub
from specrag.ingest.readers.html import read_html
from specrag.ingest.readers.markdown import read_markdown
from specrag.ingest.readers.office import locked, unlocked
from specrag.ingest.readers.pdf import read_pdf
from specrag.ingest.readers.plain import read_code, read_text
from specrag.ingest.readers.pptx import read_pptx
from specrag.ingest.readers.sheets import read_sheets
from specrag.ingest.sniff import identify
from specrag.ingest.text import clean_name
from specrag.types import Document

__all__ = ["SUFFIXES", "check_size", "document_id", "load", "read"]

_ID_LENGTH = 16
_TITLE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class _Kind:
    reader: Reader
    media_type: str


def _read_pdf(source: Source) -> Content:
    return read_pdf(
        source.data,
        source.name,
        max_pages=source.limits.pages,
        max_characters=source.limits.characters,
        password=source.password,
        on_page=source.on_page,
        ocr=source.ocr,
    )


_OOXML = "application/vnd.openxmlformats-officedocument"
_KINDS: dict[Format, _Kind] = {
    "pdf": _Kind(_read_pdf, "application/pdf"),
    "docx": _Kind(read_docx, f"{_OOXML}.wordprocessingml.document"),
    "pptx": _Kind(read_pptx, f"{_OOXML}.presentationml.presentation"),
    "xlsx": _Kind(read_sheets, f"{_OOXML}.spreadsheetml.sheet"),
    "xlsb": _Kind(read_sheets, "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    "xls": _Kind(read_sheets, "application/vnd.ms-excel"),
    "ods": _Kind(read_sheets, "application/vnd.oasis.opendocument.spreadsheet"),
    "csv": _Kind(read_delimited, "text/csv"),
    "html": _Kind(read_html, "text/html"),
    "markdown": _Kind(read_markdown, "text/markdown"),
    "epub": _Kind(read_epub, "application/epub+zip"),
    "json": _Kind(read_json, "application/json"),
    "jsonl": _Kind(read_json_lines, "application/jsonl"),
    "text": _Kind(read_text, "text/plain"),
    "code": _Kind(read_code, "text/plain"),
}
"""Choose one: how each format is read, and what the Web calls it."""


def read(
    path: Path, name: str, settings: Settings, *, password: str | None = None, on_page: OnPage | None = None
) -> Document:
    """Read one file.

    Args:
        path: where the bytes are now.
        name: what the visitor calls the file; shown, and used for its extension.
        settings: the limits.
        password: opens an encrypted PDF or Office file.
        on_page: called as `(done, total)` while pages are read.

    Raises:
        DocumentError: with a stable reason and a sentence that names the file and the remedy.
    """
    shown = clean_name(name)
    data = load(path, shown, settings)
    opened = unlocked(data, shown, password) if locked(data) else data
    kind = _KINDS[identify(opened, shown)]
    source = Source(
        data=opened,
        name=shown,
        limits=Limits.of(settings),
        password=password,
        ocr=settings.ocr,
        on_page=on_page or unheard,
    )
    content = kind.reader(source)
    if not any(page.text.strip() for page in content.pages):
        raise DocumentError("no_text", f"{shown} holds no text to index; check that it is the right file.")
    return Document(
        id=document_id(data),
        title=(content.title or "")[:_TITLE_LENGTH] or PurePath(shown).stem or shown,
        source=shown,
        pages=content.pages,
        published_at=content.published_at,
        encoding=content.encoding,
        media_type=kind.media_type,
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
    if size > settings.max_file_mb * MEGABYTE:
        raise DocumentError(
            "too_large",
            f"{shown} has {size / MEGABYTE:.1f} MB, more than the {settings.max_file_mb} MB that"
            " SPECRAG_MAX_FILE_MB allows; split it.",
        )


def document_id(data: bytes) -> str:
    """The identity of a file's content."""
    return hashlib.sha256(data).hexdigest()[:_ID_LENGTH]
