"""The collections of a store by name: which there are, what they are called, and whose vectors they hold.

While a collection is switched to another embedder it has a provisional name for a moment, and whoever asks by
name must not notice; so every way to a collection goes through here.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from specrag.errors import StoreError
from specrag.retrieval import labels
from specrag.retrieval.base import CollectionInfo
from specrag.retrieval.catalogue import Catalogue
from specrag.retrieval.client import find, make, translated
from specrag.retrieval.naming import NEXT, check_name, is_ours

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_TRIES = 4
T = TypeVar("T")


class Directory:
    """Finds, makes and labels collections."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.labelling = threading.Lock()
        """Held while labels are written, and while they are copied to a collection that takes a name over."""
        self._embedder_of: dict[str, str] = {}
        """The embedder that this process writes vectors of, by collection."""

    def names(self) -> tuple[str, ...]:
        """The names of the user's collections, in order."""
        return tuple(sorted(self._listed()))

    def infos(self, catalogue: Catalogue, counted: Iterable[str] | None) -> list[CollectionInfo]:
        """All of the user's collections in order of their names, with the sizes of all or of `counted`."""
        listed = self._listed()
        sizes = catalogue.sizes() if counted is None else {name: catalogue.size(name) for name in counted}
        empty = (0, 0)
        return [
            labels.described(
                name,
                found.metadata,
                documents=sizes.get(name, empty)[0],
                chunks=sizes.get(name, empty)[1],
            )
            for name, found in sorted(listed.items())
        ]

    def info(self, name: str, catalogue: Catalogue) -> CollectionInfo:
        """One collection."""
        found = self.open(name)
        documents, chunks = catalogue.size(name)
        return labels.described(name, found.metadata, documents=documents, chunks=chunks)

    def open(self, name: str) -> "Collection":
        """A collection.

        Raises:
            StoreError: there is none of this name.
        """
        with translated(f"The collection {name} cannot be opened"):
            found = None if is_ours(name) else self._find(check_name(name))
        if found is None:
            raise StoreError(
                f"There is no collection {name}; add a document to it first, or choose another one."
            )
        return found

    def ensure(self, name: str, fingerprint: str, given: Mapping[str, str]) -> None:
        """Make a collection with these labels, or check that it is of this embedder and give them to it."""
        check_name(name)
        found = self._find(name) or make(self._client, name, labels.first(fingerprint, given))
        _compare(name, found, fingerprint)
        self._embedder_of[name] = fingerprint
        if given:
            self.label(name, given)

    def label(self, name: str, given: Mapping[str, str]) -> None:
        """Set labels, and read back that they are there.

        Raises:
            StoreError: there is no such collection or label, or other processes set labels all the time.
        """
        with self.labelling:
            for _ in range(_TRIES):
                if self._labelled(name, given):
                    return
        raise StoreError(f"The labels of {name} are being changed by others at this moment; try again.")

    def check(self, name: str, fingerprint: str) -> None:
        """Refuse a collection that is missing or belongs to another embedder."""
        _compare(name, self.open(name), fingerprint)

    def to_write(self, name: str) -> "Collection":
        """A collection, if it still belongs to the embedder that our vectors come from."""
        found = self.open(name)
        if name in self._embedder_of:
            _compare(name, found, self._embedder_of[name])
        return found

    def now_of(self, name: str, fingerprint: str) -> None:
        """Take note that a collection has got vectors of another embedder."""
        self._embedder_of[name] = fingerprint

    def ask(self, name: str, question: Callable[["Collection"], T]) -> T:
        """The answer of a collection that was the same before and after.

        One that is switched meanwhile gives errors of many kinds, or too few rows without an error; one from
        which rows are removed meanwhile may stumble over them.
        """
        import chromadb.errors

        patience = _TRIES
        asked = self.open(name)
        while True:
            before, error = asked, None
            try:
                answer = question(before)
            except chromadb.errors.ChromaError as failure:
                error = failure
                patience -= 1
            asked = self.open(name)
            if error is None and asked.id == before.id:
                return answer
            if error is not None and patience == 0:
                raise error

    def _labelled(self, name: str, given: Mapping[str, str]) -> bool:
        """Whether the labels were there already; if not they have been written, and are to be read back."""
        import chromadb.errors

        found = self.open(name)
        wanted = labels.changed(found.metadata, given)
        if labels.changed(found.metadata, {}) == wanted:
            return True
        with suppress(chromadb.errors.NotFoundError):  # switched meanwhile
            found.modify(metadata=wanted)
        return False

    def _listed(self) -> dict[str, "Collection"]:
        """The user's collections by name, one in the middle of a switch under the name that it will have."""
        found = {item.name: item for item in self._client.list_collections()}
        by_name = {name.removeprefix(NEXT): item for name, item in found.items() if name.startswith(NEXT)}
        return {name: item for name, item in {**by_name, **found}.items() if not is_ours(name)}

    def _find(self, name: str) -> "Collection | None":
        """A collection, in the middle of a switch under its provisional name."""
        return (
            find(self._client, name)
            or find(self._client, NEXT + name)
            or find(self._client, name)  # the switch was over between the two
        )


def _compare(name: str, found: "Collection", fingerprint: str) -> None:
    stored = labels.fingerprint_of(found.metadata)
    if stored != fingerprint:
        raise StoreError(
            f"The collection {name} was indexed with the embedder {stored}, but {fingerprint} is in use; set"
            f" SPECRAG_EMBEDDER back, or run `specrag documents reindex --collection {name}`."
        )
