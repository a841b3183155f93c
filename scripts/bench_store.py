"""How fast the document store is, embedded and behind a Chroma server: adding 1,000 chunks, and asking.

    python scripts/bench_store.py                                  embedded, in a temporary folder
    python scripts/bench_store.py --url http://127.0.0.1:8000      a server, in a new database of it

Vectors are random, of 384 components as MiniLM's; texts are of 300 characters. Prints medians in milliseconds
with the fastest and slowest, after one question that is not counted but shown.
"""

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from specrag.retrieval.address import ChromaServer
from specrag.retrieval.base import Vectors
from specrag.retrieval.chroma import ChromaStore
from specrag.types import Chunk, DocumentInfo

DIMENSION = 384
SIZE = 1000
ASKED = 20
NAME = "bench"


def main() -> None:
    """Measure one store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="address of a Chroma server")
    url = parser.parse_args().url
    with tempfile.TemporaryDirectory() as folder:
        place = ChromaServer(url=url, database=f"bench-{uuid.uuid4().hex}") if url else Path(folder)
        store = ChromaStore(place)
        store.ensure_collection(NAME, "bench")
        measure(store)
        store.delete_collection(NAME)
        store.close()


def measure(store: ChromaStore) -> None:
    """Ten documents of a thousand chunks; questions after the first and after the last."""
    random = np.random.default_rng(0)
    adding = []
    for number in range(10):
        vectors = unit(random, SIZE)
        adding.append(timed(lambda number=number, vectors=vectors: add(store, number, vectors)))  # type: ignore[misc]
        if number in (0, 9):
            ask(store, random)
    show("add 1,000 chunks", adding)


def ask(store: ChromaStore, random: np.random.Generator) -> None:
    """Questions as a run asks them: the nearest eight, then their vectors."""

    def one() -> None:
        found = store.query(NAME, unit(random, 1)[0], 8)
        store.vectors(NAME, [passage.id for passage in found])

    first = timed(one)
    show(f"ask among {store.count(NAME)} (first {first:.1f})", [timed(one) for _ in range(ASKED)])


def add(store: ChromaStore, number: int, vectors: Vectors) -> None:
    """One document of as many chunks as vectors."""
    document = f"document{number}"
    chunks = [
        Chunk(
            id=f"{document}-{position:05d}",
            document_id=document,
            title="Title",
            source="file.txt",
            text="word " * 60,
            position=position,
        )
        for position in range(len(vectors))
    ]
    info = DocumentInfo(
        id=document, title="Title", source="file.txt", pages=1, chunks=len(chunks), added_at=f"{number:04d}"
    )
    store.add(NAME, info, chunks, vectors)


def unit(random: np.random.Generator, count: int) -> Vectors:
    """Random vectors of length one."""
    rows = random.normal(size=(count, DIMENSION))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of a call."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def show(what: str, times: list[float]) -> None:
    """One line of the result."""
    middle = statistics.median(times)
    print(f"{what}: {middle:.1f} ({min(times):.1f} to {max(times):.1f}, n={len(times)})")


if __name__ == "__main__":
    main()
