"""The store as its users see it, wherever it is kept: nothing lost, nothing left over, one embedder a collection."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from specrag.errors import StoreError
from specrag.retrieval.base import VectorStore
from specrag.types import Chunk
from tests.made_files import chunks
from tests.stored import PRINT, info, put, unit


def test_what_goes_in_comes_out(store: VectorStore) -> None:
    vectors = put(store, "aaaa", 3)
    assert store.documents("docs") == [info("aaaa", 3)]
    assert store.document("docs", "aaaa") == info("aaaa", 3)
    assert store.chunks("docs", "aaaa") == chunks("aaaa", 3)
    assert store.count("docs") == 3
    order = ["aaaa-00002", "aaaa-00000", "aaaa-00002"]
    assert np.allclose(store.vectors("docs", order), vectors[[2, 0, 2]], atol=1e-6)


def test_a_query_ranks_by_cosine_and_scores_stay_within_zero_and_one(store: VectorStore) -> None:
    vectors = put(store, "aaaa", 30)
    expected = np.clip(vectors @ vectors[7], 0, 1)
    found = store.query("docs", vectors[7], 30)
    assert found[0].id == "aaaa-00007"
    assert len(found) == 30
    assert [passage.score for passage in found] == sorted((passage.score for passage in found), reverse=True)
    for passage in found:
        assert passage.score == pytest.approx(float(expected[int(passage.id[-5:])]), abs=1e-5)


def test_a_large_collection_is_searched_too(store: VectorStore) -> None:
    """Above a thousand chunks the approximate index answers."""
    vectors = put(store, "aaaa", 1300)
    found = store.query("docs", vectors[1234], 3)
    assert found[0].id == "aaaa-01234"
    assert found[0].score == pytest.approx(1.0, abs=1e-5)
    exact = np.sort(vectors @ vectors[1234])[::-1][:3]
    assert [passage.score for passage in found] == pytest.approx(exact.tolist(), abs=1e-5)


def test_equal_vectors_do_not_hide_a_better_one(store: VectorStore) -> None:
    """Chroma's index loses rows among hundreds of equal vectors, such as a page printed again and again."""
    store.ensure_collection("docs", PRINT)
    same = np.repeat(unit(1), 400, axis=0)
    store.add("docs", info("aaaa", 400), chunks("aaaa", 400), same)
    put(store, "bbbb", 1, first_seed=2)
    assert store.query("docs", unit(2)[0], 1)[0].id == "bbbb-00000"


def test_an_empty_collection_answers_with_nothing(store: VectorStore) -> None:
    store.ensure_collection("docs", PRINT)
    assert store.query("docs", unit(1)[0], 5) == []
    assert store.vectors("docs", []).size == 0


def test_deleting_reports_what_was_removed_and_nothing_of_it_is_found(store: VectorStore) -> None:
    put(store, "aaaa", 450)
    put(store, "bbbb", 2, first_seed=900)
    assert store.delete("docs", "aaaa") == 450
    assert store.count("docs") == 2
    assert store.find("docs", "aaaa") is None
    assert store.chunks("docs", "aaaa") == []
    assert {passage.document_id for passage in store.query("docs", unit(0)[0], 10)} == {"bbbb"}
    with pytest.raises(StoreError, match="no document aaaa"):
        store.delete("docs", "aaaa")


def test_the_same_document_lives_in_two_collections(store: VectorStore) -> None:
    put(store, "aaaa", 3)
    put(store, "aaaa", 3, collection="other")
    store.delete("docs", "aaaa")
    assert store.count("other") == 3
    assert store.collections() == ("docs", "other")


def test_adding_again_replaces_and_leaves_no_old_chunk(store: VectorStore) -> None:
    """Re-indexing elsewhere added new chunks and never deleted the old ones."""
    put(store, "aaaa", 5)
    put(store, "aaaa", 2)
    assert (store.count("docs"), store.document("docs", "aaaa").chunks) == (2, 2)


def test_text_that_databases_refuse_is_stored(store: VectorStore) -> None:
    chunk = Chunk(
        id="aaaa-00000", document_id="aaaa", title="a\0b", source="\ud800.txt", text="x\ud800\0y", position=0
    )
    store.ensure_collection("docs", PRINT, description="about \0 things")
    store.add("docs", info("aaaa", 1, title="lone \udfff"), [chunk], unit(1))
    assert store.chunks("docs", "aaaa")[0].text == "x\ufffdy"
    assert store.document("docs", "aaaa").title == "lone \ufffd"


def test_a_collection_has_one_embedder(store: VectorStore) -> None:
    put(store, "aaaa", 2)
    with pytest.raises(StoreError, match=r"SPECRAG_EMBEDDER back.*documents reindex --collection docs"):
        store.ensure_collection("docs", "other/8/normalised/2")
    with pytest.raises(StoreError, match="model/8/normalised/1"):
        store.check("docs", "other/8/normalised/2")
    with pytest.raises(StoreError, match="8 dimensions"):
        store.query("docs", unit(1, dimension=5)[0], 2)
    store.check("docs", PRINT)


def test_a_missing_collection_is_named(store: VectorStore) -> None:
    for ask in (
        store.count,
        store.documents,
        store.collection,
        lambda name: store.query(name, unit(1)[0], 1),
    ):
        with pytest.raises(StoreError, match="no collection nothing"):
            ask("nothing")
    assert store.find("nothing", "aaaa") is None


def test_documents_are_listed_newest_first(store: VectorStore) -> None:
    store.ensure_collection("docs", PRINT)
    for identity, day in (("old", 1), ("new", 3), ("mid", 2)):
        document = info(identity, 1, added_at=f"2026-01-0{day}T00:00:00+00:00")
        store.add("docs", document, chunks(identity, 1), unit(day))
    assert [document.id for document in store.documents("docs")] == ["new", "mid", "old"]


def test_a_document_is_not_found_before_all_of_it_is_in(store: VectorStore) -> None:
    store.ensure_collection("docs", PRINT)
    seen: list[tuple[int, bool]] = []

    class Watching(list[Chunk]):
        def __getitem__(self, index: slice) -> list[Chunk]:  # type: ignore[override]
            found = store.query("docs", unit(0)[0], 5) if store.count("docs") else []
            seen.append((len(found), store.find("docs", "aaaa") is None))
            return super().__getitem__(index)

    store.add("docs", info("aaaa", 500), Watching(chunks("aaaa", 500)), unit(*range(500)))
    assert seen == [(0, True)] * 3
    assert len(store.query("docs", unit(0)[0], 5)) == 5


def test_a_failed_add_leaves_nothing(store: VectorStore) -> None:
    class Broken(list[Chunk]):
        def __getitem__(self, index: slice) -> list[Chunk]:  # type: ignore[override]
            if index.start:
                raise KeyError("lost")
            return super().__getitem__(index)

    store.ensure_collection("docs", PRINT)
    with pytest.raises(KeyError):
        store.add("docs", info("aaaa", 300), Broken(chunks("aaaa", 300)), unit(*range(300)))
    assert store.count("docs") == 0
    assert store.documents("docs") == []


def test_everything_that_is_known_of_chunks_and_documents_comes_back(store: VectorStore) -> None:
    chunk = Chunk(
        id="aaaa-00000-abcdef",
        document_id="aaaa",
        title="Prices",
        source="prices.xlsx",
        text="Mill | 7",
        position=0,
        page=3,
        published_at="2025-03-01",
        section="Sheet \U0001f9ed",
        lead="Part | Price",
        part=2,
        start=120,
        gap="\n\n\u3000",
    )
    document = replace(
        info("aaaa", 1), media_type="text/csv", characters=77, bytes=9_000_000_000, chunker="chunks-v2-64-8"
    )
    store.ensure_collection("docs", PRINT)
    store.add("docs", document, [chunk], unit(1))
    assert store.documents("docs") == [document]
    assert store.chunks("docs", "aaaa") == [chunk]
    assert store.lookup("docs", [chunk.id]) == {chunk.id: chunk}
    found = store.query("docs", unit(1)[0], 1)[0]
    assert (found.section, found.lead, found.page) == (chunk.section, chunk.lead, 3)


@pytest.mark.parametrize("size", [40, 600])
def test_a_query_is_limited_to_documents(store: VectorStore, size: int) -> None:
    """Small collections are compared exactly, large ones by the index; both fill all k places."""
    for place, identity in enumerate(("aaaa", "bbbb", "cccc")):
        put(store, identity, size, first_seed=place * size)
    every = unit(*range(3 * size))
    asked = unit(0)[0]  # is of aaaa
    for documents, rows in ((["bbbb"], slice(size, 2 * size)), ({"bbbb", "cccc"}, slice(size, 3 * size))):
        found = store.query("docs", asked, 25, documents)
        assert {passage.document_id for passage in found} <= set(documents)
        best = np.clip(np.sort(every[rows] @ asked)[::-1][:25], 0, 1)
        assert [passage.score for passage in found] == pytest.approx(best.tolist(), abs=1e-5)
    assert store.query("docs", asked, 3, []) == []
    assert store.query("docs", asked, 3, ["gone"]) == []
    assert store.query("docs", asked, 1, ["gone", "aaaa"])[0].id == "aaaa-00000"
    store.delete("docs", "bbbb")
    assert store.query("docs", asked, 3, ["bbbb"]) == []


def test_a_query_limited_to_many_documents_of_many(store: VectorStore) -> None:
    """A visitor may tick hundreds of documents, more than a condition of a database easily takes."""
    store.ensure_collection("docs", PRINT)
    put(store, "bulk", 1000, first_seed=5000)
    for number in range(250):
        made = chunks(f"d{number:03d}", 5)
        store.add("docs", info(f"d{number:03d}", 5), made, unit(*range(number * 5, number * 5 + 5)))
    wanted = [f"d{number:03d}" for number in range(250)]
    found = store.query("docs", unit(777)[0], 400, wanted)
    assert (found[0].id, len(found)) == ("d155-00002", 400)
    assert all(passage.document_id != "bulk" for passage in found)


def test_chunks_are_looked_up_and_those_that_are_not_ready_are_left_out(store: VectorStore) -> None:
    put(store, "aaaa", 300)
    put(store, "bbbb", 2)
    wanted = ["bbbb-00001", "gone-00000", "aaaa-00299", *(chunk.id for chunk in chunks("aaaa", 250))]
    found = store.lookup("docs", wanted)
    assert list(found) == [one for one in wanted if one != "gone-00000"]
    assert found["aaaa-00299"] == chunks("aaaa", 300)[299]
    assert store.lookup("docs", []) == {}
    store.delete("docs", "bbbb")
    assert store.lookup("docs", ["bbbb-00001"]) == {}
    seen: list[int] = []

    class Watching(list[Chunk]):
        def __getitem__(self, index: slice) -> list[Chunk]:  # type: ignore[override]
            seen.append(len(store.lookup("docs", ["cccc-00000"])))
            return super().__getitem__(index)

    store.add("docs", info("cccc", 300), Watching(chunks("cccc", 300)), unit(*range(300)))
    assert seen == [0, 0]
    with pytest.raises(StoreError, match="no collection nothing"):
        store.lookup("nothing", ["aaaa-00000"])


def test_an_edition_changes_with_its_document_only(store: VectorStore) -> None:
    """An index of words is built anew only when these change."""
    put(store, "aaaa", 3)
    put(store, "bbbb", 3)
    before = store.editions("docs")
    assert before.keys() == {"aaaa", "bbbb"}
    assert store.editions("docs") == before
    put(store, "aaaa", 2)
    after = store.editions("docs")
    assert after["bbbb"] == before["bbbb"]
    assert after["aaaa"] != before["aaaa"]
    store.delete("docs", "bbbb")
    assert store.editions("docs").keys() == {"aaaa"}
    with pytest.raises(StoreError, match="no collection nothing"):
        store.editions("nothing")


def test_readers_and_a_writer_share_the_store(store: VectorStore) -> None:
    put(store, "aaaa", 50)
    problems: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(30):
                assert len(store.query("docs", unit(3)[0], 5)) == 5
                assert all(len(store.chunks("docs", one.id)) in (50, 0) for one in store.documents("docs"))
        except BaseException as problem:  # noqa: BLE001 - reported by the test
            problems.append(problem)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(6):
        put(store, f"more{turn}", 50, first_seed=1000 + turn)
        store.delete("docs", f"more{turn}")
    for reader in readers:
        reader.join()
    assert problems == []
    assert store.count("docs") == 50
