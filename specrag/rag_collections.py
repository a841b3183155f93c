"""What `Rag` does with collections, beside asking them."""

from abc import ABC, abstractmethod
from pathlib import Path

from specrag.library.library import OPERATOR, Library, Shelf


class RagCollections(ABC):
    """The collections of a `Rag`. A collection is named by its name or its title everywhere."""

    @abstractmethod
    def _library(self) -> Library:
        """The library, made when it is first needed."""

    def collections(self) -> list[Shelf]:
        """All collections: the sample first, then the usual one, then the others by title."""
        return self._library().collections(OPERATOR)

    def create_collection(self, title: str, description: str = "") -> Shelf:
        """Make an empty collection; `add(..., collection=title)` puts files in.

        Raises:
            UsageError: the title or the description is empty or too long.
            StoreError: the title is taken.
        """
        return self._library().create(OPERATOR, title, description)

    def delete_collection(self, collection: str) -> int:
        """Delete a collection and look that it is gone; the number of documents that were in it.

        Raises:
            StoreError: there is none, it is the sample, or it is still there.
        """
        library = self._library()
        return library.delete(OPERATOR, library.find(OPERATOR, collection))

    def export(self, collection: str, target: str | Path, *, originals: bool = True) -> Path:
        """Write a collection to one file; returns where, if `target` is a folder.

        Raises:
            StoreError: there is no such collection, it is empty, or it changed meanwhile.
            UsageError: the file cannot be written.
        """
        library = self._library()
        name = library.find(OPERATOR, collection)
        return library.export(OPERATOR, name, Path(target), originals=originals)

    def import_(self, file: str | Path, *, title: str | None = None) -> Shelf:
        """Make a collection of a file that `export` has written, wholly or not at all.

        Raises:
            DocumentError: the file is not what it must be, or larger than the settings allow.
            StoreError: the title is taken.
        """
        return self._library().import_(OPERATOR, Path(file), title=title)
