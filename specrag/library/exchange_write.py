"""Writes a collection to one file, a document at a time, so that memory does not grow with it.

The file has its name only when all of it is there. A collection that changes while it is written is refused:
chunks of one edition with vectors of another would be a file that looks whole and is not.
"""

import re
import shutil
import uuid
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from specrag import __version__
from specrag.errors import StoreError, UsageError
from specrag.library.exchange import (
    MANIFEST,
    SCHEMA,
    SUFFIX,
    Manifest,
    Packed,
    document_part,
    manifest_adapter,
    original_part,
    packed_adapter,
    vectors_part,
)
from specrag.retrieval.base import CollectionInfo, VectorStore
from specrag.types import Chunk, DocumentInfo

if TYPE_CHECKING:
    from specrag.ingest.originals import Originals

_BATCH: Final = 512
_BLOCK: Final = 1 << 20
_NAME_LENGTH: Final = 60


def file_name(title: str) -> str:
    """How the file of a collection is called: its title, as far as file systems take it."""
    kept = re.sub(r"[^\w.\- ]+", " ", title).strip(" .")
    return (" ".join(kept.split())[:_NAME_LENGTH].strip(" .") or "collection") + SUFFIX


def write(
    store: VectorStore,
    name: str,
    target: Path,
    *,
    title: str,
    originals: "Originals | None" = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Path:
    """Write a collection; returns where. `originals` go along if they are given.

    Args:
        store: where the collection is.
        name: of the collection in the store.
        target: the file, or a folder for one that is called as the collection.
        title: how people call the collection.
        originals: where the files are that the documents were read from.
        progress: called as (documents done, documents in all).

    Raises:
        StoreError: there is no such collection, or it changed meanwhile.
        UsageError: the file cannot be written.
    """
    path = target / file_name(title) if target.is_dir() else target
    unfinished = path.with_name(f".{uuid.uuid4().hex[:12]}.part")
    try:
        with zipfile.ZipFile(unfinished, "x", zipfile.ZIP_DEFLATED) as archive:
            _Writing(store, name, archive, originals).all(title, progress)
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(
            f"The collection cannot be written to {path} ({error.strerror or error}); choose another place."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path


class _Writing:
    """One collection on its way into one archive."""

    def __init__(
        self, store: VectorStore, name: str, archive: zipfile.ZipFile, originals: "Originals | None"
    ) -> None:
        self._store = store
        self._name = name
        self._archive = archive
        self._originals = originals

    def all(self, title: str, progress: Callable[[int, int], None]) -> None:
        before = self._store.collection(self._name)
        editions = self._store.editions(self._name)
        documents = sorted(self._store.documents(self._name), key=lambda document: document.id)
        self._put(MANIFEST, manifest_adapter().dump_json(_manifest(before, title, documents), indent=2))
        for done, document in enumerate(documents):
            progress(done, len(documents))
            self._document(document)
        progress(len(documents), len(documents))
        after = self._store.editions(self._name)
        same = all(after.get(item.id) == editions.get(item.id) for item in documents)
        if not same or self._store.collection(self._name).fingerprint != before.fingerprint:
            raise StoreError(_CHANGED)

    def _document(self, info: DocumentInfo) -> None:
        chunks = self._store.chunks(self._name, info.id)
        if len(chunks) != info.chunks:
            raise StoreError(_CHANGED)
        packed = Packed(info=info, chunks=tuple(chunks))
        self._put(document_part(info.id), packed_adapter().dump_json(packed))
        self._vectors(info.id, chunks)
        original = self._originals.path(self._name, info.id) if self._originals is not None else None
        if original is not None:
            with original.open("rb") as source, self._part(original_part(info.id)) as part:
                shutil.copyfileobj(source, part, _BLOCK)

    def _vectors(self, document_id: str, chunks: Sequence[Chunk]) -> None:
        """A `.npy` in portions: its header wants the shape first."""
        ids = [chunk.id for chunk in chunks]
        with self._part(vectors_part(document_id)) as part:
            for start in range(0, len(ids), _BATCH):
                rows = np.ascontiguousarray(
                    self._store.vectors(self._name, ids[start : start + _BATCH]), dtype="<f4"
                )
                if start == 0:
                    header = {"descr": "<f4", "fortran_order": False, "shape": (len(ids), rows.shape[1])}
                    np.lib.format.write_array_header_1_0(part, header)
                part.write(rows.tobytes())

    def _put(self, name: str, data: bytes) -> None:
        with self._part(name) as part:
            part.write(data)

    def _part(self, name: str) -> IO[bytes]:
        part = zipfile.ZipInfo(name)  # dated 1980, as everything in the file
        part.compress_type = zipfile.ZIP_DEFLATED
        return self._archive.open(part, "w", force_zip64=True)


_CHANGED: Final = "The collection changed while it was written to the file; export it again."


def _manifest(info: CollectionInfo, title: str, documents: Sequence[DocumentInfo]) -> Manifest:
    return Manifest(
        schema=SCHEMA,
        title=title,
        description=info.description,
        embedder=info.fingerprint,
        chunkers=tuple(sorted({document.chunker for document in documents})),
        versions={"specrag": __version__},
        documents=tuple(document.id for document in documents),
    )
