"""The file of traces: older files, several writers, what people say of runs, and when runs make room."""

import json
import multiprocessing
import random
import sqlite3
import string
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specrag.errors import TraceError, UsageError
from specrag.library.visitors import PASSING
from specrag.tracing.codec import events_to_json, to_json
from specrag.tracing.store import RunFilter, TraceStore
from specrag.tracing.trace import Trace
from specrag.types import Parent
from tests.kept_runs import keep, kept, told
from tests.ui_traces import HOSTILE, SELECTED

VERSION_1 = """
CREATE TABLE IF NOT EXISTS runs (
    run_id     TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    pipeline   TEXT NOT NULL,
    question   TEXT NOT NULL,
    status     TEXT NOT NULL,
    decision   TEXT,
    elapsed_ms REAL NOT NULL,
    trace      BLOB NOT NULL,
    events     BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_by_time ON runs (created_at DESC);
"""
"""As version 0.1.0 wrote it."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.db"


@pytest.fixture
def store(path: Path) -> TraceStore:
    return TraceStore(path)


def version_1(path: Path, *traces: Trace, damaged: str = "") -> None:
    """A file as version 0.1.0 left it; the documents of the run `damaged` cannot be read."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(VERSION_1)
        for trace in traces:
            blobs = (zlib.compress(text.encode()) for text in (to_json(trace), events_to_json(told(trace))))
            row = (
                trace.run_id,
                trace.created_at,
                trace.pipeline,
                trace.question,
                trace.status,
                trace.decision.kind if trace.decision else None,
                trace.elapsed_ms,
                *(b"damaged" if trace.run_id == damaged else blob for blob in blobs),
            )
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def test_a_file_of_version_1_keeps_every_run(path: Path) -> None:
    """An update of the program must not lose or hide what was kept before it."""
    old = [replace(SELECTED, run_id=f"r{number}", created_at=f"2026-01-0{number}") for number in (1, 2)]
    version_1(path, *old)
    store = TraceStore(path)
    assert [store.load(trace.run_id) for trace in old] == old
    assert [type(event).__name__ for event in store.events("r1")] == ["RunStarted", "RunFinished"]
    listed, count = store.find(None, RunFilter())
    assert ([run.run_id for run in listed], count) == (["r2", "r1"], 2)
    first = store.summary("r1")
    assert SELECTED.answer is not None
    assert SELECTED.decision is not None
    assert first.answer == SELECTED.answer.text[:200]
    assert (first.decision, first.elapsed_ms) == (SELECTED.decision.kind, SELECTED.elapsed_ms)
    assert (first.owner, first.feedback, first.comment, first.shared, first.imported) == (
        "",
        None,
        "",
        False,
        False,
    )
    assert store.find(None, RunFilter(text="three NIGHTS"))[1] == 2
    keep(store, "r3", created_at="2026-01-03")
    assert store.recent(1)[0].run_id == "r3"
    assert TraceStore(path).find(None, RunFilter())[1] == 3


def test_a_damaged_run_of_version_1_does_not_keep_the_others_away(path: Path) -> None:
    version_1(path, kept("good"), kept("bad"), damaged="bad")
    store = TraceStore(path)
    assert {run.run_id for run in store.recent()} == {"good", "bad"}
    assert store.summary("bad").question == kept("bad").question
    assert store.load("good") == kept("good")


def test_a_file_of_a_newer_version_is_one_sentence(path: Path) -> None:
    TraceStore(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(TraceError, match=r"of a newer version of specrag; install that"):
        TraceStore(path)


def test_a_file_that_is_no_database_is_one_sentence(path: Path) -> None:
    path.write_text("this is not a database, and long enough to be taken for one" * 50)
    with pytest.raises(TraceError, match=r"traces\.db cannot be used"):
        TraceStore(path)


def test_recent_runs_come_newest_first(store: TraceStore) -> None:
    for number in range(3):
        keep(store, f"r{number}", created_at=f"2026-01-0{number + 1}")
    assert [run.run_id for run in store.recent(2)] == ["r2", "r1"]


def write_many(path: Path, name: str) -> None:
    """What another process does: opens the file and writes."""
    store = TraceStore(path)
    for number in range(20):
        keep(store, f"{name}-{number}", owner=name)
        store.rate(f"{name}-{number}", "up", name)


@pytest.mark.parametrize("old", [False, True])
def test_several_processes_open_and_write_at_once(path: Path, old: bool) -> None:
    """The page and the command line; who came second used to be told that the database is locked."""
    if old:
        version_1(path, *(kept(f"old-{number}") for number in range(50)))
    spawned = multiprocessing.get_context("spawn")
    names = ["a", "b", "c", "d"]
    writers = [spawned.Process(target=write_many, args=(path, name)) for name in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 4
    store = TraceStore(path)
    assert {name: store.find(name, RunFilter(rating="up"))[1] for name in names} == dict.fromkeys(names, 20)
    assert store.find("", RunFilter())[1] == (50 if old else 0)


@pytest.fixture
def held(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program that has begun to write."""
    TraceStore(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_reading_goes_on_while_another_program_writes(path: Path, held: sqlite3.Connection) -> None:
    assert TraceStore(path).recent() == []


def test_writing_waits_until_another_program_has_written(path: Path, held: sqlite3.Connection) -> None:
    store = TraceStore(path)
    writer = threading.Thread(target=keep, args=(store, "r1"))
    writer.start()
    writer.join(0.3)
    assert writer.is_alive()
    held.execute("COMMIT")
    writer.join(10)
    assert store.load("r1") == kept("r1")


def test_a_run_says_what_a_list_shows(store: TraceStore) -> None:
    keep(
        store,
        "r1",
        owner="visitor:a",
        answer="Three nights. " * 50,
        decision="fallback",
        rewritten="How long may boats stay at the quay?",
        parent=Parent(run_id="r0", step="draft"),
        elapsed_ms=1234.5,
    )
    run = store.summary("r1")
    assert (run.owner, run.decision, run.parent, run.elapsed_ms) == ("visitor:a", "fallback", "r0", 1234.5)
    assert run.rewritten == "How long may boats stay at the quay?"
    assert run.answer == ("Three nights. " * 50)[:200]
    assert store.children("r0") == [run]
    assert store.children("r1") == []


def test_a_run_that_is_kept_again_keeps_what_people_said_of_it(store: TraceStore) -> None:
    keep(store, "r1", answer="Seven")
    store.rate("r1", "down", "It is three")
    store.share("r1", shared=True)
    keep(store, "r1", answer="Three")
    run = store.summary("r1")
    assert (run.answer, run.feedback, run.comment, run.shared) == ("Three", "down", "It is three", True)
    assert store.load("r1") == kept("r1", answer="Three")


def test_a_rating_is_taken_back(store: TraceStore) -> None:
    keep(store, "r1")
    store.rate("r1", "up", "good")
    store.rate("r1", None)
    assert (store.summary("r1").feedback, store.summary("r1").comment) == (None, "")


def test_what_is_not_there_is_one_sentence(store: TraceStore) -> None:
    for ask in (store.load, store.events, store.summary):
        with pytest.raises(TraceError, match="There is no run “nothing” here"):
            ask("nothing")
    with pytest.raises(TraceError, match="There is no run"):
        store.rate("nothing", "up")
    with pytest.raises(TraceError, match="There is no run"):
        store.share("nothing", shared=True)
    assert store.delete(["nothing"], None) == 0


def test_an_id_that_is_hostile_is_said_harmlessly(store: TraceStore) -> None:
    with pytest.raises(TraceError) as refused:
        store.load("\x00\u202e\n" + "x" * 1000)
    assert len(str(refused.value)) < 200
    assert str(refused.value).isprintable()


def test_texts_that_no_database_takes_are_kept_all_the_same(store: TraceStore) -> None:
    """A model behind a server can send lone surrogates; the run was lost."""
    keep(store, "r1", question=HOSTILE, answer=HOSTILE)
    assert "alert(1)" in store.summary("r1").question
    assert store.load("r1").question.startswith("<script>")


def test_deleting_takes_only_what_is_an_owners(store: TraceStore) -> None:
    for run_id, owner in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        keep(store, run_id, owner=owner)
    assert store.delete(["a1", "b1", "a1"], "a") == 1
    assert {run.run_id for run in store.recent()} == {"a2", "b1"}
    assert store.delete(["a2", "b1"], None) == 2
    assert store.recent() == []


def test_what_is_deleted_is_not_left_in_the_file(store: TraceStore, path: Path) -> None:
    """Deleted rows stay readable in the pages of an SQLite file unless they are overwritten."""
    keep(store, "r1", question="The password is Larkspur-4711")
    assert b"Larkspur-4711" in path.read_bytes()
    store.delete(["r1"], None)
    assert all(b"Larkspur-4711" not in file.read_bytes() for file in path.parent.iterdir())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM recordings").fetchone() == (0,)


def test_thousands_are_deleted_in_one_go(store: TraceStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = [(f"r{n}", "2026", "speculative", "Q", "done", 1.0, "q") for n in range(3000)]
        connection.executemany(
            "INSERT INTO runs (run_id, created_at, pipeline, question, status, elapsed_ms, words) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
    assert store.delete([row[0] for row in rows], None) == 3000


def test_clearing_deletes_what_matches_and_nothing_else(store: TraceStore) -> None:
    keep(store, "a1", owner="a", decision="fallback")
    keep(store, "a2", owner="a")
    keep(store, "b1", owner="b", decision="fallback")
    assert store.clear("a", RunFilter(decisions=("fallback",))) == 1
    assert {run.run_id for run in store.recent()} == {"a2", "b1"}


def test_the_oldest_make_room_but_not_what_is_shared_or_rated(path: Path) -> None:
    store = TraceStore(path, max_runs=3)
    for run_id in ("r1", "r2", "r3"):
        keep(store, run_id)
    store.rate("r1", "up")
    store.share("r2", shared=True)
    keep(store, "r4")
    assert {run.run_id for run in store.recent()} == {"r1", "r2", "r4"}
    with pytest.raises(TraceError, match="There is no run"):
        store.load("r3")
    keep(store, "r5")
    store.rate("r5", "down")
    keep(store, "r6")  # only such are left, and the run that was just made
    assert {run.run_id for run in store.recent()} == {"r2", "r5", "r6"}


def test_one_with_many_runs_costs_nobody_else_theirs(path: Path) -> None:
    """A visitor, or a program, that asks again and again would empty the histories of all others."""
    store = TraceStore(path, max_runs=4)
    keep(store, "anns", owner="ann")
    for number in range(9):
        keep(store, f"bens-{number}", owner="ben")
    assert {run.run_id for run in store.recent()} == {"anns", "bens-6", "bens-7", "bens-8"}
    smaller = TraceStore(path, max_runs=2)
    keep(smaller, "bens-9", owner="ben")
    assert {run.run_id for run in smaller.recent()} == {"anns", "bens-9"}


def test_runs_that_nobody_can_open_again_make_room_first(path: Path) -> None:
    """Each call without a cookie is an owner of its own, so twenty of them pushed out all runs of a visitor."""
    store = TraceStore(path, max_runs=10)
    for number in range(5):
        keep(store, f"anns-{number}", owner="visitor:ann")
    for number in range(20):
        keep(store, f"gone-{number}", owner=f"{PASSING}{number}")
    kept_runs = {run.run_id for run in store.recent()}
    assert {f"anns-{number}" for number in range(5)} <= kept_runs
    assert len(kept_runs) == 10


def test_what_one_has_imported_is_bounded(path: Path) -> None:
    """Only the number of runs was: five thousand files of fifty megabytes fill any disk."""
    store = TraceStore(path, max_imported_mb=1)
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=400_000))
    large = [kept(f"i{number}", answer=noise) for number in range(4)]
    for trace in large[:3]:
        assert store.add(trace, told(trace), owner="ann")
    with pytest.raises(UsageError, match=r"may take 1 MB \(SPECRAG_MAX_IMPORTED_MB\)"):
        store.add(large[3], told(large[3]), owner="ann")
    assert {run.run_id for run in store.recent()} == {"i0", "i1", "i2"}
    with pytest.raises(TraceError, match="There is no run"):
        store.load("i3")
    store.save(kept("own", answer=noise), [], owner="ann")  # what was answered here is no import
    assert store.add(large[3], told(large[3]), owner="ben")
    assert store.delete(["i0"], "ann") == 1
    fourth = kept("i4", answer=noise)
    assert store.add(fourth, told(fourth), owner="ann")


def test_what_visitors_left_behind_expires(store: TraceStore) -> None:
    """Their collections are deleted after some days; the questions and passages in their runs stayed."""
    march, april = "2026-03-01T00:00:00+00:00", "2026-04-01T00:00:00+00:00"
    for run_id, owner, created_at in (
        ("old", "visitor:a", march),
        ("shared", "visitor:a", march),
        ("users", "user:a", march),
        ("operators", "", march),
        ("new", "visitor:a", april),
    ):
        keep(store, run_id, owner=owner, created_at=created_at)
    ancient = kept("ancient", created_at="1999-01-01")
    store.add(ancient, told(ancient), owner="visitor:a")
    store.share("shared", shared=True)
    assert store.expire(datetime(2026, 3, 15, tzinfo=UTC), "visitor:") == 1
    assert {run.run_id for run in store.recent()} == {"shared", "users", "operators", "new", "ancient"}
    keep(store, "later", owner="visitor:a", created_at=april)
    assert store.expire(datetime(2026, 4, 2, tzinfo=UTC), "visitor:") == 3
    assert {run.run_id for run in store.recent()} == {"shared", "users", "operators"}


def test_an_imported_run_of_long_ago_is_not_the_first_to_go(path: Path) -> None:
    """It would be deleted by the very import, since its date is the oldest."""
    store = TraceStore(path, max_runs=2)
    keep(store, "r1")
    keep(store, "r2")
    old = kept("old", created_at="1999-01-01")
    assert store.add(old, told(old), owner="")
    keep(store, "r3")
    assert {run.run_id for run in store.recent()} == {"old", "r3"}
    assert store.summary("old").imported


def test_an_import_never_replaces_a_run(store: TraceStore) -> None:
    mine = keep(store, "r1", owner="a")
    theirs = kept("r1", question="Not theirs?")
    assert not store.add(theirs, told(theirs), owner="b")
    assert store.load("r1") == mine
    assert store.summary("r1").owner == "a"


def test_the_documents_are_readable_by_other_tools(store: TraceStore, path: Path) -> None:
    """The file is documented as one that any SQLite tool can read."""
    keep(store, "r1")
    with closing(sqlite3.connect(path)) as connection:
        (blob,) = connection.execute("SELECT trace FROM recordings").fetchone()
    assert json.loads(zlib.decompress(blob))["schema"] == "specrag.trace/1"
