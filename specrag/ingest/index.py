"""One path into the store: read, chunk, embed, add. Command line, page and sample all come through here.

A file that cannot be indexed is a result with a sentence, never an exception, so that one bad file does not
stop the others. Nothing is written before every chunk has its vector; a file that is cancelled or fails
leaves nothing behind.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from specrag.config import Settings
from specrag.errors import DocumentError, SpecragError, UsageError
from specrag.ingest.chunking import Chunker
from specrag.ingest.loaders import document_id, load, read
from specrag.ingest.searchable import searchable
from specrag.ingest.text import clean_name
from specrag.retrieval.base import Embedder, Vectors, VectorStore
from specrag.types import Chunk, Document, DocumentInfo

BATCH = 32
_SPECIAL_TOKENS = 2

_log = logging.getLogger(__name__)
_NOT_UNDERSTOOD = (
    "could not be read: something in it is not understood; save it anew or convert it to another format."
)

Status: TypeAlias = Literal["ready", "duplicate", "failed"]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as (stage, done, total); the stages are "reading" (pages) and "embedding" (chunks)."""


def _silent(_stage: str, _done: int, _total: int) -> None:
    pass


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What became of one file."""

    path: Path
    name: str
    status: Status
    document_id: str | None = None
    pages: int = 0
    chunks: int = 0
    encoding: str | None = None
    seconds: float = 0.0
    error: str | None = None
    """A sentence for a person, if the status is "failed"."""
    reason: str | None = None
    """The stable word of a failure: that of `DocumentError`, "cancelled", or the kind of the error."""
    warning: str | None = None
    """A sentence about a file that is ready, but not all of it."""


class Indexer:
    """The only writer of documents. Files are indexed one at a time, whoever asks."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        chunker: Chunker,
        settings: Settings,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Put the parts together.

        Raises:
            UsageError: chunks would be longer than what the embedder reads.
        """
        if chunker.tokens + _SPECIAL_TOKENS > embedder.window:
            raise UsageError(
                f"SPECRAG_CHUNK_TOKENS is {chunker.tokens}; the embedder reads {embedder.window} with its"
                f" special tokens; set it to {embedder.window - _SPECIAL_TOKENS} or less."
            )
        self.store = store
        self.settings = settings
        self._embedder = embedder
        self._chunker = chunker
        self._clock = clock
        self._timer = timer
        self._one_at_a_time = threading.Lock()

    def ingest(
        self,
        path: Path,
        name: str,
        collection: str,
        progress: Progress = _silent,
        cancelled: Callable[[], bool] = _never,
        *,
        password: str | None = None,
    ) -> IngestResult:
        """Index one file; the same bytes twice in a collection are a duplicate and change nothing."""
        shown = clean_name(name)
        started = self._timer()
        with self._one_at_a_time:
            try:
                return self._ingest(_Request(path, shown, collection, progress, cancelled, password), started)
            except _Cancelled:
                error, reason = f"{shown} was cancelled; nothing of it was kept.", "cancelled"
            except DocumentError as failure:
                error, reason = str(failure), failure.reason
            except SpecragError as failure:
                error, reason = f"{shown} was not indexed. {failure}", failure.kind
            except Exception:  # noqa: BLE001 - files hold what no library foresaw; the log has the traceback
                _log.exception("%s failed unexpectedly", shown)
                error, reason = f"{shown} {_NOT_UNDERSTOOD}", "unreadable"
        return IngestResult(
            path=path,
            name=shown,
            status="failed",
            seconds=self._timer() - started,
            error=error,
            reason=reason,
        )

    def reindex(self, collection: str, progress: Progress = _silent) -> int:
        """Give every chunk of a collection a vector of the embedder in use; the number of chunks.

        Raises:
            StoreError: there is no such collection.
        """
        with self._one_at_a_time:
            return self.store.reindex(
                collection,
                self._embedder.fingerprint,
                lambda chunks: self._embedder.embed([searchable(chunk) for chunk in chunks]),
                lambda done, total: progress("embedding", done, total),
            )

    def _ingest(self, request: "_Request", started: float) -> IngestResult:
        request.check()
        self.store.ensure_collection(request.collection, self._embedder.fingerprint)
        identity = document_id(load(request.path, request.name, self.settings))
        known = self.store.find(request.collection, identity)
        if known is None:
            document = read(
                request.path,
                request.name,
                self.settings,
                password=request.password,
                on_page=lambda done, total: request.report("reading", done, total),
            )
            known = self._add(document, request)
            return self._result("ready", known, request, started, warning=_warning(document))
        return self._result("duplicate", known, request, started)

    def _add(self, document: Document, request: "_Request") -> DocumentInfo:
        chunks = self._chunker.chunk(document)
        vectors = self._vectors(chunks, request)
        info = DocumentInfo(
            id=document.id,
            title=document.title,
            source=document.source,
            pages=len(document.pages),
            chunks=len(chunks),
            added_at=self._clock().isoformat(timespec="seconds"),
            published_at=document.published_at,
            encoding=document.encoding,
        )
        self.store.add(request.collection, info, chunks, vectors)
        return info

    def _vectors(self, chunks: list[Chunk], request: "_Request") -> Vectors:
        parts: list[Vectors] = []
        for start in range(0, len(chunks), BATCH):
            request.report("embedding", start, len(chunks))
            parts.append(self._embedder.embed([searchable(chunk) for chunk in chunks[start : start + BATCH]]))
        request.report("embedding", len(chunks), len(chunks))
        return np.concatenate(parts)

    def _result(
        self,
        status: Status,
        info: DocumentInfo,
        request: "_Request",
        started: float,
        *,
        warning: str | None = None,
    ) -> IngestResult:
        return IngestResult(
            path=request.path,
            name=request.name,
            status=status,
            document_id=info.id,
            pages=info.pages,
            chunks=info.chunks,
            encoding=info.encoding,
            seconds=self._timer() - started,
            warning=warning,
        )


@dataclass(frozen=True, slots=True)
class _Request:
    path: Path
    name: str
    collection: str
    progress: Progress
    cancelled: Callable[[], bool]
    password: str | None

    def check(self) -> None:
        if self.cancelled():
            raise _Cancelled

    def report(self, stage: str, done: int, total: int) -> None:
        self.check()
        self.progress(stage, done, total)


class _Cancelled(Exception):
    pass


def _warning(document: Document) -> str | None:
    empty = [str(page.number) for page in document.pages if not page.text]
    if not empty:
        return None
    listed = ", ".join(empty[:10]) + (" and others" if len(empty) > 10 else "")  # noqa: PLR2004
    return (
        f"{len(empty)} of {len(document.pages)} pages have no text (page {listed}); run OCR to include them."
    )
