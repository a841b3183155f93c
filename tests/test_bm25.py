"""The search by words over a real store: it follows what comes in and goes out, and finds nothing else."""

import threading
from collections.abc import Sequence

import bm25s
import numpy as np
import pytest

from specrag.retrieval.bm25 import Bm25
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.postings import numbered, postings
from specrag.types import Chunk, DocumentInfo
from tests.toys import PAGES, WordEmbedder, filled_store


@pytest.fixture
def store() -> ChromaStore:
    return filled_store()


def put(store: ChromaStore, identity: str, *texts: str, collection: str = "documents") -> None:
    """Add or replace a document."""
    chunks = [
        Chunk(
            id=f"{identity}-{number:05d}",
            document_id=identity,
            title="Added",
            source="added.md",
            text=text,
            position=number,
        )
        for number, text in enumerate(texts)
    ]
    info = DocumentInfo(
        id=identity, title="Added", source="added.md", pages=1, chunks=len(chunks), added_at="2026-01-01"
    )
    store.add(collection, info, chunks, WordEmbedder().embed(list(texts)))


def test_the_passage_with_the_words_is_found(store: ChromaStore) -> None:
    (best, score), *_ = Bm25(store).search("documents", "Who founded the firm?", 3)
    assert best == "0000000000000004-00000"
    assert score > 0


def test_titles_count(store: ChromaStore) -> None:
    """The text of the passage names no newsletter."""
    (best, _), *_ = Bm25(store).search("documents", "newsletter", 3)
    assert best == "0000000000000005-00000"


def test_what_shares_no_word_is_left_out(store: ChromaStore) -> None:
    assert len(Bm25(store).search("documents", "kilograms", 10)) == 3
    assert Bm25(store).search("documents", "zebra", 10) == []
    assert Bm25(store).search("documents", "?!", 10) == []
    assert Bm25(store).search("documents", "kilograms", 0) == []


def test_only_the_chosen_documents(store: ChromaStore) -> None:
    found = Bm25(store).search("documents", "kilograms", 10, documents=["0000000000000003"])
    assert [chunk for chunk, _ in found] == ["0000000000000003-00000"]
    assert Bm25(store).search("documents", "kilograms", 10, documents=[]) == []


def test_equal_scores_come_in_order_of_their_ids(store: ChromaStore) -> None:
    """Also where only some of the equal ones are wanted."""
    for name in ("f3", "f1", "f2", "f0"):
        put(store, name * 8, "A quokka sat on the wall.")
    found = Bm25(store).search("documents", "quokka", 3)
    assert [chunk for chunk, _ in found] == [f"{name * 8}-00000" for name in ("f0", "f1", "f2")]


def test_what_comes_in_is_found_and_what_goes_is_not(store: ChromaStore) -> None:
    """The index was made once, and a new document was not found until the next start."""
    search = Bm25(store)
    assert search.search("documents", "quokka", 3) == []
    put(store, "a" * 16, "A quokka sat on the wall.")
    assert [chunk for chunk, _ in search.search("documents", "quokka", 3)] == [f"{'a' * 16}-00000"]
    put(store, "a" * 16, "A wombat sat on the wall.", "It had company.")
    assert search.search("documents", "quokka", 3) == []
    assert len(search.search("documents", "wombat company", 3)) == 2
    store.delete("documents", "a" * 16)
    assert search.search("documents", "wombat", 3) == []


def test_a_collection_that_was_emptied_and_filled_again(store: ChromaStore) -> None:
    """An index without a word cannot be laid out, and must not be asked."""
    search = Bm25(store)
    store.ensure_collection("other", WordEmbedder.fingerprint)
    assert search.search("other", "quokka", 3) == []
    put(store, "a" * 16, "?!", collection="other")
    assert len(search.search("other", "added", 3)) == 1
    store.delete_collection("other")
    store.ensure_collection("other", WordEmbedder.fingerprint)
    assert search.search("other", "added", 3) == []


class Counting:
    """A real store that counts what is read of it, and may hold a reader up."""

    def __init__(self, store: ChromaStore) -> None:
        self.store = store
        self.read: list[str] = []
        self.reading = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.held = ""

    def editions(self, collection: str) -> dict[str, str]:
        return self.store.editions(collection)

    def chunks(self, collection: str, document_id: str) -> list[Chunk]:
        self.read.append(document_id)
        if collection == self.held:
            self.reading.set()
            self.gate.wait(timeout=30)
        return self.store.chunks(collection, document_id)


def test_only_new_documents_are_read(store: ChromaStore) -> None:
    """A collection of a thousand documents was read again for each one that came in."""
    counting = Counting(store)
    search = Bm25(counting)
    search.search("documents", "kilograms", 3)
    assert len(counting.read) == len(PAGES)
    put(store, "a" * 16, "A quokka sat on the wall.")
    search.search("documents", "quokka", 3)
    search.search("documents", "kilograms", 3)
    assert counting.read[len(PAGES) :] == ["a" * 16]


def test_an_index_on_its_way_holds_up_no_other_collection(store: ChromaStore) -> None:
    store.ensure_collection("large", WordEmbedder.fingerprint)
    put(store, "b" * 16, "A wombat sat on the wall.", collection="large")
    counting = Counting(store)
    counting.held = "large"
    counting.gate.clear()
    search = Bm25(counting)
    slow: list[list[tuple[str, float]]] = []
    thread = threading.Thread(target=lambda: slow.append(search.search("large", "wombat", 1)))
    thread.start()
    assert counting.reading.wait(timeout=30)
    assert search.search("documents", "kilograms", 1)
    assert not slow
    counting.gate.set()
    thread.join(timeout=30)
    assert slow[0][0][0] == f"{'b' * 16}-00000"


def test_many_threads_find_the_same(store: ChromaStore) -> None:
    search = Bm25(store)
    found: list[list[tuple[str, float]]] = []
    threads = [
        threading.Thread(target=lambda: found.append(search.search("documents", "How many kilograms?", 3)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(found) == 8
    assert all(one == found[0] for one in found)


def test_few_indexes_are_kept(store: ChromaStore) -> None:
    """Each visitor's collection stayed in memory for good."""
    counting = Counting(store)
    search = Bm25(counting, kept=1)
    store.ensure_collection("other", WordEmbedder.fingerprint)
    put(store, "b" * 16, "A wombat sat on the wall.", collection="other")
    search.search("documents", "kilograms", 1)
    search.search("other", "wombat", 1)
    search.search("documents", "kilograms", 1)
    assert len(counting.read) == 2 * len(PAGES) + 1


def test_a_forgotten_collection_is_read_again(store: ChromaStore) -> None:
    """What a visitor has deleted stayed in memory until eight other collections were asked."""
    counting = Counting(store)
    search = Bm25(counting)
    search.search("documents", "kilograms", 1)
    search.forget("documents")
    search.forget("never seen")
    assert search.search("documents", "kilograms", 1)
    assert len(counting.read) == 2 * len(PAGES)


def test_scores_are_worth_a_share_of_what_is_possible(store: ChromaStore) -> None:
    matches = Bm25(store).matches(
        "documents", "Who founded the firm? zebra", 3, also=["0000000000000000-00000"]
    )
    best = matches.hits[0][0]
    assert 0 < matches.share("0000000000000000-00000") < matches.share(best) < 1
    assert matches.share("unknown") == 0
    # "zebra" occurs nowhere, so no text can hold all of the question
    assert 0 < matches.held("The firm was founded by Ada Brennick.") < 1


@pytest.mark.parametrize("seed", range(3))
def test_the_layout_gives_the_scores_of_bm25s(seed: int) -> None:
    """Ours is only faster; what it computes is what the library computes."""
    random = np.random.default_rng(seed)
    texts: Sequence[list[str]] = [
        [f"w{number}" for number in random.zipf(1.5, size=random.integers(1, 40)) if number < 500]
        for _ in range(60)
    ]
    reference = bm25s.BM25()
    reference.index([list(text) for text in texts], show_progress=False)
    vocabulary: dict[str, int] = {}
    ours = postings([numbered(text, vocabulary) for text in texts], vocabulary)
    assert ours is not None
    for question in (["w1", "w7"], ["w2", "w3", "w30"]):
        np.testing.assert_allclose(ours.get_scores(question), reference.get_scores(question), rtol=1e-5)
