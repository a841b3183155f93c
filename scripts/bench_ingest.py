"""How fast documents come in, what memory that takes, and how fast the store then answers: Markdown tables.

    python scripts/bench_ingest.py                                    embedded, in a temporary folder
    python scripts/bench_ingest.py --store http://127.0.0.1:8000      a server, in a new database of it
    python scripts/bench_ingest.py --files ../shared/data/docs        real files in place of a made PDF

1. A file's way step by step: reading (in a process of its own, its start included), chunking, embedding,
   storing. Pages and chunks per second. The made PDF has 300 pages of 60 to 500 words out of 400.
2. Resident memory of this process while 10,000 chunks are indexed (the reader's process has its own): one
   text file whose words are as in 1.
3. The store among 1,000, 10,000 and 100,000 chunks: the nearest 50, the nearest 50 of one document of a
   hundred, and 50 chunks by their ids. Vectors are RANDOM, of 384 components as MiniLM's; texts are of 300
   characters. Medians of 20, with the fastest and slowest.

The weights of the embedder are needed (`specrag weights pull`). Nothing else should run on the machine.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.figures import say
from specrag.config import Settings, load_settings
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.files import files_of
from specrag.ingest.index import Indexer
from specrag.ingest.process.reading import ReadingProcess
from specrag.ingest.vectors import Vectorizer
from specrag.models.weights import Weights
from specrag.retrieval.address import ChromaServer
from specrag.retrieval.base import Vectors
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.embedder import SentenceEmbedder
from specrag.types import Chunk, DocumentInfo
from tests.made_files import document, pdf

DIMENSION, ASKED, NEAREST, STEP = 384, 20, 50, 1000
NAME = "bench"
T = TypeVar("T")


def main() -> None:
    """Run the three measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", default="folder", help="folder, or the address of a Chroma server")
    parser.add_argument(
        "--files", type=Path, nargs="*", help="files and folders to index, for the first table"
    )
    parser.add_argument("--pages", type=int, default=300, help="pages of the made PDF")
    parser.add_argument("--chunks", type=int, default=10_000, help="chunks of the second table")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[1000, 10_000, 100_000], help="chunks of the third table"
    )
    given = parser.parse_args()
    settings = load_settings()
    folder = Weights(home=settings.home).ensure(settings.embedder)
    embedder = SentenceEmbedder(folder, name=settings.embedder, threads=settings.threads)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(settings, embedder, given.store, Path(name))
        if given.files is None:
            made = bench.folder / "made.pdf"
            made.write_bytes(pdf(*made_pages(given.pages)))
            given.files = [made]
        bench.steps(files_of(given.files))
        if given.chunks:
            bench.memory(given.chunks)
        bench.questions(given.sizes)


class Bench:
    """The parts that are measured."""

    def __init__(self, settings: Settings, embedder: SentenceEmbedder, place: str, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.embedder = embedder
        self._place = place
        self.chunker = Chunker(
            embedder.tokenizer_file, tokens=settings.chunk_tokens, overlap=settings.chunk_overlap
        )

    @contextmanager
    def store(self) -> Iterator[ChromaStore]:
        """An empty store, which goes away."""
        word = f"bench-{uuid.uuid4().hex}"
        place: Path | ChromaServer = self.folder / word
        if self._place != "folder":
            place = ChromaServer(url=self._place, database=word)
        store = ChromaStore(place)
        store.ensure_collection(NAME, self.embedder.fingerprint)
        try:
            yield store
        finally:
            store.delete_collection(NAME)
            store.close()

    def steps(self, files: list[Path]) -> None:
        """Every step of the way of all files, one after the other."""
        vectorizer = Vectorizer(self.embedder, self.chunker)
        vectorizer.vectors(self.chunker.chunk(document("Warm up.")), quiet)
        times = dict.fromkeys(("reading", "chunking", "embedding", "storing"), 0.0)
        pages = chunks = 0
        with self.store() as store, ReadingProcess(self.settings) as reader:
            for file in files:
                try:
                    read = timed(times, "reading", partial(reader.read, file, file.name))
                except Exception as error:  # noqa: BLE001 - files that cannot be read are no part of this
                    say(f"left out: {error}")
                    continue
                cut = timed(times, "chunking", partial(self.chunker.chunk, read))
                vectors = timed(times, "embedding", partial(vectorizer.vectors, cut, quiet))
                timed(times, "storing", partial(store.add, NAME, _info(read.id, len(cut)), cut, vectors))
                pages, chunks = pages + len(read.pages), chunks + len(cut)
        print(
            f"\n{len(files)} files, {pages} pages, {chunks} chunks; store: {self._place.partition(':')[0]}\n"
        )
        print("| step | seconds | pages/s | chunks/s |\n|---|---:|---:|---:|")
        for step, seconds in {**times, "together": sum(times.values())}.items():
            print(f"| {step} | {seconds:.2f} | {pages / seconds:,.1f} | {chunks / seconds:,.1f} |")

    def memory(self, count: int) -> None:
        """Resident memory before, and after each thousand chunks."""
        text = self.folder / "long.txt"
        words = "\n\n".join(made_pages(count // 2))
        text.write_text(words, encoding="utf-8")
        print("\n| chunks embedded | resident MB |\n|---:|---:|")
        with self.store() as store, ReadingProcess(self.settings) as reader:
            indexer = Indexer(store, self.embedder, self.chunker, self.settings, reader=reader)
            print(f"| before | {resident():.0f} |")
            shown: list[int] = []

            def progress(stage: str, done: int, total: int) -> None:
                if stage == "embedding" and (not shown or done // STEP > shown[-1] // STEP or done == total):
                    shown.append(done)
                    print(f"| {done:,} | {resident():.0f} |", flush=True)

            result = indexer.ingest(text, text.name, NAME, progress)
            say(f"{result.status}: {result.chunks} chunks in {result.seconds:.0f} s")
            print(f"| stored | {resident():.0f} |")

    def questions(self, sizes: list[int]) -> None:
        """Questions to the store among ever more chunks."""
        generator = np.random.default_rng(0)
        print("\nRandom vectors; milliseconds\n")
        print("| chunks | nearest 50 | of one document | 50 by id | editions |\n|---:|---:|---:|---:|---:|")
        with self.store() as store:
            for size in sizes:
                while (there := store.count(NAME)) < size:
                    _fill(store, f"document{there // STEP:05d}", min(STEP, size - there), generator)
                    say(f"{there + STEP:,} chunks are in")
                documents = [one.id for one in store.documents(NAME)]
                ask = partial(store.query, NAME, unit(generator, 1)[0], NEAREST)
                columns = (
                    ask,
                    partial(ask, documents[:1]),
                    partial(store.lookup, NAME, [f"{one}-00007" for one in documents[:NEAREST]]),
                    partial(store.editions, NAME),
                )
                print(f"| {size:,} | {' | '.join(spread(question) for question in columns)} |", flush=True)


def spread(ask: Callable[[], object]) -> str:
    """Median with the extremes; the first time is not counted."""
    times: dict[str, float] = {}
    ask()
    taken = []
    for turn in range(ASKED):
        timed(times, str(turn), ask)
        taken.append(times[str(turn)] * 1000)
    return f"{statistics.median(taken):.1f} ({min(taken):.1f} to {max(taken):.1f})"


def timed(times: dict[str, float], step: str, work: Callable[[], T]) -> T:
    """What `work` returns; its seconds are added to those of the step."""
    began = time.perf_counter()
    made = work()
    times[step] = times.get(step, 0.0) + time.perf_counter() - began
    return made


def quiet(_done: int) -> None:
    """The listener of someone who does not care."""


def made_pages(count: int) -> list[str]:
    """Pages of 60 to 500 words in short lines."""
    chance = random.Random(0)  # noqa: S311 - no secret
    words = ["".join(chance.choices("aeioulmnrstdk", k=chance.randint(2, 9))) for _ in range(400)]
    return ["\n".join(_sentence(chance, words) for _ in range(chance.randint(5, 42))) for _ in range(count)]


def _sentence(chance: random.Random, words: list[str]) -> str:
    return " ".join(chance.choices(words, k=12)).capitalize() + "."


def _fill(store: ChromaStore, document: str, count: int, generator: np.random.Generator) -> None:
    chunks = [
        Chunk(
            id=f"{document}-{position:05d}",
            document_id=document,
            title="Title",
            source="file.txt",
            text="word " * 60,
            position=position,
        )
        for position in range(count)
    ]
    store.add(NAME, _info(document, count), chunks, unit(generator, count))


def _info(document: str, chunks: int) -> DocumentInfo:
    return DocumentInfo(
        id=document, title="Title", source="file.txt", pages=1, chunks=chunks, added_at="2026-01-01"
    )


def unit(generator: np.random.Generator, count: int) -> Vectors:
    """Random vectors of length one."""
    rows = generator.normal(size=(count, DIMENSION))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def resident() -> float:
    """Memory of this process in MB, as Linux counts it."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    main()
