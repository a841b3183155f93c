"""What tests of the queue of uploads share: an embedder that can be held up, files, and a kill without a process."""

import itertools
import shutil
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from specrag.config import load_settings
from specrag.ingest.base import FileReader
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.index import Indexer
from specrag.ingest.jobs.jobs import IngestJobs
from specrag.retrieval.base import Vectors, VectorStore
from tests.toys import WordEmbedder

PATIENCE = 60


class HeldEmbedder(WordEmbedder):
    """Embeds only while `free` is set, so that a file can be caught in the middle."""

    def __init__(self, tokenizer_file: Path) -> None:
        self.tokenizer_file = tokenizer_file
        self.free = threading.Event()
        self.free.set()
        self.reached = threading.Semaphore(0)
        self.batches = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.batches += 1
        self.reached.release()
        assert self.free.wait(PATIENCE)
        return super().embed(texts)

    def hold(self) -> None:
        """Stop at the next batch, whichever file it belongs to."""
        self.free.clear()
        while self.reached.acquire(blocking=False):
            pass

    def caught(self) -> None:
        """Wait until a file is being embedded."""
        assert self.reached.acquire(timeout=PATIENCE)


def indexer_of(
    store: VectorStore, embedder: HeldEmbedder, *, reader: FileReader | None = None, **settings: Any
) -> Indexer:
    chunker = Chunker(embedder.tokenizer_file, tokens=64, overlap=8)
    made = load_settings({}, max_file_mb=1, **settings)
    return Indexer(store, embedder, chunker, made, reader=reader, clock=_clock())


def _clock() -> Callable[[], datetime]:
    """Moves on by a second whenever somebody looks, so that documents have an order."""
    seconds = itertools.count()
    return lambda: datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=next(seconds))


def written(folder: Path, name: str, content: str | bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def text(number: int, sentences: int = 1) -> str:
    """A text that no other number has."""
    return "\n\n".join(f"The ferry number {number} sails at {turn} past nine." for turn in range(sentences))


def copies(queue_folder: Path) -> list[str]:
    """The jobs whose copies lie there."""
    return sorted(path.name for path in (queue_folder / "copies").iterdir())


def as_if_killed(queue_folder: Path, into: Path) -> Path:
    """The folder as a kill at this very moment would leave it; whoever works there goes on undisturbed."""
    shutil.copytree(queue_folder, into, ignore=shutil.ignore_patterns("*.lock", "*-shm"))
    return into


def ends(queue: IngestJobs, jobs: Sequence[str]) -> list[str]:
    return [queue.wait(job, PATIENCE).state for job in jobs]
