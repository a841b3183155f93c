"""One life of the program, from opening its store to the end of its uploads, told step by step over a pipe.

It is run in a process of its own, which the test kills. Everything is real: the parts as `build` puts them
together, with the store, the embedder, the reading process, the kept files and the queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types

from specrag.build import Parts
from specrag.config import Settings, load_settings
from specrag.errors import UsageError
from specrag.ingest.chunks.rebuilding import rebuilt
from specrag.ingest.jobs.jobs import ENDED, IngestJobs
from specrag.types import Page

COLLECTION = "docs"
tqdm.get_lock()  # or each life that is killed leaves a semaphore of its own, and a warning in the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a process needs to know to live."""

    home: Path
    embedder: Path
    uploads: tuple[Path, ...] = ()
    """Files to add, besides what is still in the queue."""
    last: bool = False
    """Whether it tries again what was given up, and ends by itself."""


def settings_of(life: Life) -> Settings:
    return load_settings(
        {}, home=life.home, embedder=str(life.embedder), threads=1, chunk_tokens=64, chunk_overlap=8
    )


def live(life: Life, pipe: Connection) -> None:
    """Open everything, add the uploads, and follow them to their ends."""
    pipe.send(("opening", None))
    parts = Parts(settings_of(life))
    pipe.send(("opened", stored(parts)))
    parts.sweep_originals()
    pipe.send(("kept", sorted(path.name for path in (life.home / "originals").rglob("*") if path.is_file())))
    queue = parts.jobs
    pipe.send(("resumed", strays(queue, life.home)))
    for path in life.uploads:
        queue.submit(path, path.name, COLLECTION, owner=path.suffix)
        pipe.send(("submitted", path.name))
    follow(queue, pipe)
    if life.last:
        given_up = [state.id for state in queue.jobs(COLLECTION) if state.reason == "interrupted"]
        pipe.send(("given up", given_up))
        for job in given_up:
            queue.retry(job)
        follow(queue, pipe)
        pipe.send(("ended", stored(parts)))
        parts.close()
        return
    pipe.send(("idle", None))
    pipe.poll(None)


def stored(parts: Parts) -> dict[str, Any]:
    """What the store holds: each ready document with its text, and the number of rows."""
    if COLLECTION not in parts.store.collections():
        return {"documents": {}, "chunks": {}, "rows": 0}
    documents = parts.store.documents(COLLECTION)
    texts = {item.id: parts.store.chunks(COLLECTION, item.id) for item in documents}
    return {
        "documents": {identity: digest(rebuilt(chunks)) for identity, chunks in texts.items()},
        "chunks": {item.id: (item.chunks, len(texts[item.id])) for item in documents},
        "rows": parts.store.count(COLLECTION),
    }


def digest(pages: Sequence[Page]) -> str:
    return sha256("\f".join(page.text for page in pages).encode()).hexdigest()


def strays(queue: IngestJobs, home: Path) -> list[str]:
    """Copies that belong to no job."""
    return [path.name for path in (home / "uploads" / "copies").iterdir() if not _known(queue, path.name)]


def _known(queue: IngestJobs, job: str) -> bool:
    try:
        queue.wait(job, 0)
    except UsageError:
        return False
    return True


def follow(queue: IngestJobs, pipe: Connection) -> None:
    """Tell of every step of the file at work, until all have ended."""
    told = None
    while waiting := [state for state in queue.jobs(COLLECTION) if state.state not in ENDED]:
        at_work = [state for state in waiting if state.state != "queued"]
        for state in at_work:
            if told != (step := (state.id, state.state, state.done)):
                told = step
                pipe.send(("at work", (state.id, state.name, state.state, state.done, state.total)))
        queue.wait(waiting[-1].id, 0.005)
    pipe.send(("all ended", queue.jobs(COLLECTION)))
