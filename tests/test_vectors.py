"""Chunks become vectors: in order however they were batched, seen whole, and not all in memory."""

import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.chunks.searchable import PREFIX, searchable
from specrag.ingest.vectors import BATCH, Vectorizer
from specrag.retrieval.base import Vectors
from specrag.types import Chunk
from tests.made_files import chunks, document
from tests.toys import WordEmbedder

pytestmark = pytest.mark.integration


class NarrowEmbedder(WordEmbedder):
    """Reads 64 tokens, and remembers what it was given."""

    window = 64

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        return super().embed(texts)


@pytest.fixture(scope="module")
def chunker(embedder_path: Path) -> Chunker:
    return Chunker(embedder_path / "tokenizer.json", tokens=48, overlap=8)


def quiet(_done: int) -> None:
    pass


def test_vectors_come_in_the_order_of_the_chunks_though_texts_of_like_length_go_together(
    chunker: Chunker,
) -> None:
    lengths = np.random.default_rng(0).integers(1, 40, size=1200)
    made = [
        replace(chunk, text=f"mill{chunk.position} " + "rye " * int(length))
        for chunk, length in zip(chunks("aaaa", 1200), lengths, strict=True)
    ]
    embedder, seen = NarrowEmbedder(), list[int]()
    vectors = Vectorizer(embedder, chunker).vectors(made, seen.append)
    assert np.allclose(vectors, WordEmbedder().embed([searchable(chunk) for chunk in made]), atol=1e-6)
    assert (seen[0], seen[-1]) == (0, 1200)
    assert seen == sorted(seen)
    assert max(map(len, embedder.batches)) == BATCH
    spread = [max(map(len, texts)) - min(map(len, texts)) for texts in embedder.batches]
    assert float(np.mean(spread)) < 20  # of up to 160


def test_no_chunks_are_no_vectors(chunker: Chunker) -> None:
    assert Vectorizer(NarrowEmbedder(), chunker).vectors([], quiet).shape == (0, 64)


def test_many_vectors_are_in_a_file_that_has_no_name(chunker: Chunker) -> None:
    """Those of a large file were a gigabyte of memory beside its text."""
    vectors = Vectorizer(NarrowEmbedder(), chunker).vectors(chunks("aaaa", 5000), quiet)
    assert isinstance(vectors, np.memmap)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


def test_a_disk_without_room_for_the_file_is_no_failure(chunker: Chunker) -> None:
    """Writing to a mapped file on a full disk ends the process, with no word to anybody."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        vectors = Vectorizer(NarrowEmbedder(), chunker).vectors(chunks("aaaa", 5000), quiet)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not isinstance(vectors, np.memmap)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


@pytest.mark.parametrize(
    "title", ["Mill", "風車小屋の長い長い物語と粉挽きの歴史について書かれた本" * 5, "|" * 400]
)
def test_the_whole_text_of_a_chunk_is_read_whatever_stands_before_it(chunker: Chunker, title: str) -> None:
    """A title in a script of one token a character pushed the end of the text out of what the model reads."""
    text = "The heron waits at the old mill until the boats come by. " * 20
    made = replace(document(text), title=title)
    embedder = NarrowEmbedder()
    cut = chunker.chunk(made)
    Vectorizer(embedder, chunker).vectors(cut, quiet)
    given = [text for batch in embedder.batches for text in batch]
    assert sorted(text[-20:] for text in given) == sorted(chunk.text[-20:] for chunk in cut)
    assert max(chunker.count(text) for text in given) <= 62
    assert all(text.startswith(title[:1]) for text in given)


def test_a_search_reads_title_section_and_lead_before_the_text() -> None:
    chunk = Chunk(
        id="a-0",
        document_id="a",
        title="Price\nlist",
        source="p.csv",
        text="Mill | 7",
        position=0,
        section="Grain",
        lead="Name | Price",
    )
    assert searchable(chunk) == "Price list\nGrain\nName | Price\nMill | 7"
    assert searchable(replace(chunk, section="Price\nlist", lead=None)) == "Price list\nMill | 7"
    assert searchable(replace(chunk, title="", section=None, lead=None)) == "Mill | 7"


def test_what_stands_before_the_text_is_short() -> None:
    chunk = Chunk(
        id="a-0",
        document_id="a",
        title="long title " * 50,
        source="p.csv",
        text="Mill",
        position=0,
        section="s" * 5000,
        lead="cell | " * 500,
    )
    lines = searchable(chunk).split("\n")
    assert len("\n".join(lines[:-1])) < PREFIX
    assert [line[:4] for line in lines] == ["long", "ssss", "cell", "Mill"]
