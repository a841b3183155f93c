"""Chunks that the embedder can see whole, cut where a reader would cut."""

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest

from specrag.ingest.chunking import Chunker
from tests.made_files import document

pytestmark = pytest.mark.integration

SENTENCE = "The heron waits at the old mill until the boats come by. "


@pytest.fixture(scope="module")
def tokenizer(embedder_path: Path) -> Path:
    return embedder_path / "tokenizer.json"


@pytest.fixture(scope="module")
def chunker(tokenizer: Path) -> Chunker:
    return Chunker(tokenizer, tokens=64, overlap=12)


def test_the_tokenizers_own_truncation_does_not_hide_text(tokenizer: Path, chunker: Chunker) -> None:
    """As shipped it cuts at 128 tokens and pads to 128, so that every text would count the same."""
    assert json.loads(tokenizer.read_text(encoding="utf-8"))["truncation"]["max_length"] == 128
    assert chunker.count("word " * 500) == 500
    assert chunker.count("word") == 1


def test_chunks_carry_what_a_citation_needs(chunker: Chunker) -> None:
    chunks = chunker.chunk(document(SENTENCE * 20, "", SENTENCE))
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.id for chunk in chunks][:2] == ["0123456789abcdef-00000", "0123456789abcdef-00001"]
    assert {chunk.page for chunk in chunks} == {1, 3}
    assert {(chunk.document_id, chunk.title, chunk.source) for chunk in chunks} == {
        ("0123456789abcdef", "Notes", "notes.txt")
    }


def test_chunks_end_with_sentences_and_share_some(chunker: Chunker) -> None:
    text = " ".join(f"Boat number {number} passes the old mill at noon." for number in range(40))
    chunks = chunker.chunk(document(text))
    assert all(chunk.text.endswith("noon.") for chunk in chunks)
    for before, after in pairwise(chunks):
        assert after.text.split(". ")[0].rstrip(".") in before.text


@pytest.mark.parametrize(
    "text",
    [
        "東京は日本の首都です。" * 300,
        "สวัสดีชาวโลก" * 800,
        "नमस्ते दुनिया। " * 300,
        "a" * 20_000,
        "aGVsbG8gd29ybGQ" * 1000,
        "👩‍👩‍👧‍👦" * 500,
        "x\n" * 3000,
    ],
)
def test_no_script_gives_giant_chunks(chunker: Chunker, text: str) -> None:
    """A 10,000-character chunk of a script that the tokenizer does not know is one token, and useless."""
    chunks = chunker.chunk(document(text))
    assert max(chunker.count(chunk.text) for chunk in chunks) <= 64
    assert max(len(chunk.text) for chunk in chunks) <= 64 * 8
    assert (
        "".join(text.split()) in "".join("".join(chunk.text.split()) for chunk in chunks)
        or chunks[0].text in text
    )


def test_japanese_is_cut_at_sentence_ends(chunker: Chunker) -> None:
    chunks = chunker.chunk(document("東京は日本の首都です。" * 60))
    assert all(chunk.text.endswith("。") for chunk in chunks)


def test_a_heading_stays_with_its_paragraph(chunker: Chunker) -> None:
    """The paragraph is longer than a chunk, so a plain splitter leaves the heading alone."""
    chunks = chunker.chunk(document(f"{SENTENCE}\n\nHistory\n\nEarly years\n\n{SENTENCE * 12}"))
    headed = [chunk.text for chunk in chunks if "History" in chunk.text]
    assert headed
    assert all("Early years" in text and "heron waits" in text.split("Early years")[1] for text in headed)


def test_a_heading_stays_with_its_table(chunker: Chunker) -> None:
    rows = "\n".join(f"Part {number} | {number * 7}" for number in range(60))
    first = chunker.chunk(document(f"Prices\n\n{rows}"))[0]
    assert first.text.startswith("Prices\n\nPart 0 | 0\nPart 1 | 7")
    assert first.text.splitlines()[-1].count("|") == 1


def test_a_scrap_at_the_end_does_not_stand_alone(chunker: Chunker) -> None:
    for sentences in range(5, 40):
        chunks = chunker.chunk(document(SENTENCE * sentences + "The end."))
        assert chunker.count(chunks[-1].text) > 64 // 6 or len(chunks) == 1


def test_a_long_text_without_any_sentence_takes_no_longer_than_others(chunker: Chunker) -> None:
    """The splitter alone took a minute for this, in the square of the length."""
    started = time.perf_counter()
    chunks = chunker.chunk(document("東京は大きい" * 30_000))
    assert sum(len(chunk.text) for chunk in chunks) >= 180_000
    assert time.perf_counter() - started < 30


def test_a_page_without_text_gives_no_chunk(chunker: Chunker) -> None:
    assert chunker.chunk(document("", " \n ")) == []


def test_the_fingerprint_names_what_changes_the_chunks(tokenizer: Path, chunker: Chunker) -> None:
    assert chunker.fingerprint == "chunks-v1-64-12"
    assert Chunker(tokenizer, tokens=32, overlap=0).fingerprint != chunker.fingerprint
