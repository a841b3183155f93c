"""The files that documents were read from, kept so that a citation can show the page as it looks.

A file is named by the ids of its collection and its document, never by what a visitor calls it, and is there
wholly or not at all. What is kept is a help and no more: the text of a document is in the store, so a file
that is missing costs a picture and not an answer.
"""

import re
import shutil
import time
import uuid
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path

from specrag.errors import DocumentError, UsageError

_COLLECTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,126}[A-Za-z0-9]")
_DOCUMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,126}")
_COMING = ".coming-"
"""Before a word of its own: a file that is still being copied."""


class Originals:
    """A folder of kept files, one folder for each collection."""

    def __init__(self, root: Path) -> None:
        """`root` belongs to this class alone; it is made when the first file is kept."""
        self._root = root

    def keep(self, collection: str, document_id: str, path: Path, name: str) -> None:
        """Copy a file; one that was kept for the same document is replaced.

        Raises:
            DocumentError: it cannot be copied, by the `name` that the visitor knows.
        """
        target = self._place(collection, document_id)
        coming = target.with_name(f"{_COMING}{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, coming)
            coming.replace(target)
        except OSError as error:
            with suppress(OSError):
                coming.unlink(missing_ok=True)
            raise DocumentError(
                "unreadable",
                f"{name} cannot be kept ({error.strerror or error}); make room on the disk of SPECRAG_HOME,"
                " or set SPECRAG_KEEP_ORIGINALS=false.",
            ) from error

    def path(self, collection: str, document_id: str) -> Path | None:
        """Where the file of a document is, or None if it was not kept."""
        found = self._place(collection, document_id)
        return found if found.is_file() else None

    def delete(self, collection: str, document_id: str) -> None:
        """Remove the file of a document; none there is no error."""
        self._place(collection, document_id).unlink(missing_ok=True)

    def delete_collection(self, collection: str) -> None:
        """Remove all files of a collection; none there is no error."""
        shutil.rmtree(self._folder(collection), ignore_errors=True)

    def sweep(self, known: Mapping[str, Container[str]], *, idle_s: float = 0.0) -> None:
        """Remove the files of documents that are gone, and what a killed process has left.

        Args:
            known: the ids of the documents of each collection.
            idle_s: younger files stay; 0 only for when nobody else is adding a document.
        """
        latest = time.time() - idle_s
        if not self._root.is_dir():
            return
        for folder in [one for one in self._root.iterdir() if one.is_dir()]:
            documents: Container[str] = known.get(folder.name, ())
            for file in list(folder.iterdir()):
                with suppress(FileNotFoundError):
                    if file.name not in documents and file.stat().st_mtime <= latest:
                        file.unlink()
            with suppress(OSError):  # there is still something in it
                folder.rmdir()

    def _folder(self, collection: str) -> Path:
        return self._root / _checked(_COLLECTION, collection, "collection")

    def _place(self, collection: str, document_id: str) -> Path:
        return self._folder(collection) / _checked(_DOCUMENT, document_id, "document")


def _checked(rule: re.Pattern[str], word: str, what: str) -> str:
    """A word that is safe as the name of a file, whoever sent it."""
    if not rule.fullmatch(word):
        shown = re.sub(r"[^\x20-\x7e]", "?", word[:60])
        raise UsageError(f"“{shown}” is not the id of a {what}; take one from the list of documents.")
    return word
