"""A citation opens its passage where it stands, also when it is older than the chunks, the file or the program."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.errors import DocumentError, StoreError
from specrag.ingest.base import Box, PageImage
from specrag.leaves import WINDOW, leaves_of, place_of, window_of
from specrag.retrieval.chroma import ChromaStore
from specrag.types import Chunk, DocumentInfo, Passage
from specrag.viewer import PageView, Viewer
from tests.toys import WordEmbedder

COLLECTION = "documents"
MANUAL = (
    "The lamp holds 640 watt-hours.\n\nIt weighs 3.4 kilograms.",
    "Charge it in the shade. A full charge takes six hours. Keep the contacts dry.",
    "",
    "The lamp was invented by Ines Tolland.",
)


def cut(*pages: str, size: int = 30, overlap: int = 8, identity: str = "a" * 16) -> list[Chunk]:
    """Chunks as the chunker makes them: they know their place, and neighbours overlap."""
    made: list[Chunk] = []
    for part, text in enumerate(pages):
        end = 0
        for begin in range(0, len(text), size):
            start = max(0, begin - overlap) if begin else 0
            piece = text[start : begin + size]
            if not piece.strip():
                continue
            start += len(piece) - len(piece.lstrip())
            piece = piece.strip()
            made.append(
                Chunk(
                    id=f"{identity}-{len(made):05d}",
                    document_id=identity,
                    title="Lamp manual",
                    source="lamp.pdf",
                    text=piece,
                    position=len(made),
                    page=part + 1,
                    section=f"Section {part + 1}",
                    part=part,
                    start=start,
                    gap=text[end:start],
                )
            )
            end = start + len(piece)
    return made


def older(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The same as a version stored them that knew no places."""
    return [replace(chunk, part=0, start=0, gap="", section=None) for chunk in chunks]


def passage_of(chunk: Chunk) -> Passage:
    return Passage(
        id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        text=chunk.text,
        page=chunk.page,
        source=chunk.source,
        published_at=None,
        score=0.5,
        section=chunk.section,
    )


def put(
    store: ChromaStore, chunks: Sequence[Chunk], pages: int, media_type: str = "application/pdf"
) -> DocumentInfo:
    """A document in the store."""
    document = DocumentInfo(
        id=chunks[0].document_id,
        title="Lamp manual",
        source=chunks[0].source,
        pages=pages,
        chunks=len(chunks),
        added_at="2026-01-01T00:00:00+00:00",
        media_type=media_type,
    )
    store.ensure_collection(COLLECTION, WordEmbedder.fingerprint)
    store.add(COLLECTION, document, chunks, WordEmbedder().embed([chunk.text for chunk in chunks]))
    return document


@pytest.fixture
def store() -> ChromaStore:
    return ChromaStore(None)


class Kept:
    """Originals that were kept, all in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def path(self, collection: str, document_id: str) -> Path | None:
        return self._path


class Drawer:
    """Draws pages by noting what was asked for."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[tuple[int, str, tuple[str, ...]]] = []
        self.fails = fails

    def page_image(
        self,
        path: Path,
        number: int,
        *,
        password: str | None = None,
        passage: str = "",
        evidence: Sequence[str] = (),
        width: int = 1000,
    ) -> PageImage:
        self.asked.append((number, passage, tuple(evidence)))
        if self.fails:
            raise DocumentError("corrupt", "Page 2 of lamp.pdf cannot be drawn.")
        box = Box(left=0.1, top=0.1, width=0.5, height=0.02)
        return PageImage(
            data=b"page %d" % number, media_type="image/webp", width=width, height=width, passage=(box,)
        )


def marked(view: PageView, mark: str) -> list[str]:
    return [piece.text for piece in view.text if piece.mark == mark]


def shown(view: PageView) -> str:
    return "".join(piece.text for piece in view.text)


@given(
    st.lists(st.text(alphabet="ab \n。é", max_size=80), min_size=1, max_size=4),
    st.integers(5, 40),
    st.integers(0, 4),
)
def test_pages_are_rebuilt_and_every_chunk_stands_where_it_was_cut(
    pages: list[str], size: int, overlap: int
) -> None:
    """A place that is off by one marks the wrong words; overlapping chunks must not repeat text."""
    chunks = cut(*pages, size=size, overlap=overlap)
    leaves = leaves_of(chunks)
    for part, page in enumerate(leaves.pages):
        assert page.text == pages[part].rstrip()
    for chunk in chunks:
        place = place_of(leaves, passage_of(chunk))
        assert place
        assert leaves.pages[place.part].text[place.start : place.end] == chunk.text
        if len(chunks) > 1:
            assert (place.part, place.start) == (chunk.part, chunk.start), chunks


def test_the_passage_stands_at_its_page_with_its_evidence_inside(store: ChromaStore) -> None:
    """A citation that always opened chunk 0 was worse than none (ragflow#8594)."""
    chunks = cut(*MANUAL, size=60)
    put(store, chunks, len(MANUAL))
    cited = next(chunk for chunk in chunks if "six hours" in chunk.text)
    view = Viewer(store, None, None).open(
        COLLECTION, cited.document_id, passage=passage_of(cited), evidence=["A full charge takes six hours."]
    )
    assert (view.part, view.parts, view.page, view.section) == (1, 4, 2, "Section 2")
    assert shown(view) == MANUAL[1]
    assert marked(view, "evidence") == ["A full charge takes six hours."]
    assert "".join(marked(view, "passage")) + "".join(marked(view, "evidence")) != ""
    inside = [piece.text for piece in view.text if piece.mark != "none"]
    assert "".join(inside) == cited.text
    assert view.marked


def test_pages_are_turned_and_marks_stay_on_their_page(store: ChromaStore) -> None:
    chunks = cut(*MANUAL, size=60)
    put(store, chunks, len(MANUAL))
    viewer, cited = Viewer(store, None, None), passage_of(chunks[0])
    identity = cited.document_id
    for part in (1, 2, 3):
        view = viewer.open(COLLECTION, identity, passage=cited, part=part)
        assert shown(view) == MANUAL[part]
        assert not view.marked
        assert {piece.mark for piece in view.text} <= {"none"}
        assert view.page == part + 1
    assert viewer.open(COLLECTION, identity, part=99).part == 3
    assert viewer.open(COLLECTION, identity, part=-5).part == 0
    assert viewer.open(COLLECTION, identity).part == 0


def test_documents_of_an_older_version_are_shown_chunk_by_chunk(store: ChromaStore) -> None:
    """They know no places: all of them would stand at the start of the first page."""
    chunks = older(cut(*MANUAL, size=30, overlap=18))
    put(store, chunks, len(MANUAL), media_type="")
    view = Viewer(store, None, None).open(COLLECTION, chunks[0].document_id, passage=passage_of(chunks[3]))
    assert "".join(marked(view, "passage")) == chunks[3].text
    assert view.page == chunks[3].page == 2
    assert shown(view) == MANUAL[1], "the overlap of neighbours is shown once"


def test_a_passage_is_found_by_its_text_after_the_document_was_cut_anew(store: ChromaStore) -> None:
    """The chunk of the same number holds other text now; a mark by number would point at the wrong lines."""
    before, after = cut(*MANUAL, size=60), cut(*MANUAL, size=17, overlap=0)
    put(store, after, len(MANUAL))
    cited = passage_of(next(chunk for chunk in before if "six hours" in chunk.text))
    respaced = replace(cited, text=cited.text.replace(" ", "\n  "))
    for passage in (cited, respaced):
        view = Viewer(store, None, None).open(COLLECTION, cited.document_id, passage=passage)
        assert view.page == 2
        assert "".join(marked(view, "passage")) == cited.text


def test_a_passage_that_is_no_longer_there_is_not_marked_anywhere(store: ChromaStore) -> None:
    chunks = cut(*MANUAL)
    put(store, chunks, len(MANUAL))
    gone = replace(passage_of(chunks[0]), text="It glows in the dark.")
    view = Viewer(store, None, None).open(COLLECTION, chunks[0].document_id, passage=gone)
    assert view.place is None
    assert not view.marked
    assert shown(view) == MANUAL[0]


def test_the_newer_version_of_a_replaced_document_is_opened_if_it_says_the_same(store: ChromaStore) -> None:
    old = cut(*MANUAL, identity="b" * 16)
    put(store, cut(MANUAL[0], MANUAL[1] + " Wipe it."), 2)
    viewer = Viewer(store, None, None)
    view = viewer.open(COLLECTION, "b" * 16, passage=passage_of(old[0]))
    assert view.replaced
    assert view.document.id == "a" * 16
    assert "".join(marked(view, "passage")) == old[0].text
    with pytest.raises(StoreError, match="no longer in its collection"):
        viewer.open(COLLECTION, "b" * 16, passage=replace(passage_of(old[0]), text="Other words."))
    with pytest.raises(StoreError):
        viewer.open(COLLECTION, "b" * 16, passage=replace(passage_of(old[0]), source="another.pdf"))


def test_a_deleted_document_is_not_shown_from_memory(store: ChromaStore) -> None:
    """What was rebuilt is kept, and a deleted document must be gone all the same."""
    chunks = cut(*MANUAL)
    put(store, chunks, len(MANUAL))
    viewer = Viewer(store, None, None)
    viewer.open(COLLECTION, chunks[0].document_id)
    store.delete(COLLECTION, chunks[0].document_id)
    for hostile in (chunks[0].document_id, "", "../../etc/passwd", "x" * 10_000, "%", '"'):
        with pytest.raises(StoreError):
            viewer.open(COLLECTION, hostile)
    with pytest.raises(StoreError):
        viewer.open("no-such-collection", chunks[0].document_id)


def test_of_a_page_of_any_length_a_window_around_the_passage_is_shown(store: ChromaStore) -> None:
    """A text file is one page: 20 million characters would freeze the page that shows them."""
    text = "\n".join(f"Line {number} of the log." for number in range(200_000))
    chunks = cut(text, size=100_000, overlap=0)
    chunks = [replace(chunk, source="log.txt", page=None) for chunk in chunks]
    put(store, chunks, 1, media_type="text/plain")
    cited = replace(passage_of(chunks[20]), id="elsewhere", text="Line 100000 of the log.")
    viewer = Viewer(store, None, None)
    view = viewer.open(COLLECTION, cited.document_id, passage=cited)
    assert marked(view, "passage") == ["Line 100000 of the log."]
    assert len(shown(view)) <= WINDOW
    assert 0 < view.start < view.end < view.characters
    later = viewer.open(COLLECTION, cited.document_id, passage=cited, at=view.end)
    assert later.start == view.end, "nothing is left out between two windows"
    assert shown(later).startswith("Line ")
    assert not marked(later, "passage")
    first = viewer.open(COLLECTION, cited.document_id, passage=cited, at=-10_000)
    assert first.start == 0
    last = viewer.open(COLLECTION, cited.document_id, at=10**12)
    assert last.end == last.characters
    assert last.start < last.end


@given(st.integers(0, 3 * WINDOW), st.integers(-WINDOW, 4 * WINDOW), st.booleans())
def test_a_window_is_inside_the_text_and_never_empty(length: int, at: int, spaces: bool) -> None:
    text = ("word " if spaces else "xxxxx") * (length // 5)
    start, end = window_of(text, at, None)
    assert 0 <= start <= end <= len(text)
    assert end - start <= WINDOW
    assert start < end or not text


def test_a_pdf_is_drawn_with_what_is_to_be_marked_on_it(store: ChromaStore, tmp_path: Path) -> None:
    chunks = cut(*MANUAL, size=60)
    put(store, chunks, len(MANUAL))
    cited = passage_of(next(chunk for chunk in chunks if "six hours" in chunk.text))
    drawer = Drawer()
    viewer = Viewer(store, Kept(tmp_path / "original"), drawer)
    evidence = ["A full charge takes six hours."]
    fast = viewer.open(COLLECTION, cited.document_id, passage=cited, evidence=evidence, draw=False)
    assert fast.drawable
    assert fast.image is None
    assert not drawer.asked, "the text is there before the page is drawn"
    view = viewer.open(COLLECTION, cited.document_id, passage=cited, evidence=evidence)
    assert view.image
    assert view.image.data == b"page 2"
    again = viewer.open(COLLECTION, cited.document_id, passage=cited, evidence=evidence, draw=False)
    assert again.image == view.image, "what is drawn already comes at once"
    turned = viewer.open(COLLECTION, cited.document_id, passage=cited, evidence=evidence, part=2)
    assert turned.image, "a page without text can be looked at"
    assert drawer.asked == [(2, cited.text, tuple(evidence)), (3, "", ())], "a page is drawn once"


def test_a_page_that_cannot_be_drawn_is_shown_as_text_with_the_reason(
    store: ChromaStore, tmp_path: Path
) -> None:
    chunks = cut(*MANUAL)
    put(store, chunks, len(MANUAL))
    view = Viewer(store, Kept(tmp_path / "original"), Drawer(fails=True)).open(
        COLLECTION, chunks[0].document_id, part=1
    )
    assert view.image is None
    assert view.image_error == "Page 2 of lamp.pdf cannot be drawn."
    assert shown(view) == MANUAL[1]


@pytest.mark.parametrize("media_type", ["text/html", "text/plain", "image/svg+xml"])
def test_only_pdfs_are_drawn(store: ChromaStore, tmp_path: Path, media_type: str) -> None:
    """An HTML original is never rendered: what it does would happen on our page."""
    put(store, cut(*MANUAL), 4, media_type=media_type)
    drawer = Drawer()
    view = Viewer(store, Kept(tmp_path / "original"), drawer).open(COLLECTION, "a" * 16)
    assert not view.drawable
    assert not drawer.asked
