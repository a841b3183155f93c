"""Laws of chunking, for any text: a hard cap, nothing lost, nothing empty, and the same every time."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrag.ingest.chunking import Chunker
from tests.made_files import document

pytestmark = pytest.mark.integration

_WORDS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzéßñ"), min_size=1, max_size=12)
_ENDS = st.sampled_from([" ", " ", " ", ", ", ". ", "! ", "\n", "\n\n"])
PROSE = st.lists(st.tuples(_WORDS, _ENDS), max_size=150).map(lambda parts: "".join(map("".join, parts)))
ANY = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n 。. #"), max_size=300)
LAW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def chunker(embedder_path: Path) -> Chunker:
    return Chunker(embedder_path / "tokenizer.json", tokens=24, overlap=6)


@LAW
@given(text=PROSE | ANY)
def test_no_chunk_is_longer_than_the_cap_or_empty(chunker: Chunker, text: str) -> None:
    for chunk in chunker.chunk(document(text)):
        assert chunk.text.strip()
        assert chunker.count(chunk.text) <= 24
        assert chunk.text in text


@LAW
@given(text=PROSE)
def test_every_word_is_in_some_chunk(chunker: Chunker, text: str) -> None:
    found = {word for chunk in chunker.chunk(document(text)) for word in re.findall(r"\w+", chunk.text)}
    assert set(re.findall(r"\w+", text)) <= found


@LAW
@given(text=PROSE | ANY)
def test_the_chunks_cover_the_text(chunker: Chunker, text: str) -> None:
    """In order, each chunk begins at the latest where the one before it ended, blanks aside."""
    covered = at = 0
    for chunk in chunker.chunk(document(text)):
        next_word = len(text) - len(text[covered:].lstrip())
        start = text.rfind(chunk.text, at, next_word + len(chunk.text))  # equal texts: the last that fits
        assert start >= 0
        covered, at = max(covered, start + len(chunk.text)), start
    assert text[covered:].strip() == ""


@LAW
@given(pages=st.lists(PROSE, max_size=4))
def test_ids_are_unique_and_stable(chunker: Chunker, pages: list[str]) -> None:
    chunks = chunker.chunk(document(*pages))
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert chunker.chunk(document(*pages)) == chunks
    assert all(pages[(chunk.page or 0) - 1].find(chunk.text) >= 0 for chunk in chunks)
