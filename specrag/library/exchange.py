"""A collection as one file: `specrag.collection/1`, a ZIP archive of plain parts.

    manifest.json         schema, title, description, embedder, versions, the ids of the documents
    documents/ID.json     what the catalogue knows of a document, and its chunks
    vectors/ID.npy        a row of float32 for each chunk, of length one
    originals/ID          the file that the document was read from, if it was kept and is wanted

Every part is named after the id of its document and nothing else, so no name of a visitor is ever a path.
Nothing in the file depends on when or where it was written: equal collections give equal files.
Whoever reads a list stops at its first wrong item: a complaint costs a hundred times what the item does.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final

from pydantic import FailFast, TypeAdapter

from specrag.types import Chunk, DocumentInfo

SCHEMA: Final = "specrag.collection/1"
SUFFIX: Final = ".specrag.zip"
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the file says of the collection."""

    schema: str
    title: str
    description: str
    embedder: str
    """Fingerprint of what the vectors come from."""
    chunkers: Annotated[tuple[str, ...], FailFast()]
    """Fingerprints of the ways in which the documents were cut."""
    versions: dict[str, str]
    documents: Annotated[tuple[str, ...], FailFast()]
    """Ids, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A document with its chunks."""

    info: DocumentInfo
    chunks: Annotated[tuple[Chunk, ...], FailFast()]


def document_part(document_id: str) -> str:
    """Where a document is in the file."""
    return f"documents/{document_id}.json"


def vectors_part(document_id: str) -> str:
    """Where its vectors are."""
    return f"vectors/{document_id}.npy"


def original_part(document_id: str) -> str:
    """Where the file is that it was read from."""
    return f"originals/{document_id}"


@cache
def manifest_adapter() -> TypeAdapter[Manifest]:
    """Writes a manifest, and reads one strictly."""
    return TypeAdapter(Manifest)


@cache
def packed_adapter() -> TypeAdapter[Packed]:
    """Writes a document, and reads one strictly."""
    return TypeAdapter(Packed)
