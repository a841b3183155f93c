"""Reads a file that says it is a collection, and believes nothing of it.

The whole file is looked through before the store hears of it (`Package.check`), and read once more to be
stored, so what is refused has touched nothing. A name of a part is compared with the few that may be there,
never used as a path; numbers are read as numbers only.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.library.exchange import (
    MANIFEST,
    SCHEMA,
    Manifest,
    Packed,
    document_part,
    manifest_adapter,
    original_part,
    packed_adapter,
    vectors_part,
)
from specrag.library.exchange_clean import cleaned
from specrag.library.exchange_marks import marks_of
from specrag.library.exchange_zip import MB, CountedZip, corrupt, too_large
from specrag.retrieval.base import Vectors

T = TypeVar("T")
_MANIFEST_BYTES: Final = 1 << 16
"""Of a manifest without its documents; title and description are short."""
_ENTRY_BYTES: Final = 32
"""More than a manifest needs for a document."""
_CHUNK_CHARACTERS: Final = 64
"""Chunks of a long document have more on average, in any script and with any sensible setting."""
_CHUNK_COMMAS: Final = 16
"""More than a chunk has."""
_HEADER_BYTES: Final = 4096
_ID: Final = re.compile(r"[0-9a-f]{16}")
_NORM_ERROR: Final = 1e-3


class Package:
    """A file that says it is a collection, open for reading."""

    def __init__(self, path: Path, settings: Settings) -> None:
        """Open the file and read its manifest.

        Raises:
            DocumentError: it is no collection, or larger than the settings allow.
        """
        self._settings = settings
        self._zip = CountedZip(path, settings)
        try:
            self.manifest = self._manifest()
            self._check_parts()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._zip.close()

    def check(self, fingerprint: str, dimension: int, tell: Callable[[int, int], None]) -> bool:
        """Look through all documents; whether all vectors are those of this embedder and sound.

        Args:
            fingerprint: of the embedder in use.
            dimension: of its vectors.
            tell: called as (documents done, documents in all).

        Raises:
            DocumentError: with the first thing that is wrong.
        """
        sound = self.manifest.embedder == fingerprint
        for done, packed in enumerate(self.documents()):
            tell(done, len(self.manifest.documents))
            sound = sound and self.vectors(packed, dimension) is not None
        return sound

    def documents(self) -> Iterator[Packed]:
        """The documents in order, cleaned; from the beginning, and with the whole allowance of bytes.

        Raises:
            DocumentError: one is not what it must be.
        """
        self._zip.renew()
        for document_id in self.manifest.documents:
            data = self._zip.read(document_part(document_id))
            self._check_marks(data, document_id)
            packed = _validated(packed_adapter(), data, f"the document {document_id}")
            yield cleaned(packed, document_id, self._settings)

    def vectors(self, packed: Packed, dimension: int) -> Vectors | None:
        """The vectors of a document; None if they are not there or cannot be used.

        Raises:
            DocumentError: the part is damaged.
        """
        name, shape = vectors_part(packed.info.id), (len(packed.chunks), dimension)
        if name not in self._zip.names:
            return None
        rows = _rows(self._zip.read(name), shape)
        if rows is None or not np.isfinite(rows).all():
            return None
        norms = np.linalg.norm(rows, axis=1)
        return rows if (np.abs(norms - 1) < _NORM_ERROR).all() else None

    def original(self, document_id: str, into: Path) -> Path | None:
        """Unpack the file that a document was read from to `into`; None if it is not there.

        Raises:
            DocumentError: it is another file than the document's id says, or too large.
        """
        name = original_part(document_id)
        if name not in self._zip.names:
            return None
        digest = hashlib.sha256()
        with into.open("wb") as target:
            for block in self._zip.blocks(name, self._settings.max_file_mb * MB):
                digest.update(block)
                target.write(block)
        if digest.hexdigest()[: len(document_id)] != document_id:
            raise corrupt(f"the original of the document {document_id} is another file")
        return into

    def _manifest(self) -> Manifest:
        if MANIFEST not in self._zip.names:
            raise DocumentError(
                "not_a_collection", "The file is no collection of specrag; choose one that was exported."
            )
        most = self._settings.max_archive_files
        refusal = too_large(f"a list of more than {most:,} documents", "MAX_ARCHIVE_FILES")
        data = self._zip.read(MANIFEST, _MANIFEST_BYTES + _ENTRY_BYTES * most, refusal)
        manifest = _validated(manifest_adapter(), data, "the manifest")
        if manifest.schema != SCHEMA:
            shown = re.sub(r"[^\x20-\x7e]", "?", manifest.schema[:40])
            raise DocumentError(
                "not_a_collection", f"The file has the schema “{shown}”; {SCHEMA} can be imported."
            )
        return manifest

    def _check_marks(self, data: bytes, document_id: str) -> None:
        """Refuse what would take much more memory to parse than a document that can be."""
        most = self._settings.max_pages + self._settings.max_characters // _CHUNK_CHARACTERS
        marks = marks_of(data)
        if marks.lists > 1:
            raise corrupt(f"the document {document_id} does not follow {SCHEMA} (a list too many)")
        if marks.objects > most + 2 or marks.commas > _CHUNK_COMMAS * (most + 1):
            raise too_large(f"a document of more than {most:,} chunks", "MAX_CHARACTERS")

    def _check_parts(self) -> None:
        """Every part is one of those that may be there, and each is there once."""
        ids, limit = self.manifest.documents, self._settings.max_archive_files
        if len(ids) > limit:
            raise too_large(f"more than {limit:,} documents", "MAX_ARCHIVE_FILES")
        if len(set(ids)) != len(ids) or not all(_ID.fullmatch(item) for item in ids):
            raise corrupt("the list of its documents is wrong")
        parts = set(self._zip.names)
        needed = {MANIFEST, *(document_part(item) for item in ids)}
        allowed = {part(item) for part in (vectors_part, original_part) for item in ids} | needed
        if not needed <= parts:
            raise corrupt("a document is missing in it")
        if not parts <= allowed or len(parts) != len(self._zip.names):
            raise corrupt("there is something in it that does not belong there")


def _rows(data: bytes, shape: tuple[int, int]) -> Vectors | None:
    """An array of exactly this shape. Read by hand, so that nothing is allocated on the word of a header."""
    head: IO[bytes] = io.BytesIO(data[:_HEADER_BYTES])
    try:
        if np.lib.format.read_magic(head) != (1, 0):
            return None
        found, fortran, kind = np.lib.format.read_array_header_1_0(head, max_header_size=_HEADER_BYTES)
    except ValueError:
        return None
    raw = memoryview(data)[head.tell() :]
    if found != shape or fortran or kind != np.dtype("<f4") or len(raw) != shape[0] * shape[1] * 4:
        return None
    return np.frombuffer(raw, dtype="<f4").reshape(shape).astype(np.float32)


def _validated(adapter: TypeAdapter[T], data: bytes, what: str) -> T:
    """A value of the adapter's kind; types are not guessed."""
    try:
        return adapter.validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = re.sub(r"[^\x20-\x7e]", "?", ".".join(str(part) for part in first["loc"]))[:60]
        wrong = f"{where}: {first['msg'][:80]}" if where else "no such JSON"
        raise corrupt(f"{what} does not follow {SCHEMA} ({wrong})") from error
