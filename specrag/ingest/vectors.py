"""Chunks become vectors: in small batches of texts of like length, into a file and not into memory.

A batch is padded to its longest text, so neighbours in length go together; and between two batches whoever
has cancelled is heard. The vectors of a large file would be the largest thing in memory, so they are kept in
a temporary file that goes away with the array.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.chunks.searchable import searchable
from specrag.retrieval.base import Embedder, Vectors
from specrag.types import Chunk

BATCH = 32
"""Texts that are embedded at once; a cancelled file waits for one batch.

Of pages of mixed length, sorted, a core embeds 63 chunks a second in batches of 16 or 32 and 49 in batches of
64 or 128; unsorted it was 50.
"""
_WINDOW = 16 * BATCH
"""Chunks that are sorted by length."""
SPECIAL_TOKENS = 2
_SPOOLED = 4096
"""Vectors from which on they go to a file."""


class Vectorizer:
    """Embeds what a search reads of chunks."""

    def __init__(self, embedder: Embedder, chunker: Chunker) -> None:
        """`chunker` counts tokens as the embedder does."""
        self._embedder = embedder
        self._chunker = chunker

    def vectors(self, chunks: Sequence[Chunk], report: Callable[[int], None]) -> Vectors:
        """One vector for each chunk, in order; `report` is told how many are done, and may raise to stop."""
        vectors = _array(len(chunks), self._embedder.dimension)
        for start in range(0, len(chunks), _WINDOW):
            window = [self.readable(chunk) for chunk in chunks[start : start + _WINDOW]]
            for done, places in _batches(window):
                report(start + done)
                found = self._embedder.embed([window[place] for place in places])
                vectors[[start + place for place in places]] = found
        report(len(chunks))
        return vectors

    def readable(self, chunk: Chunk) -> str:
        """What a search reads of a chunk, as much of it as the embedder sees, the text always whole."""
        room = self._embedder.window - SPECIAL_TOKENS
        text = searchable(chunk)
        spare = len(text) - len(chunk.text)
        while spare and self._chunker.count(text) > room:
            spare //= 2
            text = searchable(chunk)[:spare] + "\n" * bool(spare) + chunk.text
        return text


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, list[int]]]:
    """Places of texts of like length, after the number of those that came before."""
    places = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for start in range(0, len(places), BATCH):
        yield start, places[start : start + BATCH]


def _array(count: int, dimension: int) -> Vectors:
    """Room for vectors: in a file that has no name where they are many, in memory where a disk has no room.

    The room is taken beforehand, because a full disk ends a process that writes to a mapped file.
    """
    shape = (count, dimension)
    if count >= _SPOOLED and hasattr(os, "posix_fallocate"):
        with suppress(OSError), tempfile.TemporaryFile(prefix="specrag-vectors-") as file:
            os.posix_fallocate(file.fileno(), 0, count * dimension * np.dtype(np.float32).itemsize)
            return np.memmap(file, dtype=np.float32, mode="r+", shape=shape)
    return np.empty(shape, dtype=np.float32)
