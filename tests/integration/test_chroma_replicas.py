"""Several replicas on one Chroma server: whole documents or none, whoever writes, dies or comes late."""

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.errors import StoreError, StoreLocked
from specrag.library.library import SAMPLE
from specrag.retrieval.address import ChromaServer
from specrag.retrieval.base import Vectors
from specrag.retrieval.chroma import ChromaStore
from specrag.sample import ensure_sample
from specrag.types import Chunk
from tests.chroma_process import ChromaProcess
from tests.made_files import chunks
from tests.stored import PRINT, info, put, unit

pytestmark = pytest.mark.integration
NEW_PRINT = "new/8/normalised/2"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaProcess]:
    with ChromaProcess(tmp_path_factory.mktemp("chroma")) as process:
        yield process


@pytest.fixture
def place(server: ChromaProcess) -> ChromaServer:
    return server.place(database=f"test-{uuid.uuid4().hex}")


def quick(place: ChromaServer) -> ChromaServer:
    """The same place, for a replica that takes every other writer for dead at once."""
    return ChromaServer(url=place.url, database=place.database, silence_s=0.0)


class Paused(list[Chunk]):
    """Chunks that call `then` when the writer has stored the first batch; once, unless `always`."""

    def __init__(self, made: list[Chunk], then: Callable[[], object], *, always: bool = False) -> None:
        super().__init__(made)
        self._then: Callable[[], object] | None = then
        self._always = always

    def __getitem__(self, index: slice) -> list[Chunk]:  # type: ignore[override]
        if index.start and self._then is not None:
            then, self._then = self._then, self._then if self._always else None
            then()
        return super().__getitem__(index)


def together(*works: Callable[[], object]) -> list[BaseException]:
    """Run all at once; the errors."""
    errors: list[BaseException] = []
    starting = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        starting.wait()
        try:
            work()
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def script(text: str, place: ChromaServer, *arguments: str) -> subprocess.Popen[bytes]:
    head = (
        "import os, signal, sys\n"
        "from specrag.retrieval.address import ChromaServer\n"
        "from specrag.retrieval.chroma import ChromaStore\n"
        "from tests.stored import info, put, unit\n"
        "from tests.made_files import chunks\n"
        "store = ChromaStore(ChromaServer(url=sys.argv[1], database=sys.argv[2]))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", head + text, place.url, place.database, *arguments],
        cwd=Path(__file__).parents[2],
    )


WRITER = """
for turn in range(5):
    put(store, f"{sys.argv[3]}{turn}", 250, first_seed=250 * turn)
store.close()
"""


def test_two_processes_write_different_documents_at_once(place: ChromaServer) -> None:
    """Embedded Chroma loses rows silently in this case; the server must not, and readers see whole documents."""
    writers = [script(WRITER, place, name) for name in ("left", "right")]
    store = ChromaStore(place)
    while any(writer.poll() is None for writer in writers):
        if "docs" in store.collections():
            found = store.query("docs", unit(3)[0], 20)
            ready = {document.id for document in store.documents("docs")}
            assert {passage.document_id for passage in found} <= ready
            assert all(len(store.chunks("docs", one)) == 250 for one in ready)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(store.documents("docs")) == 10
    assert store.count("docs") == 10 * 250
    for document in store.documents("docs"):
        assert store.chunks("docs", document.id) == chunks(document.id, 250)
    store.close()


def test_the_same_document_by_two_replicas_at_once_is_there_once(place: ChromaServer) -> None:
    one, other = ChromaStore(place), ChromaStore(place)
    for turn in range(5):
        name = f"doc{turn}"
        works = [lambda store=store, name=name: put(store, name, 220) for store in (one, other)]
        assert together(*works) == []
        assert one.chunks("docs", name) == chunks(name, 220)
    assert one.count("docs") == 5 * 220
    assert len(other.query("docs", unit(3)[0], 2000)) == 5 * 220
    one.close()
    other.close()


def test_two_replicas_that_delete_and_add_the_same_document_leave_it_whole_or_gone(
    place: ChromaServer,
) -> None:
    one, other = ChromaStore(place), ChromaStore(place)
    for _ in range(3):
        put(one, "aaaa", 220)
        together(lambda: other.delete("docs", "aaaa"), lambda: put(one, "aaaa", 220))
        assert len(one.chunks("docs", "aaaa")) == (220 if one.find("docs", "aaaa") else 0)
        assert one.count("docs") == len(one.chunks("docs", "aaaa"))
    one.close()
    other.close()


KILLED = """
class Killing(list):
    def __getitem__(self, index):
        if index.start >= 400:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)

store.add("docs", info("half", 600), Killing(chunks("half", 600)), unit(*range(600)))
"""


def test_what_a_killed_replica_left_is_never_found_and_goes_away(place: ChromaServer) -> None:
    store = ChromaStore(place)
    put(store, "ready", 230)
    killed = script(KILLED, place)
    while killed.poll() is None:
        assert {one.document_id for one in store.query("docs", unit(5)[0], 300)} == {"ready"}
    assert killed.wait() == -signal.SIGKILL
    assert store.count("docs") == 230 + 400
    assert len(store.query("docs", unit(5)[0], 700)) == 230
    assert store.find("docs", "half") is None
    ChromaStore(place).close()
    assert store.count("docs") == 230 + 400, (
        "a replica that starts meanwhile must wait: it may still be alive"
    )
    ChromaStore(quick(place)).close()
    assert store.count("docs") == 230
    put(store, "half", 600)
    assert store.count("docs") == 830
    store.close()


def test_a_replica_that_is_already_there_sweeps_too(place: ChromaServer) -> None:
    store = ChromaStore(quick(place))
    put(store, "ready", 5)
    assert script(KILLED, place).wait() == -signal.SIGKILL
    put(store, "more", 5)
    assert store.count("docs") == 10
    store.close()


def test_a_replica_that_starts_leaves_alone_what_another_is_writing(place: ChromaServer) -> None:
    """`tidy` took every row without a line for the remains of a killed process."""
    store = ChromaStore(place)
    store.ensure_collection("docs", PRINT)
    made = Paused(chunks("aaaa", 500), lambda: ChromaStore(place).close())
    store.add("docs", info("aaaa", 500), made, unit(*range(500)))
    assert store.chunks("docs", "aaaa") == chunks("aaaa", 500)
    store.close()


def test_a_writer_that_was_taken_for_dead_writes_again(place: ChromaServer) -> None:
    store = ChromaStore(place)
    store.ensure_collection("docs", PRINT)
    made = Paused(chunks("aaaa", 500), lambda: ChromaStore(quick(place)).close())
    store.add("docs", info("aaaa", 500), made, unit(*range(500)))
    assert store.chunks("docs", "aaaa") == chunks("aaaa", 500)
    assert store.count("docs") == 500
    made = Paused(chunks("bbbb", 500), lambda: ChromaStore(quick(place)).close(), always=True)
    with pytest.raises(StoreError, match="add it again"):
        store.add("docs", info("bbbb", 500), made, unit(*range(500)))
    assert (store.find("docs", "bbbb"), store.count("docs")) == (None, 500)
    store.close()


def embed(made: Sequence[Chunk]) -> Vectors:
    """Another embedder of as many dimensions."""
    return unit(*(10_000 + int(chunk.text.rpartition(" ")[2]) for chunk in made))


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


def test_a_document_that_comes_in_or_goes_during_a_reindex_is_treated_as_everywhere(
    place: ChromaServer,
) -> None:
    one, other = ChromaStore(place), ChromaStore(place)
    put(one, "aaaa", 220)
    put(one, "bbbb", 10)
    busy: list[bool] = []

    def meanwhile(made: Sequence[Chunk]) -> Vectors:
        if not busy:
            busy.append(True)
            put(other, "late", 30)
            other.delete("docs", "bbbb")
        return embed(made)

    assert one.reindex("docs", NEW_PRINT, meanwhile, quiet) == 250
    assert {document.id for document in one.documents("docs")} == {"aaaa", "late"}
    assert one.count("docs") == 250
    assert one.query("docs", embed(chunks("new", 30))[29], 2)[1].id == "late-00029"
    with pytest.raises(StoreError, match="SPECRAG_EMBEDDER back"):
        other.add("docs", info("old", 1), chunks("old", 1), unit(1))  # a vector of the embedder before
    one.close()
    other.close()


def test_a_switch_waits_for_who_is_in_the_middle_of_writing(place: ChromaServer) -> None:
    one, other = ChromaStore(place), ChromaStore(place)
    put(one, "aaaa", 20)
    copied = threading.Event()

    def embed_and_say(made: Sequence[Chunk]) -> Vectors:
        copied.set()
        return embed(made)

    indexing = threading.Thread(target=lambda: one.reindex("docs", NEW_PRINT, embed_and_say, quiet))

    def begin() -> None:
        indexing.start()
        assert copied.wait(30)
        indexing.join(1.0)
        assert indexing.is_alive()

    made = Paused(chunks("bbbb", 900), begin)
    other.add("docs", info("bbbb", 900), made, unit(*range(900)))
    indexing.join()
    one.check("docs", NEW_PRINT)
    assert one.count("docs") == 920
    assert one.chunks("docs", "bbbb") == chunks("bbbb", 900)
    one.close()
    other.close()


def test_two_replicas_index_anew_at_once(place: ChromaServer) -> None:
    one, other = ChromaStore(place), ChromaStore(place)
    put(one, "aaaa", 450)
    errors = together(
        lambda: one.reindex("docs", NEW_PRINT, embed, quiet),
        lambda: other.reindex("docs", NEW_PRINT, embed, quiet),
    )
    assert all(isinstance(error, StoreLocked) and "by another process" in str(error) for error in errors)
    assert len(errors) < 2
    one.check("docs", NEW_PRINT)
    assert one.chunks("docs", "aaaa") == chunks("aaaa", 450)
    assert one.query("docs", embed(chunks("new", 30))[7], 1)[0].id == "aaaa-00007"
    assert one.collections() == ("docs",)
    one.close()
    other.close()


def test_a_reader_never_notices_the_switch(place: ChromaServer) -> None:
    one, other = ChromaStore(place), ChromaStore(place)
    put(one, "aaaa", 50)
    done = threading.Event()
    answers: list[int] = []

    def read() -> None:
        while not done.is_set():
            assert other.collections() == ("docs",)
            answers.append(len(other.query("docs", unit(3)[0], 50)))

    def index() -> None:
        for turn in range(10):
            one.reindex("docs", f"new/8/normalised/{turn}", embed, quiet)
        done.set()

    assert together(read, index) == []
    assert set(answers) == {50}
    one.close()
    other.close()


def test_labels_are_seen_by_all_replicas_and_those_of_others_stay(place: ChromaServer) -> None:
    """A replica had read the metadata before, and wrote back what it remembered."""
    one, other = ChromaStore(place), ChromaStore(place)
    put(one, "aaaa", 2)
    assert [found.title for found in other.infos()] == ["docs"]
    one.update_collection("docs", title="Mill", owner="visitor-1")
    other.update_collection("docs", used_at="2026-01-02T00:00:00+00:00")
    one.update_collection("docs", title="The mill")
    for store in (one, other):
        (found,) = store.infos()
        assert (found.title, found.owner, found.used_at[:10]) == ("The mill", "visitor-1", "2026-01-02")
    one.close()
    other.close()


def test_a_label_set_by_another_replica_during_a_reindex_stays(place: ChromaServer) -> None:
    one, other = ChromaStore(place), ChromaStore(place)
    put(one, "aaaa", 20)

    def embed_and_label(made: Sequence[Chunk]) -> Vectors:
        other.update_collection("docs", title="Mill")
        return embed(made)

    one.reindex("docs", NEW_PRINT, embed_and_label, quiet)
    assert (one.collection("docs").title, other.collection("docs").fingerprint) == ("Mill", NEW_PRINT)
    one.close()
    other.close()


KILLED_REINDEX = """
store.reindex("docs", "new", lambda made: os.kill(os.getpid(), signal.SIGKILL), lambda done, total: None)
"""


def test_a_reindex_that_was_killed_is_undone_and_can_be_begun_again(place: ChromaServer) -> None:
    store = ChromaStore(place)
    put(store, "aaaa", 30)
    assert script(KILLED_REINDEX, place).wait() == -signal.SIGKILL
    store.check("docs", PRINT)
    put(store, "bbbb", 5)
    with pytest.raises(StoreLocked, match="by another process"):
        store.reindex("docs", NEW_PRINT, embed, quiet)
    later = ChromaStore(quick(place))
    assert later.reindex("docs", NEW_PRINT, embed, quiet) == 35
    assert store.query("docs", embed(chunks("new", 30))[7], 1)[0].id == "aaaa-00007"
    assert store.collections() == ("docs",)
    store.close()
    later.close()


def test_two_replicas_that_start_at_once_make_one_sample(
    place: ChromaServer, tmp_path: Path, embedder_path: Path
) -> None:
    settings = load_settings(
        {},
        home=tmp_path,
        embedder=str(embedder_path),
        chroma_url=place.url,
        chroma_database=place.database,
        threads=1,
    )
    replicas = [Parts(settings), Parts(settings)]
    store = replicas[0].store
    # A page of an older version of the sample, which both want to remove.
    store.ensure_collection(SAMPLE, replicas[0].embedder.fingerprint)
    store.add(SAMPLE, info("outdated", 1), chunks("outdated", 1), np.ones((1, 384), dtype=np.float32))
    assert together(*(lambda parts=parts: ensure_sample(parts.indexer) for parts in replicas)) == []
    documents = store.documents(SAMPLE)
    assert "outdated" not in {document.id for document in documents}
    assert len(documents) == len({document.title for document in documents}) >= 10
    assert store.count(SAMPLE) == sum(document.chunks for document in documents)
    assert all(len(store.chunks(SAMPLE, one.id)) == one.chunks for one in documents)
    for parts in replicas:
        parts.close()


def test_a_reindex_that_was_taken_for_dead_takes_nothing_along(place: ChromaServer) -> None:
    """It wakes in the middle of the reindex that has taken over, whose copy has the name that its own had."""
    slow, other = ChromaStore(place), ChromaStore(quick(place))
    put(slow, "aaaa", 30)
    copying, woken = threading.Event(), threading.Event()

    def take_over_and_wait(made: Sequence[Chunk]) -> Vectors:
        copying.set()
        assert woken.wait(30)
        return embed(made)

    done: list[int] = []
    taking = threading.Thread(
        target=lambda: done.append(other.reindex("docs", NEW_PRINT, take_over_and_wait, quiet))
    )

    def sleep(made: Sequence[Chunk]) -> Vectors:
        taking.start()
        assert copying.wait(30)
        return embed(made)

    with pytest.raises(StoreError, match=r"cannot be|took over"):
        slow.reindex("docs", "new/8/normalised/3", sleep, quiet)
    ChromaStore(place).close()  # nor does a replica that starts
    woken.set()
    taking.join()
    assert done == [30]
    other.check("docs", NEW_PRINT)
    assert slow.chunks("docs", "aaaa") == chunks("aaaa", 30)
    assert other.collections() == ("docs",)
    slow.close()
    other.close()


def test_a_reindex_waits_for_a_killed_writer_before_it_holds_up_the_others(
    server: ChromaProcess, place: ChromaServer
) -> None:
    """All writers were held up for as long as the note of a killed one counted: 10 minutes."""
    other, one = ChromaStore(place), ChromaStore(replace(place, silence_s=6.0))
    put(other, "ready", 5)
    assert script(KILLED, place).wait() == -signal.SIGKILL
    waits: list[float] = []

    def progress(done: int, total: int) -> None:
        if done == total and len(waits) < 5:  # all is copied, and the end of the killed one is waited for
            began = time.monotonic()
            put(other, f"meanwhile{len(waits)}", 1)
            waits.append(time.monotonic() - began)

    one.reindex("docs", NEW_PRINT, embed, progress)
    assert len(waits) == 5
    assert max(waits) < 3
    one.check("docs", NEW_PRINT)
    assert {document.id for document in one.documents("docs")} == {
        "ready",
        *(f"meanwhile{at}" for at in range(5)),
    }
    other.close()
    one.close()
