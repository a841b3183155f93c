"""The Documents tab's HTML: what a visitor can read there, and that no file can write into the page."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from specrag.config import load_settings
from specrag.library.shelves import Shelf
from specrag.types import Chunk, DocumentInfo
from specrag.ui import document_cards
from specrag.ui.document_cards import JobView, ReindexView
from specrag.ui.listing import leaf
from tests.ui_html import Element, find, inside

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>${1+1}{{2}}'
NOTES = DocumentInfo(
    id="d1",
    title="Harbour notes",
    source="notes.pdf",
    pages=1200,
    chunks=3,
    added_at="2026-01-02T10:11:12+00:00",
    published_at="2025-05-06",
    media_type="application/pdf",
    bytes=1_234_567,
)
BAD = DocumentInfo(
    id=HOSTILE, title=HOSTILE, source=HOSTILE, pages=1, chunks=1, added_at=HOSTILE, published_at=HOSTILE
)


def _texts(elements: Sequence[Element]) -> list[str]:
    return [element.text for element in elements]


def _buttons(html: str) -> dict[str, list[str]]:
    """What can be done, and to what."""
    found: dict[str, list[str]] = {}
    for one in find(html, "button"):
        if "data-sr-action" in one.attributes:
            found.setdefault(one.attributes["data-sr-action"], []).append(one.attributes["data-sr-id"])
    return found


def _is_harmless(html: str) -> None:
    assert not find(html, "script")
    assert not find(html, "img")
    assert not [one for one in find(html, "button") if any(name.startswith("on") for name in one.attributes)]
    assert "${" not in html
    assert "{{" not in html


# Files on their way


def test_each_file_on_its_way_says_where_it_is_and_can_be_cancelled() -> None:
    jobs = [
        JobView(id="1", name="a.pdf", state="embedding", done=30, total=120),
        JobView(id="2", name="b.pdf", state="reading", done=7, total=1300),
        JobView(id="3", name="c.md", state="reading"),
        JobView(id="4", name="d.md", state="queued"),
        JobView(id="5", name="e.md", state="queued", before=1),
    ]
    html = document_cards.uploads(jobs)
    assert _texts(find(html, "h3")) == ["5 files on their way"]
    assert _texts(find(html, "sr-job")) == [
        "a.pdf embedding 30 of 120 chunks Cancel a.pdf",
        "b.pdf reading page 7 of 1,300 Cancel b.pdf",
        "c.md reading opening it Cancel c.md",
        "d.md queued next in line Cancel d.md",
        "e.md queued 1 file before it Cancel e.md",
    ]
    assert _buttons(html) == {"cancel-all": [""], "cancel": ["1", "2", "3", "4", "5"]}
    bars = find(html, "sr-progress")
    assert [bar.attributes.get("aria-valuenow") for bar in bars] == ["30", "7", None]
    assert "width:25.00%" in inside(html, bars[0], "i")[0].attributes["style"]


def test_a_file_that_did_not_arrive_says_why_and_what_to_do() -> None:
    jobs = [
        JobView(id="1", name="a.pdf", state="failed", message="a.pdf is cut off.", retryable=True),
        JobView(
            id="2",
            name="b.pdf",
            state="failed",
            message="b.pdf needs a password.",
            retryable=True,
            encrypted=True,
        ),
        JobView(id="3", name="c.pdf", state="duplicate", twin="old.pdf"),
        JobView(id="4", name="d.pdf", state="cancelled", message="d.pdf was cancelled."),
        JobView(id="5", name="e.pdf", state="ready", pages=1, chunks=2),
    ]
    html = document_cards.uploads(jobs)
    assert _texts(find(html, "h3")) == ["4 files not added"]
    assert _texts(find(html, "sr-job-message")) == [
        "a.pdf is cut off.",
        "b.pdf needs a password.",
        "It has the same content as “old.pdf”, which is in this collection already; nothing was added.",
        "d.pdf was cancelled.",
    ]
    assert _buttons(html) == {"dismiss-all": [""], "retry": ["1", "2"], "dismiss": ["1", "2", "3", "4"]}
    plain, locked = (one for one in find(html, "button") if one.attributes.get("data-sr-action") == "retry")
    assert "data-sr-password" in locked.attributes
    assert "data-sr-password" not in plain.attributes


def test_nothing_on_its_way_takes_no_room() -> None:
    assert not find(document_cards.uploads([JobView(id="1", name="a", state="ready")]), "section")


def test_an_archive_of_hundreds_is_counted_and_not_listed() -> None:
    jobs = [JobView(id=str(n), name=f"{n}.txt", state="queued", before=n) for n in range(400)]
    html = document_cards.uploads(jobs)
    assert _texts(find(html, "h3")) == ["400 files on their way"]
    assert find(html, "sr-job")[-1].text == "and 370 more that wait"


def test_arrivals_are_told_to_a_screen_reader_and_many_of_them_in_one_sentence() -> None:
    ready = JobView(id="1", name="a.pdf", state="ready", pages=2, chunks=9)
    failed = JobView(id="2", name="b.pdf", state="failed")
    few = document_cards.arrivals([ready, failed])
    assert find(few, "p")[0].text == "a.pdf was added: 2 pages, 9 chunks. b.pdf was not added: failed."
    many = document_cards.arrivals([ready] * 9 + [failed])
    assert find(many, "p")[0].text == "9 of 10 files were added."


# Documents


def test_a_document_says_what_it_is() -> None:
    html = document_cards.documents_list(leaf([NOTES], 1), total=1, warnings={"d1": "Page 3 has no text."})
    assert find(html, "sr-file-title")[0].text == "Harbour notes"
    assert find(html, "sr-file-source")[0].text == "notes.pdf"
    assert find(html, "sr-file-warning")[0].text == "Note Page 3 has no text."
    assert _texts(find(html, "dd")) == [
        "PDF",
        "1,200 pages",
        "3 chunks",
        "1.2 MB",
        "2025-05-06",
        "2026-01-02 10:11",
    ]
    assert _buttons(html) == {
        "delete-ticked": [""],
        "open": ["document:d1"],
        "chunks": ["d1"],
        "delete": ["d1"],
    }


def test_deleting_asks_first_and_says_what_goes() -> None:
    html = document_cards.documents_list(leaf([NOTES], 1), total=1)
    (delete,) = (one for one in find(html, "button") if one.attributes.get("data-sr-action") == "delete")
    assert "Delete “Harbour notes” with its 3 chunks?" in delete.attributes["data-sr-confirm"]


def test_a_read_only_collection_offers_no_change() -> None:
    html = document_cards.documents_list(leaf([NOTES, replace(NOTES, id="d2")], 1), total=2, read_only=True)
    assert set(_buttons(html)) == {"open", "chunks"}
    assert not find(html, "input")


def test_a_thousand_documents_come_fifty_at_a_time() -> None:
    documents = [replace(NOTES, id=f"d{n}", title=f"T{n}") for n in range(1000)]
    html = document_cards.documents_list(leaf(documents, 2), total=1000)
    titles = _texts(find(html, "sr-file-title"))
    assert (len(titles), titles[0], titles[-1]) == (50, "T50", "T99")
    assert find(html, "sr-pager")[0].text == "Previous 51 to 100 of 1,000 Next"
    assert [one.attributes["data-sr-value"] for one in inside(html, find(html, "nav")[0], "button")] == [
        "1",
        "3",
    ]


def test_the_ends_of_a_list_lead_nowhere() -> None:
    documents = [replace(NOTES, id=f"d{n}") for n in range(60)]
    for page, disabled in ((1, [True, False]), (2, [False, True])):
        html = document_cards.documents_list(leaf(documents, page), total=60)
        buttons = inside(html, find(html, "nav")[0], "button")
        assert ["disabled" in one.attributes for one in buttons] == disabled


@pytest.mark.parametrize(
    ("total", "searched", "busy", "text"),
    [
        (0, "", False, "No documents yet"),
        (12, "whale", False, "No document matches “whale”"),
        (0, "", True, ""),
    ],
)
def test_an_empty_list_says_why(total: int, searched: str, busy: bool, text: str) -> None:
    html = document_cards.documents_list(leaf([], 1), total=total, searched=searched, busy=busy)
    assert _texts(find(html, "h3")) == ([text] if text else [])


@pytest.mark.parametrize(
    ("media_type", "source", "word"),
    [
        ("application/pdf", "a.bin", "PDF"),
        ("", "a.docx", "DOCX"),
        ("text/plain", "README", "text"),
        ("text/plain", "a.<b>", "text"),
    ],
)
def test_the_type_is_a_word_that_people_use(media_type: str, source: str, word: str) -> None:
    assert document_cards.type_of(replace(NOTES, media_type=media_type, source=source)) == word


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_499, "999 kB"), (1_250_000, "1.2 MB")]
)
def test_sizes_are_in_units_of_a_thousand(size: int, text: str) -> None:
    assert document_cards.size_text(size) == text


# Chunks


def test_chunks_are_numbered_and_say_where_they_stand() -> None:
    chunks = [
        Chunk(
            id="a",
            document_id="d1",
            title="t",
            source="s",
            text="<b>first</b>",
            position=0,
            page=2,
            section="Tides",
            lead="port | high water",
        ),
        Chunk(id="b", document_id="d1", title="t", source="s", text="second", position=1),
    ]
    html = document_cards.chunks_list(NOTES, leaf(chunks, 1), focus="4")
    assert _texts(find(html, "li")) == [
        "chunk 1, page 2, Tides, 12 characters header row port | high water <b>first</b>",
        "chunk 2, 6 characters second",
    ]
    assert find(html, "h3")[0].attributes["data-sr-focus"] == "4"
    assert _buttons(html) == {"close-chunks": ["d1"]}


def test_a_long_document_shows_fifty_chunks() -> None:
    chunks = [
        Chunk(id=str(n), document_id="d1", title="t", source="s", text=f"row {n}", position=n)
        for n in range(120)
    ]
    html = document_cards.chunks_list(NOTES, leaf(chunks, 3))
    assert (find(html, "h3")[0].text, len(find(html, "li"))) == ("120 chunks of Harbour notes", 20)
    assert _buttons(html)["chunks"] == ["d1", "d1"]


# Collections


def test_a_collection_says_what_it_holds_and_what_can_be_done() -> None:
    shelf = Shelf(name="c-1", title="Harbour", description="Tides and ships.", documents=2, chunks=1200)
    html = document_cards.shelf_card(shelf)
    assert find(html, "sr-shelf-facts")[0].text == "2 documents, 1,200 chunks"
    assert _buttons(html) == {"new": [""], "edit": ["c-1"], "export": ["c-1"], "delete-collection": ["c-1"]}
    (delete,) = (one for one in find(html, "button") if "data-sr-bad" in one.attributes)
    assert "“Harbour” with its 2 documents and 1,200 chunks?" in delete.attributes["data-sr-confirm"]
    assert document_cards.choice_of(shelf) == "Harbour (2 documents)"


def test_the_sample_cannot_be_changed() -> None:
    shelf = Shelf(name="sample", title="Sample", documents=1, read_only=True, mismatch=True)
    html = document_cards.shelf_card(shelf)
    assert set(_buttons(html)) == {"new", "export"}
    assert "read-only" in find(html, "sr-shelf-facts")[0].text
    assert document_cards.choice_of(shelf) == "Sample (1 document, read-only, wants re-indexing)"


def test_a_collection_that_ends_says_when() -> None:
    shelf = Shelf(name="c", title="Mine", expires_at="2026-03-04T05:06:07+00:00")
    assert "deleted on 2026-03-04 unless used before" in document_cards.shelf_card(shelf)
    assert document_cards.choice_of(shelf) == "Mine (0 documents, kept until 2026-03-04)"


@pytest.mark.parametrize(
    ("shelf", "sentence"),
    [
        (Shelf(name="c", title="C", mismatch=True), "vectors come from another embedder"),
        (Shelf(name="c", title="C", stale=1), "1 document was cut into chunks in an older way"),
    ],
)
def test_an_outdated_collection_offers_to_be_indexed_anew(shelf: Shelf, sentence: str) -> None:
    html = document_cards.shelf_card(shelf)
    assert sentence in html
    assert _buttons(html)["reindex"] == ["c"]


def test_re_indexing_shows_how_far_it_is_and_can_be_stopped() -> None:
    shelf = Shelf(name="c", title="C", mismatch=True)
    html = document_cards.shelf_card(shelf, ReindexView(done=50, total=200))
    assert "Re-indexing: 50 of 200 chunks" in find(html, "sr-reindex")[0].text
    assert "reindex" not in _buttons(html)
    assert _buttons(html)["cancel-reindex"] == ["c"]
    ended = document_cards.shelf_card(shelf, ReindexView(done=0, total=0, message="It failed.", failed=True))
    assert find(ended, "sr-reindex-end")[0].text == "It failed."


@pytest.mark.parametrize(
    ("given", "sentences"),
    [
        ({}, ["At most 50 MB a file", "Everybody who can open this page", "until somebody deletes them"]),
        ({"access": "visitor", "visitor_days": 3}, ["Only this browser", "deleted after 3 days without use"]),
        ({"max_file_mb": 7, "keep_originals": False}, ["At most 7 MB a file", "Only the text is kept"]),
        ({"ocr": False}, ["Scans without a text layer cannot be read"]),
    ],
)
def test_the_limits_are_those_of_the_settings(given: dict[str, object], sentences: list[str]) -> None:
    html = document_cards.limits(load_settings({}, **given), "PDF", writable=True)
    text = " ".join(_texts(find(html, "p")))
    assert [sentence for sentence in sentences if sentence not in text] == []


# Hostile names


@pytest.mark.parametrize(
    "html",
    [
        document_cards.uploads(
            [
                JobView(id=HOSTILE, name=HOSTILE, state=state, message=HOSTILE, twin=HOSTILE, retryable=True)
                for state in ("queued", "reading", "failed", "duplicate", "cancelled")
            ]
        ),
        document_cards.documents_list(
            leaf([BAD] * 60, 1), total=60, searched=HOSTILE, warnings={HOSTILE: HOSTILE}
        ),
        document_cards.documents_list(leaf([], 1), total=60, searched=HOSTILE),
        document_cards.chunks_list(
            BAD,
            leaf(
                [
                    Chunk(
                        id=HOSTILE,
                        document_id=HOSTILE,
                        title=HOSTILE,
                        source=HOSTILE,
                        text=HOSTILE,
                        position=0,
                        section=HOSTILE,
                        lead=HOSTILE,
                    )
                ]
                * 60,
                1,
            ),
        ),
        document_cards.shelf_card(
            Shelf(name=HOSTILE, title=HOSTILE, description=HOSTILE, mismatch=True),
            ReindexView(done=0, total=0, message=HOSTILE),
        ),
        document_cards.arrivals([JobView(id="1", name=HOSTILE, state="ready")]),
    ],
    ids=["uploads", "documents", "nothing found", "chunks", "collection", "arrivals"],
)
def test_a_hostile_name_stays_text(html: str) -> None:
    """File names, titles and sections come from whoever uploads, and from inside archives."""
    _is_harmless(html)
    assert "alert(1)" in re.sub(r"<[^>]*>", "", html)


def test_a_source_that_is_no_web_address_is_no_link() -> None:
    bad = replace(NOTES, source="javascript:alert(1)//x")
    assert not find(document_cards.documents_list(leaf([bad], 1), total=1), "a")
    good = replace(NOTES, source="https://example.org/a")
    assert find(document_cards.documents_list(leaf([good], 1), total=1), "a")
