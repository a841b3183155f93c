"""What people say of a collection, kept in the metadata of the collection itself. Pure.

The fingerprint of the embedder is there too, so whoever changes a label writes all of them back: Chroma
replaces metadata as a whole.
"""

from collections.abc import Mapping
from typing import Any, Final

from specrag.errors import StoreError
from specrag.retrieval import records
from specrag.retrieval.base import CollectionInfo

LABELS: Final = ("title", "description", "owner", "created_at", "used_at")
_PREFIX = "specrag_"
_FINGERPRINT = f"{_PREFIX}fingerprint"


def first(fingerprint: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of a new collection."""
    return changed({_FINGERPRINT: fingerprint}, labels)


def changed(metadata: Mapping[str, Any] | None, labels: Mapping[str, str]) -> dict[str, Any]:
    """The metadata with these labels set; an empty one is removed, one that is not named stays.

    Raises:
        StoreError: there is no label of this name.
    """
    kept = dict(metadata or {})
    for name, value in labels.items():
        if name not in LABELS:
            raise StoreError(f"A collection has no label {name}; it has {', '.join(LABELS)}.")
        kept[_PREFIX + name] = records.storable(value)
    return {key: value for key, value in kept.items() if value != ""}


def of_embedder(metadata: Mapping[str, Any] | None, fingerprint: str) -> dict[str, Any]:
    """The same labels on vectors of another embedder."""
    return {**(metadata or {}), _FINGERPRINT: fingerprint}


def fingerprint_of(metadata: Mapping[str, Any] | None) -> str:
    """The embedder that the vectors come from; empty if nothing says so."""
    return str((metadata or {}).get(_FINGERPRINT, ""))


def described(
    name: str, metadata: Mapping[str, Any] | None, *, documents: int, chunks: int
) -> CollectionInfo:
    """A collection as it is listed."""
    found = {label: str((metadata or {}).get(_PREFIX + label, "")) for label in LABELS}
    return CollectionInfo(
        name=name,
        fingerprint=fingerprint_of(metadata),
        documents=documents,
        chunks=chunks,
        **{**found, "title": found["title"] or name},
    )
