"""Chunks that the embedder can see whole, cut where a reader would cut."""

import json
import time
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from specrag.ingest.chunks.chunking import Chunker, rebuilt
from specrag.types import Heading, Page
from tests.made_files import chunks as made_chunks
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
    digest = sha256(chunks[1].text.encode()).hexdigest()[:6]
    assert chunks[1].id == f"0123456789abcdef-00001-{digest}"
    assert {(chunk.page, chunk.part) for chunk in chunks} == {(1, 0), (3, 2)}
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


@pytest.mark.parametrize(
    "sentence",
    [
        "東京は日本の首都です。",
        "這座橋有多長？",
        "真是太好了！",
        "هل تدور الطاحونة القديمة؟ ",
        "پرانی چکی گندم پیستی ہے۔ ",
        "पुरानी चक्की गेहूँ पीसती है। ",
        "Старая мельница мелет рожь. ",
        "Was mahlt die alte Mühle? ",
    ],
)
def test_every_script_is_cut_at_its_sentence_ends(chunker: Chunker, sentence: str) -> None:
    chunks = chunker.chunk(document(sentence * 1500))
    assert len(chunks) > 100
    assert all(chunk.text.endswith(sentence.strip()) for chunk in chunks)
    assert all(chunk.text.startswith(sentence.strip()) for chunk in chunks)


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
    assert chunker.fingerprint.startswith("chunks-v2-64-12-")
    assert Chunker(tokenizer, tokens=32, overlap=0).fingerprint != chunker.fingerprint


def test_another_tokenizer_is_another_way_of_chunking(
    tokenizer: Path, chunker: Chunker, tmp_path: Path
) -> None:
    """Its tokens are others, so what was cut for one embedder may be too long for another."""
    other = json.loads(tokenizer.read_text(encoding="utf-8"))
    other["normalizer"]["lowercase"] = False
    (tmp_path / "tokenizer.json").write_text(json.dumps(other), encoding="utf-8")
    changed = Chunker(tmp_path / "tokenizer.json", tokens=64, overlap=12)
    assert changed.fingerprint != chunker.fingerprint


def test_a_chunk_within_a_table_knows_the_header_row(chunker: Chunker) -> None:
    rows = "\n".join(f"Mill {number} | {number * 7} | wheat" for number in range(60))
    text = (
        f"Prices of the mills.\n\nName | Price | Grain\n{rows}\n\nThat is all | or nearly.\n\n{SENTENCE * 8}"
    )
    chunks = chunker.chunk(document(text))
    inside = [chunk for chunk in chunks if chunk.text.startswith("Mill ")]
    assert len(inside) > 5
    assert {chunk.lead for chunk in inside} == {"Name | Price | Grain"}
    assert chunks[0].lead is None  # it holds the header row itself
    assert chunks[-1].lead is None
    assert all("\n" not in (chunk.lead or "") for chunk in chunks)


def test_the_header_row_of_a_markdown_table_stands_above_its_line_of_dashes(chunker: Chunker) -> None:
    rows = "\n".join(f"| Mill {number} | {number * 7} | wheat |" for number in range(60))
    chunks = chunker.chunk(document(f"| Name | Price | Grain |\n|---|---:|:--|\n{rows}"))
    assert {chunk.lead for chunk in chunks[1:]} == {"| Name | Price | Grain |"}


def test_a_header_row_is_bounded(chunker: Chunker) -> None:
    header = " | ".join(f"column {number}" for number in range(200))
    chunks = chunker.chunk(document(header + "\n" + "\n".join(" | ".join("abcd") for _ in range(50))))
    assert chunks[-1].lead is not None
    assert header.startswith(chunks[-1].lead)
    assert len(chunks[-1].lead) <= 160


def test_a_chunk_stands_under_its_heading_else_in_its_section(chunker: Chunker) -> None:
    text = f"{SENTENCE * 8}\n\nHistory\n\n{SENTENCE * 12}"
    page = Page(
        text=text,
        number=1,
        section="Chapter 1",
        headings=(Heading(start=text.index("History"), text="History"),),
    )
    sections = [chunk.section for chunk in chunker.chunk(replace(document(), pages=(page,)))]
    assert sections[0] == "Chapter 1"
    assert sections[-1] == "History"
    assert sections.index("History") == sections.count("Chapter 1")


def test_sections_survive_that_the_text_is_cut_anew(chunker: Chunker, tokenizer: Path) -> None:
    text = f"Early years\n\n{SENTENCE * 9}\n\nHistory\n\n{SENTENCE * 12}"
    headings = tuple(Heading(start=text.index(name), text=name) for name in ("Early years", "History"))
    made = replace(document(), pages=(Page(text=text, number=1, headings=headings),))
    finer = Chunker(tokenizer, tokens=32, overlap=0)
    once = finer.chunk(made)
    again = finer.chunk(replace(made, pages=rebuilt(chunker.chunk(made))))
    assert [(chunk.text, chunk.section) for chunk in again] == [(chunk.text, chunk.section) for chunk in once]


def test_chunks_of_an_older_version_are_put_together_as_well_as_can_be() -> None:
    """They do not say where they begin, but neighbours share sentences."""
    texts = (
        "The mill is old. It stands by the river.",
        "It stands by the river. It grinds.",
        "Herons live here.",
    )
    chunks = [replace(chunk, text=text) for chunk, text in zip(made_chunks("aaaa", 3), texts, strict=True)]
    pages = rebuilt([replace(chunks[0], page=1), replace(chunks[1], page=1), replace(chunks[2], page=2)])
    assert [page.text for page in pages] == [
        "The mill is old. It stands by the river. It grinds.",
        "Herons live here.",
    ]
    assert [page.number for page in pages] == [1, 2]
    assert rebuilt([]) == ()


@pytest.mark.parametrize("character", ["👩‍👩‍👧‍👦", "e\u0301\u0323", "👍🏽", "각"])
def test_characters_of_several_code_points_are_not_cut(chunker: Chunker, character: str) -> None:
    """Also where blocks of a text without any blank meet, after thousands of characters."""
    for chunk in chunker.chunk(document(character * 6000)):
        assert chunk.text.replace(character, "") == ""
        assert chunk.start % len(character) == 0


def test_time_grows_with_the_text_and_not_with_its_square(chunker: Chunker) -> None:
    """A sheet is one page of many rows, and each of its chunks looks for its header row."""
    row = "Mill | 7 | wheat | 2024-03-01\n"
    small, large = row * 1000, row * 8000
    started = time.perf_counter()
    chunker.chunk(document(small))
    first = time.perf_counter() - started
    chunks = chunker.chunk(document(large))
    assert time.perf_counter() - started - first < 30 * first + 5
    assert chunks[-1].lead == "Mill | 7 | wheat | 2024-03-01"
