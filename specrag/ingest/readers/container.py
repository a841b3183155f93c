"""ZIP containers of Office files and books, packed anew so that libraries meet nothing that lies.

What a ZIP says of its sizes is not believed: members are unpacked here, counted, and handed on in a plain
container without compression, doubled names or overlaps. Pictures are emptied, as nothing here looks at them.
Declared entities are refused, because no program writes them and they can grow without end.
"""

import copy
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO

from specrag.errors import DocumentError
from specrag.ingest.readers.content import MEGABYTE, Source

_PICTURES = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"RIFF", b"\x01\0\0\0",
    b"\xd7\xcd\xc6\x9a", b"\0\0\0\x18ftyp", b"\0\0\0\x1cftyp", b"\0\0\0 ftyp", b"ID3", b"OTTO", b"wOFF",
    b"\0\x01\0\0\0",
)  # fmt: skip
"""How pictures, films, sounds and fonts begin, and no XML does."""
_ENTITY = tuple("<!ENTITY".encode(codec) for codec in ("ascii", "utf-16-le", "utf-16-be"))
_ENTRY = b"PK\x01\x02"
_MOST_MEMBERS = 20_000
_STEP = 1 << 18
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    LookupError,
    OverflowError,
)
"""What zipfile raises when a container is cut off, packed in an unknown way, locked or not what it says."""


def packed(parts: Mapping[str, bytes]) -> bytes:
    """Members in a plain new ZIP, which states what is true."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def members(source: Source) -> dict[str, bytes]:
    """The content of each member by its name; of pictures, nothing.

    Raises:
        DocumentError: `corrupt`, `encrypted` or `too_large`.
    """
    if source.data.count(_ENTRY) > _MOST_MEMBERS:
        raise DocumentError(
            "too_large", f"{source.name} holds more than {_MOST_MEMBERS} parts; save it anew or split it."
        )
    found: dict[str, bytes] = {}
    left = source.limits.unpacked
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            for item in archive.infolist():
                if item.flag_bits & 1:
                    raise DocumentError(
                        "encrypted", f"{source.name} is protected by a password; save it without one."
                    )
                if item.is_dir():
                    continue
                content = _content(archive, item, source, left)
                left -= len(content)
                _refuse_entities(content, source)
                found[item.filename] = content
    except DAMAGED as error:
        raise DocumentError(
            "corrupt", f"{source.name} is damaged: its ZIP container cannot be unpacked."
        ) from error
    return found


def _refuse_entities(content: bytes, source: Source) -> None:
    if any(word in content for word in _ENTITY):
        raise DocumentError(
            "corrupt", f"{source.name} declares XML entities, which may grow without end; save it anew."
        )


def open_member(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> IO[bytes]:
    """A member whose stated size is not believed: reading goes on to the true end of its data."""
    unbounded = copy.copy(item)
    unbounded.file_size = sys.maxsize
    return archive.open(unbounded)


def pieces(member: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a member in steps of bounded size."""
    while piece := member.read(_STEP):
        yield piece


def _content(archive: zipfile.ZipFile, item: zipfile.ZipInfo, source: Source, left: int) -> bytes:
    parts: list[bytes] = []
    with open_member(archive, item) as member:
        for piece in pieces(member):
            if not parts and piece.startswith(_PICTURES):
                return b""
            left -= len(piece)
            if left < 0:
                raise DocumentError(
                    "too_large",
                    f"{source.name} unpacks to more than the {source.limits.unpacked // MEGABYTE} MB that"
                    " SPECRAG_MAX_UNPACKED_MB allows; split it.",
                )
            parts.append(piece)
    return b"".join(parts)
