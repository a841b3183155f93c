"""Long lists: searched as people search, sorted, and never on a page that does not exist."""

import pytest

from specrag.types import DocumentInfo
from specrag.ui.listing import SHOWN, leaf, listed


def _document(title: str, source: str, size: int = 0) -> DocumentInfo:
    return DocumentInfo(id=source, title=title, source=source, pages=1, chunks=1, added_at="", bytes=size)


DOCUMENTS = [
    _document("Étude du port", "etude.pdf", 30),
    _document("ZEBRA crossing", "street.docx", 10),
    _document("Аннотация", "notes.md", 20),
]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", ["etude.pdf", "street.docx", "notes.md"]),
        ("etude PORT", ["etude.pdf"]),
        ("étude", ["etude.pdf"]),
        ("zebra", ["street.docx"]),
        (".docx", ["street.docx"]),
        ("АННО", ["notes.md"]),
        ("zebra port", []),
    ],
)
def test_every_word_is_looked_for_in_title_and_name(search: str, found: list[str]) -> None:
    assert [item.source for item in listed(DOCUMENTS, search=search)] == found


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("added", ["etude.pdf", "street.docx", "notes.md"]),
        ("title", ["etude.pdf", "street.docx", "notes.md"]),
        ("size", ["etude.pdf", "notes.md", "street.docx"]),
        ("; drop table", ["etude.pdf", "street.docx", "notes.md"]),
    ],
)
def test_the_order_is_the_one_that_is_asked_for(sort: str, order: list[str]) -> None:
    assert [item.source for item in listed(DOCUMENTS, sort=sort)] == order


@pytest.mark.parametrize(
    ("rows", "page", "shown", "first", "last"),
    [
        (0, 1, 1, 0, 0),
        (50, 2, 1, 1, 50),
        (51, 2, 2, 51, 51),
        (51, 99, 2, 51, 51),
        (51, -3, 1, 1, 50),
    ],
)
def test_a_page_beyond_the_end_is_the_last_one(
    rows: int, page: int, shown: int, first: int, last: int
) -> None:
    """Deleting the only row of the last page once left an empty list."""
    part = leaf(range(rows), page)
    assert (part.page, part.first, part.last, part.found) == (shown, first, last, rows)
    assert len(part.rows) <= SHOWN
