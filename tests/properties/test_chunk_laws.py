"""Laws of chunking, for any text: a hard cap, nothing lost, nothing empty, and the same every time."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrag.ingest.chunks.chunking import Chunker, rebuilt
from specrag.types import Document, Heading, Page
from tests.made_files import document

pytestmark = pytest.mark.integration

_WORDS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzéßñ"), min_size=1, max_size=12)
_ENDS = st.sampled_from([" ", " ", " ", ", ", ". ", "! ", "\n", "\n\n"])
PROSE = st.lists(st.tuples(_WORDS, _ENDS), max_size=150).map(lambda parts: "".join(map("".join, parts)))
ANY = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n 。. #"), max_size=300)
_BITS = st.sampled_from(
    [
        "東京は日本の首都です。",
        "這是第二句！真的？",
        "สวัสดีชาวโลก",
        "नमस्ते दुनिया। ",
        "مرحبا بالعالم؟ ",
        "Привет, мир. ",
        "👩‍👩‍👧‍👦",
        "🇩🇪🇫🇷",
        "👍🏽",
        "e\u0301\u0323 ",
        "각",
        "def f(x):\n    return x\n\n",
        "Part | Price | Weight\n",
        "Mill | 7 | 12\n",
        "a" * 400,
        "\u3000",
        "  ",
        "\n\n\n",
        "# Heading\n\n",
        "x\u0336" * 40,
    ]
)
SCRIPTS = st.lists(_BITS, max_size=120).map("".join)
LAW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def chunker(embedder_path: Path) -> Chunker:
    return Chunker(embedder_path / "tokenizer.json", tokens=24, overlap=6)


@LAW
@given(text=PROSE | ANY | SCRIPTS)
def test_no_chunk_is_longer_than_the_cap_or_empty(chunker: Chunker, text: str) -> None:
    for chunk in chunker.chunk(document(text)):
        assert chunk.text.strip()
        assert chunker.count(chunk.text) <= 24
        assert text[chunk.start :].startswith(chunk.text)


@LAW
@given(text=PROSE)
def test_every_word_is_in_some_chunk(chunker: Chunker, text: str) -> None:
    found = {word for chunk in chunker.chunk(document(text)) for word in re.findall(r"\w+", chunk.text)}
    assert set(re.findall(r"\w+", text)) <= found


@LAW
@given(pages=st.lists(PROSE | ANY | SCRIPTS, max_size=4))
def test_the_text_is_rebuilt_from_the_chunks(chunker: Chunker, pages: list[str]) -> None:
    """Exactly, whatever overlaps; white space at the end of a page aside, of which readers leave none."""
    chunks = chunker.chunk(document(*pages))
    made = rebuilt(chunks[::-1])
    last = max((at for at, page in enumerate(pages) if page.strip()), default=-1)
    assert [page.text for page in made] == [page.rstrip() for page in pages[: last + 1]]
    assert [page.number for page in made] == list(range(1, last + 2))


@LAW
@given(text=PROSE | SCRIPTS)
def test_chunks_are_the_same_again_when_they_are_cut_from_the_rebuilt_text(
    chunker: Chunker, text: str
) -> None:
    """So a document that is indexed anew keeps the ids of its chunks, and old answers their citations."""
    first = chunker.chunk(document(text.rstrip()))
    again = Document(id=document().id, title="Notes", source="notes.txt", pages=rebuilt(first))
    assert [chunk.id for chunk in chunker.chunk(again)] == [chunk.id for chunk in first]


@LAW
@given(text=SCRIPTS, data=st.data())
def test_the_section_is_the_nearest_heading_before(chunker: Chunker, text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, max(0, len(text) - 1)), max_size=5)))
    headings = tuple(Heading(start=place, text=f"At {place}") for place in places)
    page = Page(text=text, section="Chapter", headings=headings)
    for chunk in chunker.chunk(replace(document(), pages=(page,))):
        before = [heading.text for heading in headings if heading.start <= chunk.start]
        assert chunk.section == (before[-1] if before else "Chapter")


@LAW
@given(pages=st.lists(PROSE, max_size=4))
def test_ids_are_unique_and_stable(chunker: Chunker, pages: list[str]) -> None:
    chunks = chunker.chunk(document(*pages))
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert chunker.chunk(document(*pages)) == chunks
    assert all(pages[chunk.part].find(chunk.text) >= 0 for chunk in chunks)
