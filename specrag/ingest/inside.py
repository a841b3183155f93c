"""What a container holds: the two kinds that documents come in, ZIP and OLE, opened as far as their lists.

Told by the members that make a format what it is, never by the file's name; a ZIP that holds none of them is
an archive of files.
"""

import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import IO

from specrag.errors import DocumentError
from specrag.ingest.formats import Format

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OFFICE: dict[str, tuple[Format | None, str]] = {
    "xl/workbook.bin": ("xlsb", "an Excel workbook"),
    "word/": ("docx", "a Word document"),
    "ppt/": ("pptx", "a PowerPoint presentation"),
    "xl/": ("xlsx", "an Excel workbook"),
    "visio/": (None, "a Visio drawing (save it as PDF)"),
}
_MAIN = frozenset(("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml", "xl/workbook.bin"))
_OPEN: dict[bytes, tuple[Format | None, str]] = {
    b"application/epub+zip": ("epub", "an EPUB book"),
    b"application/vnd.oasis.opendocument.spreadsheet": ("ods", "an OpenDocument spreadsheet"),
    b"application/vnd.oasis.opendocument.text": (None, "an OpenDocument text (save it as DOCX)"),
    b"application/vnd.oasis.opendocument.presentation": (
        None,
        "an OpenDocument presentation (save it as PPTX)",
    ),
}
_OTHERS: dict[str, tuple[Format | None, str]] = {
    "META-INF/container.xml": ("epub", "an EPUB book"),
    "content.xml": (None, "an OpenDocument file (save it as DOCX or PDF)"),
    "AndroidManifest.xml": (None, "an Android app"),
    "META-INF/MANIFEST.MF": (None, "a Java program"),
    "Index/Document.iwa": (None, "an Apple iWork document (export it as DOCX or PDF)"),
}
_STREAMS: dict[str, tuple[Format | None, str]] = {
    "EncryptedPackage": (None, ""),
    "Workbook": ("xls", "an Excel workbook"),
    "WordDocument": (None, "a document of Word 97-2003 (save it as DOCX)"),
    "PowerPoint Document": (None, "a presentation of PowerPoint 97-2003 (save it as PPTX)"),
    "__substg1.0_": (None, "an Outlook message (save it as text or PDF)"),
}
_ENTRY = b"PK\x01\x02"
_MOST_MEMBERS = 100_000
_STEP = 1 << 20
_UNREADABLE = (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, LookupError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What lies in a container."""

    format: Format | None
    """The format to read it in, if there is one."""
    words: str
    """What a person calls it."""
    archive: bool = False
    """Whether it is a ZIP of files that have nothing to do with one another."""


def held_by_zip(file: IO[bytes], name: str) -> Held:
    """What a ZIP holds.

    Raises:
        DocumentError: `corrupt`, or `too_large` where the list alone would take all memory.
    """
    with opened_zip(file, name) as archive:
        names = frozenset(archive.namelist())
        kind = _kind(archive, names)
    if kind is None:
        return Held(format=None, words="a ZIP archive", archive=True)
    return Held(format=kind[0], words=kind[1])


def opened_zip(file: IO[bytes], name: str) -> zipfile.ZipFile:
    """A ZIP whose list of members is of a bearable length.

    Raises:
        DocumentError: `corrupt` or `too_large`.
    """
    file.seek(0)
    entries = sum(piece.count(_ENTRY) for piece in iter(lambda: file.read(_STEP), b""))
    if entries > _MOST_MEMBERS:
        raise DocumentError("too_large", f"{name} lists more than {_MOST_MEMBERS} members; split it.")
    file.seek(0)
    try:
        return zipfile.ZipFile(file)
    except _UNREADABLE as error:
        raise DocumentError(
            "corrupt", f"{name} is damaged: its ZIP container cannot be opened; get a fresh copy."
        ) from error


def held_by_ole(data: bytes, name: str) -> Held:
    """What an OLE container holds; its list of streams is anywhere in it.

    Raises:
        DocumentError: `encrypted`.
    """
    for stream, (kind, words) in _STREAMS.items():
        if stream.encode("utf-16-le") in data:
            if stream == "EncryptedPackage":
                raise DocumentError(
                    "encrypted",
                    f"{name} is protected by a password; give it, or save the file without one in Office.",
                )
            return Held(format=kind, words=words)
    if "Book\0".encode("utf-16-le") in data:
        return Held(format="xls", words="an Excel workbook")
    return Held(format=None, words="a file of Office 97-2003")


def _kind(archive: zipfile.ZipFile, names: Collection[str]) -> tuple[Format | None, str] | None:
    if "[Content_Types].xml" in names or any(name in names for name in _MAIN):
        folders = (kind for part, kind in _OFFICE.items() if any(name.startswith(part) for name in names))
        return next(folders, (None, "an Office file of an unknown kind"))
    stated = _OPEN.get(_mimetype(archive, names))
    if stated is not None:
        return stated
    return next((kind for part, kind in _OTHERS.items() if part in names), None)


def _mimetype(archive: zipfile.ZipFile, names: Collection[str]) -> bytes:
    """What the member says that books and OpenDocument files begin with."""
    if "mimetype" not in names:
        return b""
    try:
        with archive.open("mimetype") as member:
            return member.read(100).strip()
    except (*_UNREADABLE, RuntimeError, EOFError, zlib.error):
        return b""
