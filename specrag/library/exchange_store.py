"""Between the store and a file: a collection goes out, or comes in wholly or not at all.

What comes in stands in the store under an owner that nobody is, so it is not seen before all of it is there,
and is swept if this process dies meanwhile. Vectors are taken over only from the same embedder and if they
are sound; else the chunks come in with placeholders and are indexed anew, as after a change of the embedder.
"""

import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from specrag.config import Settings
from specrag.errors import DocumentError, StoreError
from specrag.ingest.base import Cancelled, ReadingCancelled
from specrag.library.exchange import Manifest, Packed
from specrag.library.exchange_read import Package
from specrag.library.exchange_zip import corrupt
from specrag.library.expiry import ARRIVING, written
from specrag.library.shelves import new_name
from specrag.retrieval.base import Vectors, VectorStore

if TYPE_CHECKING:
    from specrag.ingest.index import Indexer, Progress
    from specrag.ingest.originals import Originals

_PLACEHOLDER: Final = "placeholder"
"""The embedder of vectors that mean nothing."""


class Arrivals:
    """Takes collections in."""

    def __init__(
        self,
        *,
        store: VectorStore,
        indexer: "Indexer",
        dimension: int | None,
        originals: "Originals | None",
        settings: Settings,
        clock: Callable[[], datetime],
    ) -> None:
        """Put the parts together; without `dimension` no vectors of files are taken over."""
        self._store = store
        self._indexer = indexer
        self._dimension = dimension
        self._originals = originals if settings.keep_originals else None
        self._settings = settings
        self._clock = clock

    def take(self, path: Path, progress: "Progress", cancelled: Cancelled) -> tuple[str, Manifest]:
        """Store a file; the name of the collection, which nobody sees yet, and what the file says of it.

        Raises:
            DocumentError: the file is not what it must be, or `cancelled` turned true; nothing was kept.
            StoreError: the store refuses.
        """
        name = new_name()

        def tell(stage: str) -> Callable[[int, int], None]:
            def told(done: int, total: int) -> None:
                if cancelled():
                    raise ReadingCancelled
                progress(stage, done, total)

            return told

        try:
            with Package(path, self._settings) as package:
                sound = self._sound(package, tell("checking"))
                try:
                    self._make(name, sound=sound)
                    self._fill(name, package, tell("importing"), sound=sound)
                    if not sound:
                        self._indexer.reindex(name, progress, cancelled)
                except BaseException:
                    self.drop(name)
                    raise
                return name, package.manifest
        except ReadingCancelled:
            raise DocumentError("cancelled", "The import was cancelled; nothing of it was kept.") from None

    def drop(self, name: str) -> None:
        """Remove what has come in of a collection; one that is not there is no error."""
        if name in self._store.collections():
            self._store.delete_collection(name)
        if self._originals is not None:
            self._originals.delete_collection(name)

    def _sound(self, package: Package, tell: Callable[[int, int], None]) -> bool:
        """Look through the file; whether its vectors can be taken over."""
        ours = self._indexer.embedder_fingerprint
        if self._dimension is None:
            package.check("", 0, tell)
            return not package.manifest.documents
        return package.check(ours, self._dimension, tell) or not package.manifest.documents

    def _make(self, name: str, *, sound: bool) -> None:
        now = written(self._clock())
        labels = {"owner": ARRIVING + name, "created_at": now, "used_at": now}
        fingerprint = self._indexer.embedder_fingerprint if sound else _PLACEHOLDER
        self._store.ensure_collection(name, fingerprint, labels=labels)

    def _fill(self, name: str, package: Package, tell: Callable[[int, int], None], *, sound: bool) -> None:
        total = len(package.manifest.documents)
        for done, packed in enumerate(package.documents()):
            tell(done, total)
            vectors = self._vectors(package, packed, sound=sound)
            self._keep(name, package, packed)  # before the store says that the document is there
            self._store.add(name, packed.info, packed.chunks, vectors)
        tell(total, total)

    def _vectors(self, package: Package, packed: Packed, *, sound: bool) -> Vectors:
        if not sound or self._dimension is None:
            return np.ones((len(packed.chunks), 1), dtype=np.float32)
        vectors = package.vectors(packed, self._dimension)
        if vectors is None:
            raise corrupt("it changed while it was read")
        return vectors

    def _keep(self, name: str, package: Package, packed: Packed) -> None:
        if self._originals is None:
            return
        try:
            with tempfile.TemporaryDirectory(prefix="specrag-import-") as folder:
                original = package.original(packed.info.id, Path(folder) / packed.info.id)
                if original is not None:
                    self._originals.keep(name, packed.info.id, original, packed.info.source)
        except OSError as error:
            raise StoreError(
                f"{packed.info.source} cannot be kept ({error.strerror or error}); make room on the disk."
            ) from error
