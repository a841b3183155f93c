"""One path into the store: read, chunk, embed, add. Command line, page and sample all come through here.

A file that cannot be indexed is a result with a sentence, never an exception, so that one bad file does not
stop the others. Nothing is written before every chunk has its vector: then the file is kept, and the last
line of the store says that the document is ready. A file that is cancelled or fails leaves nothing behind.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from specrag.config import Settings
from specrag.errors import DocumentError, SpecragError, UsageError
from specrag.ingest.base import Cancelled, FileReader, ReadingCancelled, never
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.chunks.recutting import Recutting
from specrag.ingest.keeping import Keeping
from specrag.ingest.loaders import document_id, load
from specrag.ingest.originals import Originals
from specrag.ingest.process.reading import HereReader
from specrag.ingest.results import IngestResult, Progress, Status, silent, warning_of
from specrag.ingest.text import clean_name
from specrag.ingest.vectors import BATCH, SPECIAL_TOKENS, Vectorizer
from specrag.retrieval.base import Embedder, Vectors, VectorStore
from specrag.types import Chunk, Document, DocumentInfo

__all__ = ["BATCH", "Indexer", "IngestResult", "Progress", "Status"]

_LOOK_S = 0.2
"""How often a file that waits for its turn looks whether it is still wanted."""

_log = logging.getLogger(__name__)
_NOT_UNDERSTOOD = (
    "could not be read: something in it is not understood; save it anew or convert it to another format."
)


class Indexer:
    """The only writer of documents. Files are indexed one at a time, whoever asks."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        chunker: Chunker,
        settings: Settings,
        *,
        reader: FileReader | None = None,
        originals: Originals | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Put the parts together.

        Args:
            store: where documents go.
            embedder: what gives chunks their vectors.
            chunker: what cuts documents; counts tokens as the embedder does.
            settings: the limits.
            reader: what reads files; None reads them in this process.
            originals: where files are kept; None keeps none.
            clock: the time of day.
            timer: seconds for durations.

        Raises:
            UsageError: chunks would be longer than what the embedder reads.
        """
        if chunker.tokens + SPECIAL_TOKENS > embedder.window:
            raise UsageError(
                f"SPECRAG_CHUNK_TOKENS is {chunker.tokens}; the embedder reads {embedder.window} with its"
                f" special tokens; set it to {embedder.window - SPECIAL_TOKENS} or less."
            )
        self.store = store
        self.settings = settings
        self._embedder = embedder
        self._chunker = chunker
        self._vectorizer = Vectorizer(embedder, chunker)
        self._reader = reader or HereReader(settings)
        self._keeping = Keeping(store, originals, keep=settings.keep_originals)
        self._clock = clock
        self._timer = timer
        self._one_at_a_time = threading.Lock()

    @property
    def embedder_fingerprint(self) -> str:
        """The embedder that vectors come from."""
        return self._embedder.fingerprint

    @property
    def chunker_fingerprint(self) -> str:
        """The way in which documents are cut."""
        return self._chunker.fingerprint

    def ingest(
        self,
        path: Path,
        name: str,
        collection: str,
        progress: Progress = silent,
        cancelled: Cancelled = never,
        *,
        password: str | None = None,
        replace: bool = False,
        refresh: bool = False,
    ) -> IngestResult:
        """Index one file; the same bytes twice in a collection are a duplicate and change nothing.

        Args:
            path: where the bytes are.
            name: what the visitor calls the file.
            collection: where it goes; made if it is missing.
            progress: told how far it is.
            cancelled: asked again and again whether to stop.
            password: opens an encrypted file.
            replace: once it is ready, remove the other documents of this name in the collection.
            refresh: read it anew if it is there, but was cut into chunks in another way.
        """
        request = _Request(
            path=path,
            name=clean_name(name),
            collection=collection,
            progress=progress,
            cancelled=cancelled,
            password=password,
            replace=replace,
            refresh=refresh,
            started=self._timer(),
        )
        try:
            with self._turn(cancelled):
                return self._ingest(request)
        except ReadingCancelled:
            error, reason = f"{request.name} was cancelled; nothing of it was kept.", "cancelled"
        except DocumentError as failure:
            error, reason = str(failure), failure.reason
        except SpecragError as failure:
            error, reason = f"{request.name} was not indexed. {failure}", failure.kind
        except Exception:  # noqa: BLE001 - files hold what no library foresaw; the log has the traceback
            _log.exception("%s failed unexpectedly", request.name)
            error, reason = f"{request.name} {_NOT_UNDERSTOOD}", "unreadable"
        seconds = self._timer() - request.started
        return IngestResult(
            path=path, name=request.name, status="failed", seconds=seconds, error=error, reason=reason
        )

    def reindex(self, collection: str, progress: Progress = silent, cancelled: Cancelled = never) -> int:
        """Bring a collection to the embedder and the way of chunking in use; the number of its chunks.

        Where neither has changed, every chunk is embedded anew. Documents can be read all the time; each is
        found either as it was or as it becomes.

        Raises:
            StoreError: there is no such collection, or some documents could not be brought up to date; those
                are as they were.
            ReadingCancelled: `cancelled` turned true; documents that were done stay so.
        """

        def report(done: int, total: int) -> None:
            _check(cancelled)
            progress("embedding", done, total)

        stale = self._stale(collection)
        if not stale or self.store.collection(collection).fingerprint != self._embedder.fingerprint:
            self.store.reindex(collection, self._embedder.fingerprint, self._in_turns(cancelled), report)
        turn = partial(self._turn, cancelled)
        Recutting(self.store, self._chunker, self._vectorizer, collection, turn=turn).run(stale, report)
        return sum(document.chunks for document in self.store.documents(collection))

    def stale(self, collection: str) -> int:
        """Documents of a collection that were cut in another way than is in use; 0 if there is none."""
        return len(self._stale(collection)) if collection in self.store.collections() else 0

    def _stale(self, collection: str) -> list[DocumentInfo]:
        documents = self.store.documents(collection)
        return [document for document in documents if document.chunker != self._chunker.fingerprint]

    def _in_turns(self, cancelled: Cancelled) -> Callable[[Sequence[Chunk]], Vectors]:
        """Embeds a few chunks at a time, so that a file that comes in need not wait for all of them."""

        def embed(chunks: Sequence[Chunk]) -> Vectors:
            with self._turn(cancelled):
                return self._vectorizer.vectors(chunks, lambda _done: _check(cancelled))

        return embed

    @contextmanager
    def _turn(self, cancelled: Cancelled) -> Iterator[None]:
        """The only work at this moment; whoever waits for it can be cancelled."""
        while not self._one_at_a_time.acquire(timeout=_LOOK_S):
            _check(cancelled)
        try:
            yield
        finally:
            self._one_at_a_time.release()

    def _ingest(self, request: "_Request") -> IngestResult:
        _check(request.cancelled)
        self.store.ensure_collection(request.collection, self._embedder.fingerprint)
        data = load(request.path, request.name, self.settings)
        identity, size = document_id(data), len(data)
        del data
        known = self.store.find(request.collection, identity)
        if known is not None and not (request.refresh and known.chunker != self._chunker.fingerprint):
            return self._result("duplicate", known, request, replaced=self._replaced(known, request))
        document = self._reader.read(
            request.path,
            request.name,
            password=request.password,
            on_page=lambda done, total: request.progress("reading", done, total),
            cancelled=request.cancelled,
        )
        made, chunks = self._described(document, size, request)
        vectors = self._vectorizer.vectors(chunks, lambda done: request.embedded(done, len(chunks)))
        _check(request.cancelled)
        known_here = known is not None
        with self._keeping.kept(request.collection, made.id, request.path, request.name, known=known_here):
            self.store.add(request.collection, made, chunks, vectors)
        replaced = self._replaced(made, request)
        return self._result("ready", made, request, warning=warning_of(document), replaced=replaced)

    def _replaced(self, made: DocumentInfo, request: "_Request") -> tuple[str, ...]:
        """Remove older documents of the name, also where a killed process had come to the new one only."""
        if not request.replace or made.source != request.name:
            return ()
        return self._keeping.replace_older(request.collection, made)

    def _described(
        self, document: Document, size: int, request: "_Request"
    ) -> tuple[DocumentInfo, list[Chunk]]:
        chunks: list[Chunk] = []
        for chunk in self._chunker.each(document):
            _check(request.cancelled)
            chunks.append(chunk)
        if not chunks:
            raise DocumentError(
                "no_text", f"{request.name} holds no text to index; check that it is the right file."
            )
        info = DocumentInfo(
            id=document.id,
            title=document.title,
            source=document.source,
            pages=len(document.pages),
            chunks=len(chunks),
            added_at=self._clock().isoformat(timespec="milliseconds"),
            published_at=document.published_at,
            encoding=document.encoding,
            media_type=document.media_type,
            characters=sum(len(page.text) for page in document.pages),
            bytes=size,
            chunker=self._chunker.fingerprint,
        )
        return info, chunks

    def _result(
        self,
        status: Status,
        info: DocumentInfo,
        request: "_Request",
        *,
        warning: str | None = None,
        replaced: tuple[str, ...] = (),
    ) -> IngestResult:
        return IngestResult(
            path=request.path,
            name=request.name,
            status=status,
            document_id=info.id,
            pages=info.pages,
            chunks=info.chunks,
            encoding=info.encoding,
            seconds=self._timer() - request.started,
            warning=warning,
            replaced=replaced,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    path: Path
    name: str
    collection: str
    progress: Progress
    cancelled: Cancelled
    password: str | None
    replace: bool
    refresh: bool
    started: float

    def embedded(self, done: int, total: int) -> None:
        _check(self.cancelled)
        self.progress("embedding", done, total)


def _check(cancelled: Cancelled) -> None:
    if cancelled():
        raise ReadingCancelled
