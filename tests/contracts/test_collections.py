"""Collections as users of a store see them: named, labelled, listed, and given vectors of another embedder."""

import threading
from collections.abc import Sequence

import pytest

from specrag.errors import StoreError
from specrag.retrieval.base import Vectors, VectorStore
from specrag.types import Chunk
from tests.made_files import chunks
from tests.stored import PRINT, put, unit


@pytest.mark.parametrize(
    "name", ["ab", "", "my docs", "ünïcode", ".hidden", "a" * 200, "a/../b", "specrag.catalogue", "x\0y"]
)
def test_names_of_collections_are_checked_with_one_sentence(store: VectorStore, name: str) -> None:
    with pytest.raises(StoreError, match=r"cannot name a collection: use 3 to 128 letters") as caught:
        store.ensure_collection(name, PRINT)
    assert "\n" not in str(caught.value)


def test_collections_can_be_described_and_deleted(store: VectorStore) -> None:
    put(store, "aaaa", 2)
    store.ensure_collection("docs", PRINT, description="The mill")
    found = store.collection("docs")
    assert (found.description, found.fingerprint, found.documents) == ("The mill", PRINT, 1)
    assert store.delete_collection("docs") == 1
    assert store.collections() == ()
    put(store, "bbbb", 1)
    assert [document.id for document in store.documents("docs")] == ["bbbb"]


def test_labels_are_set_one_by_one_and_the_others_stay(store: VectorStore) -> None:
    labels = {"title": "Mühle \0\U0001f33e", "owner": "visitor-1", "created_at": "2026-01-01T00:00:00+00:00"}
    store.ensure_collection("docs", PRINT, "The mill", labels)
    store.update_collection("docs", used_at="2026-01-02T00:00:00+00:00")
    found = store.collection("docs")
    assert (found.title, found.description, found.owner) == ("Mühle \U0001f33e", "The mill", "visitor-1")
    assert (found.created_at[:10], found.used_at[:10]) == ("2026-01-01", "2026-01-02")
    store.update_collection("docs", title="", description="", owner="")
    cleared = store.collection("docs")
    assert (cleared.title, cleared.description, cleared.owner) == ("docs", "", "")
    assert cleared.created_at == found.created_at
    store.ensure_collection("docs", PRINT)
    assert store.collection("docs") == cleared
    store.check("docs", PRINT)
    with pytest.raises(StoreError, match="no label colour"):
        store.update_collection("docs", colour="red")
    with pytest.raises(StoreError, match="no collection nothing"):
        store.update_collection("nothing", title="Nothing")


def test_labels_set_at_the_same_time_are_all_kept(store: VectorStore) -> None:
    """Metadata is written as a whole, so each of two writers put back what the other had changed."""
    store.ensure_collection("docs", PRINT)
    problems: list[BaseException] = []

    def label(name: str) -> None:
        try:
            for turn in range(8):
                store.update_collection("docs", **{name: f"{turn}"})
        except BaseException as problem:  # noqa: BLE001 - reported by the test
            problems.append(problem)

    names = ("title", "description", "owner", "used_at")
    writers = [threading.Thread(target=label, args=(name,)) for name in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = store.collection("docs")
    assert problems == []
    assert (found.title, found.description, found.owner, found.used_at) == ("7",) * 4
    store.check("docs", PRINT)


def test_all_collections_are_listed_with_their_sizes(store: VectorStore) -> None:
    assert store.infos() == []
    put(store, "aaaa", 3)
    put(store, "bbbb", 4)
    put(store, "bbbb", 2)  # replaced
    put(store, "aaaa", 5, collection="other")
    store.ensure_collection("empty", PRINT, labels={"title": "Nothing yet"})
    store.delete("other", "aaaa")
    listed = {found.name: (found.title, found.documents, found.chunks) for found in store.infos()}
    assert listed == {"docs": ("docs", 2, 5), "empty": ("Nothing yet", 0, 0), "other": ("other", 0, 0)}
    assert store.infos() == [store.collection(name) for name in store.collections()]


def test_collections_are_listed_with_the_sizes_that_are_wanted(store: VectorStore) -> None:
    put(store, "aaaa", 3)
    put(store, "bbbb", 4, collection="other")
    sizes = {found.name: (found.documents, found.chunks) for found in store.infos(counted=["other", "none"])}
    assert sizes == {"docs": (0, 0), "other": (1, 4)}
    assert [found.fingerprint for found in store.infos(counted=())] == [PRINT, PRINT]


def test_many_collections_are_listed(store: VectorStore) -> None:
    """Each visitor has some, and a server lists them in pages."""
    for number in range(130):
        store.ensure_collection(f"shelf-{number:03d}", PRINT)
    assert len(store.infos()) == len(store.collections()) == 130


def test_reindexing_changes_the_embedder_and_keeps_the_documents(store: VectorStore) -> None:
    put(store, "aaaa", 450)
    steps: list[tuple[int, int]] = []

    def embed(made: Sequence[Chunk]) -> Vectors:
        return unit(*(int(chunk.text.rpartition(" ")[2]) for chunk in made), dimension=5)

    done = store.reindex("docs", "new/5/normalised/2", embed, lambda at, total: steps.append((at, total)))
    assert (done, steps[0], steps[-1]) == (450, (0, 450), (450, 450))
    store.check("docs", "new/5/normalised/2")
    assert store.query("docs", unit(17, dimension=5)[0], 1)[0].id == "aaaa-00017"
    assert store.chunks("docs", "aaaa") == chunks("aaaa", 450)
    assert store.collections() == ("docs",)


def test_a_reindex_that_fails_changes_nothing(store: VectorStore) -> None:
    put(store, "aaaa", 3)

    def embed(_chunks: Sequence[Chunk]) -> Vectors:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.reindex("docs", "new/5/normalised/2", embed, print)
    store.check("docs", PRINT)
    assert store.query("docs", unit(2)[0], 1)[0].id == "aaaa-00002"
    assert store.collections() == ("docs",)


def test_reindexing_keeps_the_labels_also_those_set_meanwhile(store: VectorStore) -> None:
    put(store, "aaaa", 3)
    store.update_collection("docs", title="Mill", owner="visitor-1")

    def embed(made: Sequence[Chunk]) -> Vectors:
        store.update_collection("docs", title="The mill", description="Grinds")
        return unit(*(chunk.position for chunk in made), dimension=5)

    store.reindex("docs", "new/5/normalised/2", embed, lambda _done, _total: None)
    found = store.collection("docs")
    assert (found.title, found.description, found.owner) == ("The mill", "Grinds", "visitor-1")
    assert (found.fingerprint, found.chunks) == ("new/5/normalised/2", 3)


def test_documents_can_be_deleted_while_the_collection_is_indexed_anew(store: VectorStore) -> None:
    """It waited for the whole of it, an hour for a large collection."""
    put(store, "aaaa", 3)
    put(store, "bbbb", 2)

    def embed(made: Sequence[Chunk]) -> Vectors:
        deleting = threading.Thread(target=lambda: removed.append(store.delete("docs", "aaaa")))
        deleting.start()
        deleting.join(20)
        return unit(*(chunk.position for chunk in made), dimension=5)

    removed: list[int] = []
    assert store.reindex("docs", "new/5/normalised/2", embed, lambda _done, _total: None) == 2
    assert removed == [3]
    assert (store.count("docs"), store.infos()[0].chunks) == (2, 2)
