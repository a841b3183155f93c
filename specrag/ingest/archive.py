"""A ZIP of files taken apart: each member a file of its own, whatever the archive says about names and sizes.

Nothing of a member's name becomes a path: files are written under numbers, and the name is only shown. Bytes
are counted as they are unpacked. What nobody means to bring (folders, links, hidden files) is left out, and
an archive inside the archive stays one file, so that nothing nests.
"""

import re
import stat
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.ingest.inside import ZIP, held_by_zip, opened_zip
from specrag.ingest.readers.container import DAMAGED, open_member, pieces
from specrag.ingest.readers.content import MEGABYTE
from specrag.ingest.text import clean_name

_MADE_BY_SYSTEMS = frozenset(("__macosx", "thumbs.db", "desktop.ini"))
_UTF8 = 0x800


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of an archive, unpacked."""

    path: Path
    name: str
    """`archive.zip/inner/file.pdf`, clean; no path of this machine."""


def is_archive(path: Path, name: str) -> bool:
    """Whether a file is a ZIP of files, and not a document that happens to be packed as one.

    A file that begins as a ZIP, cannot be opened and is called `.zip` counts as one.
    """
    try:
        with path.open("rb") as file:
            return file.read(4) in ZIP and held_by_zip(file, name).archive
    except DocumentError:
        return clean_name(name).lower().endswith(".zip")
    except OSError:
        return False


def unpack(path: Path, name: str, settings: Settings, into: Path) -> list[Member]:
    """Write the files of an archive to the folder `into`, in the archive's order.

    Raises:
        DocumentError: `encrypted`, `corrupt`, `too_large`, or `no_files` if there is nothing to read in it.
    """
    shown = clean_name(name)
    with path.open("rb") as file, opened_zip(file, shown) as archive:
        items = [item for item in archive.infolist() if _wanted(item)]
        _check(items, shown, settings)
        members: list[Member] = []
        names: Counter[str] = Counter()
        left = settings.max_unpacked_mb * MEGABYTE
        for number, item in enumerate(items, start=1):
            target = into / f"{number:05d}"
            left -= _write(archive, item, target, left=left, shown=shown, settings=settings)
            called = clean_name(f"{shown}/{_name(item)}")
            names[called] += 1
            members.append(Member(path=target, name=_numbered(called, names[called])))
    return members


def _check(items: list[zipfile.ZipInfo], shown: str, settings: Settings) -> None:
    if not items:
        raise DocumentError("no_files", f"{shown} is an archive without any file to read.")
    if len(items) > settings.max_archive_files:
        raise DocumentError(
            "too_large",
            f"{shown} holds {len(items)} files, more than the {settings.max_archive_files} that"
            " SPECRAG_MAX_ARCHIVE_FILES allows; split it.",
        )
    if any(item.flag_bits & 1 for item in items):
        raise DocumentError(
            "encrypted", f"{shown} is protected by a password; unpack it and add the files themselves."
        )


def _write(
    archive: zipfile.ZipFile,
    item: zipfile.ZipInfo,
    target: Path,
    *,
    left: int,
    shown: str,
    settings: Settings,
) -> int:
    """Unpack one member and return its size in bytes."""
    size = 0
    try:
        with open_member(archive, item) as member, target.open("xb") as file:
            for piece in pieces(member):
                size += len(piece)
                if size > left:
                    raise DocumentError(
                        "too_large",
                        f"{shown} unpacks to more than the {settings.max_unpacked_mb} MB that"
                        " SPECRAG_MAX_UNPACKED_MB allows; split it.",
                    )
                file.write(piece)
    except DAMAGED as error:
        raise DocumentError("corrupt", f"{shown} is damaged: one of its files cannot be unpacked.") from error
    return size


def _wanted(item: zipfile.ZipInfo) -> bool:
    parts = _parts(_name(item))
    hidden = any(part.startswith(".") or part.lower() in _MADE_BY_SYSTEMS for part in parts)
    mode = item.external_attr >> 16
    return bool(parts) and not item.is_dir() and not hidden and not stat.S_ISLNK(mode)


def _parts(name: str) -> list[str]:
    parts: Iterable[str] = re.split(r"[/\\]", name)
    return [part for part in parts if part.strip(". ") != ""]


def _name(item: zipfile.ZipInfo) -> str:
    """The name as its author wrote it: many programs write UTF-8 without saying so."""
    if item.flag_bits & _UTF8:
        return item.filename
    try:
        return item.filename.encode("cp437").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return item.filename


def _numbered(name: str, time: int) -> str:
    """A second file of the same name is told apart, as one would replace the other otherwise."""
    return name if time == 1 else str(PurePosixPath(name).with_stem(f"{PurePosixPath(name).stem} ({time})"))
