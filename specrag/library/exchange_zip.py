"""A ZIP archive that nobody vouches for: sizes are counted while unpacking, what is wrong is a sentence."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from specrag.config import Settings
from specrag.errors import DocumentError

MB: Final = 1 << 20
_BLOCK: Final = 1 << 20
_ENTRY_BYTES: Final = 256
"""More than the directory of the archive needs for one part."""
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LOCATOR: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20
_LONG_END_BYTES: Final = 56
_LONGEST_END: Final = 65_535 + _END_BYTES + _LOCATOR_BYTES + _LONG_END_BYTES
_ELSEWHERE: Final = 0xFFFFFFFF


class CountedZip:
    """The parts of an archive under one allowance of bytes."""

    def __init__(self, path: Path, settings: Settings) -> None:
        """Open an archive.

        Raises:
            DocumentError: it cannot be read, is no archive, or is larger than the settings allow.
        """
        self._settings = settings
        self.renew()
        with as_sentences():
            self._file = path.open("rb")
            try:
                self._check_directory()
                self._archive = zipfile.ZipFile(self._file)
            except BaseException:
                self._file.close()
                raise
        self.names = tuple(self._archive.namelist())

    def close(self) -> None:
        """Let go of the file."""
        self._archive.close()
        self._file.close()

    def renew(self) -> None:
        """Allow as many bytes as the settings do, from now on."""
        self._left = self._settings.max_unpacked_mb * MB

    def read(self, name: str, limit: int | None = None, refusal: DocumentError | None = None) -> bytes:
        """A part in memory, of at most `limit` bytes.

        Raises:
            DocumentError: it is damaged, or longer, of which `refusal` says what it means.
        """
        data = bytearray()
        for block in self.blocks(name, limit, refusal):
            data += block
        return bytes(data)

    def blocks(
        self, name: str, limit: int | None = None, refusal: DocumentError | None = None
    ) -> Iterator[bytes]:
        """A part in blocks, of at most `limit` bytes together.

        Raises:
            DocumentError: as `read`.
        """
        with as_sentences():
            info = self._archive.getinfo(name)
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise corrupt("a part of it is encrypted or packed in an unusual way")
            read = 0
            with self._archive.open(info) as part:
                while block := part.read(_BLOCK):
                    read += len(block)
                    self._take(len(block))
                    if limit is not None and read > limit:
                        raise refusal or too_large(f"a part of more than {limit / MB:,.0f} MB", "MAX_FILE_MB")
                    yield block

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise too_large(f"more than {self._settings.max_unpacked_mb:,} MB unpacked", "MAX_UNPACKED_MB")

    def _check_directory(self) -> None:
        """Refuse what is too large before the archive's directory is read into memory."""
        size = self._file.seek(0, io.SEEK_END)
        if size > self._left:
            raise too_large(f"more than {self._settings.max_unpacked_mb:,} MB", "MAX_UNPACKED_MB")
        self._file.seek(max(0, size - _LONGEST_END))
        limit = (3 * self._settings.max_archive_files + 1) * _ENTRY_BYTES
        if _directory_bytes(self._file.read()) > limit:
            raise too_large(f"more than {self._settings.max_archive_files:,} documents", "MAX_ARCHIVE_FILES")


def _directory_bytes(tail: bytes) -> int:
    """How large the directory of an archive says to be, in the short or the long record at its end."""
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        raise zipfile.BadZipFile
    (size,) = struct.unpack_from("<L", tail, at + 12)
    long_record = at - _LOCATOR_BYTES - _LONG_END_BYTES
    if long_record >= 0 and tail[at - _LOCATOR_BYTES : at].startswith(_LOCATOR):
        (long_size,) = struct.unpack_from("<Q", tail, long_record + 40)
        return max(int(long_size), 0 if size == _ELSEWHERE else int(size))
    return int(size)


@contextmanager
def as_sentences() -> Iterator[None]:
    """What goes wrong in the archive itself, as one sentence."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        struct.error,
        UnicodeError,
    ) as error:
        raise corrupt("it is damaged, cut short or no collection") from error
    except OSError as error:
        raise DocumentError(
            "unreadable", f"The file cannot be read ({error.strerror or error}); choose another one."
        ) from error


def corrupt(what: str) -> DocumentError:
    """The refusal of a file that is not what it says."""
    return DocumentError(
        "corrupt", f"The file cannot be imported, because {what}; export the collection anew."
    )


def too_large(what: str, setting: str) -> DocumentError:
    """The refusal of a file that is larger than the operator allows."""
    return DocumentError("too_large", f"The file has {what}; set SPECRAG_{setting} higher to import it.")
