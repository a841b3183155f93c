"""Editions of a document that are replaced, at moments and by clocks that a test chooses."""

from collections.abc import Callable, Iterator
from itertools import repeat

import pytest

from specrag.retrieval.catalogue import Catalogue
from specrag.retrieval.client import make, open_client
from specrag.retrieval.editions import Editions
from specrag.retrieval.nearest import Nearest
from specrag.retrieval.underway import UnderWay
from tests.made_files import chunks
from tests.stored import info, unit


class Shelf:
    """The parts of a store in memory around one collection."""

    def __init__(self) -> None:
        opened = open_client(None)
        self.close: Callable[[], None] = opened.close
        self.times: Iterator[int] = repeat(2_000)
        notes = make(opened.client, "notes", {})
        underway = UnderWay(notes, clock=lambda: next(self.times), silence_s=opened.silence_s)
        self.catalogue = Catalogue(make(opened.client, "catalogue", {}))
        self.rows = make(opened.client, "docs", {})
        self.editions = Editions(self.catalogue, underway, lambda _name: self.rows)

    def put(self, count: int) -> None:
        self.editions.add("docs", info("aaaa", count), chunks("aaaa", count), unit(*range(count)))


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    made = Shelf()
    yield made
    made.close()


def test_a_document_is_replaced_though_the_clock_was_set_back(shelf: Shelf) -> None:
    """The new edition had an older stamp, so the old one went on counting and the new one was removed."""
    shelf.put(5)
    shelf.times = repeat(1_000)
    shelf.put(2)
    assert shelf.catalogue.all("docs") == [info("aaaa", 2)]
    assert shelf.rows.count() == 2


def test_a_document_that_is_replaced_during_a_question_is_found(shelf: Shelf) -> None:
    """Its old rows had been read, and did not count any more; the new ones were not read."""
    shelf.put(3)
    replacements = [5, 2]

    def counting(editions: set[tuple[str, str]]) -> set[tuple[str, str]]:
        if replacements:
            shelf.put(replacements.pop())
        return shelf.catalogue.counting("docs", editions)

    found = Nearest().passages(shelf.rows, unit(1)[0], 9, counting)
    assert replacements == []
    assert found[0].id == "aaaa-00001"
    assert len(found) == 5
