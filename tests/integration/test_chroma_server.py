"""A Chroma server that is down, restarted, silent, guarded or something else: right afterwards, or one sentence."""

import asyncio
import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import httpx
import pytest
from pydantic import SecretStr

from specrag.build import Parts
from specrag.config import load_settings
from specrag.doctor import diagnose
from specrag.errors import StoreError, StoreUnreachable
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Request
from specrag.retrieval.address import ChromaServer
from specrag.retrieval.chroma import ChromaStore
from specrag.types import Chunk
from tests.chroma_process import ChromaProcess
from tests.made_files import chunks
from tests.stored import PRINT, info, put, unit

pytestmark = pytest.mark.integration
TOKEN = "s3cret-of-the-test"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaProcess]:
    with ChromaProcess(tmp_path_factory.mktemp("chroma")) as process:
        yield process


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[ChromaProcess]:
    """A server of the test's own, to be killed."""
    with ChromaProcess(tmp_path) as process:
        yield process


class Gate(BaseHTTPRequestHandler):
    """A proxy before Chroma, as one stands before most servers: it wants a token, or does what a test says."""

    behind: ClassVar[str] = ""
    refuses_databases: ClassVar[bool] = False
    busy: ClassVar[list[int]] = []
    """Answers to give before the next right one."""
    watch: ClassVar[Callable[[str], int | None]]
    """Told the path of each request; may say with which status to answer it instead."""

    def handle_request(self) -> None:
        if self.busy:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(self.busy.pop(), b"come again")
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, b"who are you?")
        elif (status := type(self).watch(self.path)) is not None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(status, b'{"error": "InternalError", "message": "the disk is full"}')
        elif self.refuses_databases and self.command == "POST" and self.path.endswith("/databases"):
            self.answer(400, b'{"error": "InvalidArgumentError", "message": "not in your plan"}')
        else:
            self.pass_on()

    do_GET = do_POST = do_PUT = do_DELETE = handle_request  # noqa: N815 - names that the base class calls

    def pass_on(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.removeprefix("/chroma")
        kind = {"Content-Type": "application/json"}
        answer = httpx.request(self.command, self.behind + path, content=content, headers=kind)
        self.answer(answer.status_code, answer.content)

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 - the name of the base class
        """Nothing: the tests are quiet."""


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    serving = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving.daemon_threads = True
    thread = threading.Thread(target=serving.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{serving.server_address[1]}"
    serving.shutdown()
    serving.server_close()
    thread.join()


@contextmanager
def gate(
    server: ChromaProcess,
    *,
    refuses_databases: bool = False,
    busy: list[int] | None = None,
    watch: Callable[[str], int | None] = lambda _path: None,
) -> Iterator[ChromaServer]:
    class Here(Gate):
        behind = server.url

    Here.watch = staticmethod(watch)
    Here.refuses_databases, Here.busy = refuses_databases, busy if busy is not None else []
    with listening(Here) as url:
        database = f"test-{uuid.uuid4().hex}"
        yield ChromaServer(url=f"{url}/chroma", database=database, token=SecretStr(TOKEN), patience_s=0.0)


def test_a_token_opens_a_guarded_server(server: ChromaProcess) -> None:
    """And the path before it, as a proxy wants it."""
    with gate(server) as place:
        store = ChromaStore(place)
        put(store, "aaaa", 3)
        assert store.query("docs", unit(2)[0], 1)[0].id == "aaaa-00002"
        store.close()


def test_a_busy_server_is_asked_again(server: ChromaProcess) -> None:
    busy: list[int] = []
    with gate(server, busy=busy) as place:
        store = ChromaStore(replace(place, patience_s=10.0))
        busy += [429, 503, 502]
        put(store, "aaaa", 3)
        busy += [504]
        assert store.query("docs", unit(2)[0], 1)[0].id == "aaaa-00002"
        assert busy == []
        store.close()


@pytest.mark.parametrize("token", [None, SecretStr("wrong-s3cret")])
def test_a_wrong_token_is_one_sentence_that_does_not_tell_it(
    server: ChromaProcess, token: SecretStr | None, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        gate(server) as place,
        pytest.raises(StoreError, match="SPECRAG_CHROMA_TOKEN") as caught,
    ):
        ChromaStore(replace(place, token=token))
    assert not isinstance(caught.value, StoreUnreachable), "trying again would not help"
    assert "s3cret" not in f"{caught.value!r} {caught.value.__cause__!r} {caplog.text} {place!r}"


def test_a_server_that_makes_no_databases_is_told_from_one_that_does(server: ChromaProcess) -> None:
    with (
        gate(server, refuses_databases=True) as place,
        pytest.raises(
            StoreError, match=r"not in your plan\); make it there, or correct SPECRAG_CHROMA_DATABASE"
        ),
    ):
        ChromaStore(place)
    with gate(server, refuses_databases=True) as place:
        ChromaStore(replace(place, database="default_database")).close()


def test_tenants_and_databases_do_not_see_each_other(server: ChromaProcess) -> None:
    name = f"test-{uuid.uuid4().hex}"
    places = [
        server.place(database=name),
        server.place(database=f"{name}-other"),
        replace(server.place(database=name), tenant=name),
    ]
    stores = [ChromaStore(place) for place in places]
    put(stores[0], "aaaa", 2)
    assert [store.collections() for store in stores] == [("docs",), (), ()]
    for store in stores:
        store.close()


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"<html")

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002
        """Nothing."""


def test_another_server_behind_the_url_is_named(server: ChromaProcess) -> None:
    with listening(Page) as url, pytest.raises(StoreError, match=f"{url} is no Chroma server"):
        ChromaStore(ChromaServer(url=url))
    with pytest.raises(StoreError, match="is no Chroma server"):
        ChromaStore(ChromaServer(url=f"{server.url}/wrong/path"))


class Silent(BaseHTTPRequestHandler):
    waiting: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        self.waiting.wait(30)

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002
        """Nothing."""


def test_a_silent_server_is_not_waited_for_longer_than_is_set() -> None:
    """Chroma's own client waits for ever."""
    began = time.monotonic()
    with listening(Silent) as url:
        with pytest.raises(StoreUnreachable, match=r"silent for 0\.3 s"):
            ChromaStore(ChromaServer(url=url, stall_s=0.3, patience_s=0.0))
        Silent.waiting.set()
    assert time.monotonic() - began < 10


def test_a_certificate_of_nobody_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="SPECRAG_SERVER_CA cannot be read"):
        ChromaStore(ChromaServer(url="https://127.0.0.1:1", ca=tmp_path / "none.pem"))
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(StoreError, match="SPECRAG_SERVER_CA cannot be read"):
        ChromaStore(ChromaServer(url="https://127.0.0.1:1", ca=tmp_path / "bad.pem"))


def test_a_server_that_is_down_at_the_start_and_there_later(tmp_path: Path) -> None:
    process = ChromaProcess(tmp_path)
    settings = load_settings({}, home=tmp_path, chroma_url=process.url)
    with pytest.raises(StoreUnreachable, match=rf"{process.url} cannot be reached .*SPECRAG_CHROMA_URL\."):
        ChromaStore(process.place(patience_s=0.0))
    looked = next(check for check in diagnose(settings).checks if check.name == "store")
    assert not looked.ok
    assert process.url in looked.detail
    starting = threading.Timer(1.0, process.start)
    starting.start()
    parts = Parts(settings)
    put(parts.store, "aaaa", 3)  # within the patience that restarts are given
    starting.join()
    looked = next(check for check in diagnose(settings).checks if check.name == "store")
    assert looked.ok
    assert "default_database of default_tenant is there" in looked.detail
    parts.close()
    process.kill()


def test_the_folder_of_an_embedded_store_can_be_served(tmp_path: Path) -> None:
    embedded = ChromaStore(tmp_path / "store")
    put(embedded, "aaaa", 30)
    embedded.close()
    shutil.copytree(tmp_path / "store" / "chroma", tmp_path / "data")
    with ChromaProcess(tmp_path) as process:
        store = ChromaStore(process.place())
        assert store.documents("docs") == [info("aaaa", 30)]
        assert store.query("docs", unit(7)[0], 1)[0].id == "aaaa-00007"
        store.close()


def test_uploads_survive_a_server_that_is_killed_again_and_again(mortal: ChromaProcess) -> None:
    """Each kill comes a little later in an upload than the one before: among rows, at the line, at the note."""
    store = ChromaStore(mortal.place(patience_s=60.0))
    store.ensure_collection("docs", PRINT)
    names = [f"doc{turn:02d}" for turn in range(10)]

    def restart() -> None:
        mortal.kill()
        mortal.start()

    for turn, name in enumerate(names):
        killing = threading.Timer(0.02 * turn, restart)
        killing.start()
        store.add("docs", info(name, 420), chunks(name, 420), unit(*range(420)))
        killing.join()
    again = ChromaStore(mortal.place())
    assert {document.id for document in again.documents("docs")} == set(names)
    assert all(again.chunks("docs", name) == chunks(name, 420) for name in names)
    assert again.count("docs") == 420 * len(names)
    assert again.query("docs", unit(7)[0], len(names))[-1].score == pytest.approx(1.0, abs=1e-5)
    store.close()
    again.close()


def test_a_write_that_fails_leaves_nothing_once_the_server_is_back(mortal: ChromaProcess) -> None:
    store = ChromaStore(mortal.place(patience_s=0.0, silence_s=0.0))
    put(store, "ready", 10)

    class Killing(list[Chunk]):
        def __getitem__(self, index: slice) -> list[Chunk]:  # type: ignore[override]
            if index.start == 400:
                mortal.kill()
            return super().__getitem__(index)

    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        store.add("docs", info("half", 600), Killing(chunks("half", 600)), unit(*range(600)))
    with pytest.raises(StoreUnreachable):
        store.query("docs", unit(5)[0], 3)
    mortal.start()
    assert {one.document_id for one in store.query("docs", unit(5)[0], 300)} == {"ready"}
    put(store, "half", 600)
    assert store.count("docs") == 610
    assert store.chunks("docs", "half") == chunks("half", 600)
    store.close()


def test_a_delete_that_fails_in_the_middle_is_finished_later(mortal: ChromaProcess) -> None:
    store = ChromaStore(mortal.place(patience_s=0.0, silence_s=0.0))
    put(store, "ready", 10)
    put(store, "leaving", 600)
    killing = threading.Timer(0.05, mortal.kill)
    killing.start()
    with suppress(StoreUnreachable):
        store.delete("docs", "leaving")
    killing.join()
    mortal.start()
    left = len(store.chunks("docs", "leaving"))
    assert left == (600 if store.find("docs", "leaving") else 0)
    assert len(store.query("docs", unit(5)[0], 700)) == 10 + left
    ChromaStore(mortal.place(silence_s=0.0)).close()
    assert store.count("docs") == 10 + left
    store.close()


def test_closing_ends_the_patience(mortal: ChromaProcess) -> None:
    store = ChromaStore(mortal.place(patience_s=60.0))
    put(store, "aaaa", 2)
    mortal.kill()
    closing = threading.Timer(0.3, store.close)
    closing.start()
    began = time.monotonic()
    with pytest.raises(StoreUnreachable):
        put(store, "bbbb", 2)
    closing.join()
    with pytest.raises(StoreError, match="was closed"):
        store.query("docs", unit(1)[0], 1)
    assert time.monotonic() - began < 10


def test_a_replaced_edition_is_never_found_though_it_could_not_be_removed(server: ChromaProcess) -> None:
    """The server goes away between the new line and the removal of the old one: both lines stay."""
    away: list[str] = []
    with gate(server, watch=lambda path: 503 if path.endswith(tuple(away)) else None) as place:
        store = ChromaStore(place)
        put(store, "aaaa", 5)
        away.append("/delete")
        put(store, "aaaa", 2)
        away.clear()
        assert store.count("docs") == 7
        near_a_removed_one = unit(4)[0]
        assert store.query("docs", near_a_removed_one, 1)[0].id in ("aaaa-00000", "aaaa-00001")
        assert len(store.query("docs", near_a_removed_one, 9)) == 2
        ChromaStore(replace(place, silence_s=0.0)).close()
        assert store.count("docs") == 2
        assert store.chunks("docs", "aaaa") == chunks("aaaa", 2)
        store.close()


def test_a_file_that_another_replica_stored_a_moment_later_is_stored(server: ChromaProcess) -> None:
    """The other one removes our edition as the older one, after our line and before we have read back."""
    seen: list[str] = []

    def between(path: str) -> None:
        seen.append(path.rpartition("/")[2])
        if seen.count("upsert") == 3 and seen[-1] == "get":  # the note, the rows, the line
            seen.clear()
            put(other, "aaaa", 5)

    with gate(server, watch=between) as place:
        store, other = ChromaStore(place), ChromaStore(server.place(database=place.database))
        put(other, "more", 1)
        store.ensure_collection("docs", PRINT)
        seen.clear()
        store.add("docs", info("aaaa", 5), chunks("aaaa", 5), unit(*range(5)))
        assert store.chunks("docs", "aaaa") == chunks("aaaa", 5)
        assert store.count("docs") == 6
        store.close()
        other.close()


def test_a_silent_server_holds_up_neither_the_deadlines_nor_anything_else(
    mortal: ChromaProcess, tmp_path: Path, embedder_path: Path
) -> None:
    """Stuck requests held all threads that the loop has for such work, so no other run came to its end."""
    settings = load_settings(
        {}, home=tmp_path / "home", embedder=str(embedder_path), threads=1, chroma_url=mortal.url,
        chroma_timeout_s=60.0, deadline_s=1.0, concurrent_runs=64,
    )  # fmt: skip
    model = ScriptedModel(lambda _text: {"rationale": "x", "answer": "y"})
    parts = Parts(settings, drafter=model, verifier=model)
    parts.store.ensure_collection("docs", parts.embedder.fingerprint)
    pipeline, runs = parts.pipeline("standard"), parts.runs

    async def ask_many() -> tuple[float, list[str]]:
        began = time.monotonic()
        started = [runs.start(pipeline, Request(question="Why?", collection="docs")) for _ in range(40)]
        traces = [[trace async for trace in runs.follow(one, every_s=0.1)][-1] for one in started]
        return time.monotonic() - began, [trace.error.message if trace.error else "" for trace in traces]

    mortal.pause()
    seconds, messages = asyncio.run(ask_many())
    mortal.resume()
    assert all("SPECRAG_DEADLINE_S" in message for message in messages)
    assert seconds < 15
    parts.close()


def test_a_delete_that_failed_holds_up_nobody_once_the_server_is_back(server: ChromaProcess) -> None:
    away: list[str] = []
    with gate(server, watch=lambda path: 503 if path.endswith(tuple(away)) else None) as place:
        store = ChromaStore(place)
        put(store, "aaaa", 5)
        put(store, "bbbb", 5)
        away.append("/delete")
        with pytest.raises(StoreUnreachable):
            store.delete("docs", "aaaa")
        away.clear()
        began = time.monotonic()
        store.reindex("docs", "new", lambda texts: unit(*range(len(texts))), lambda _done, _total: None)
        assert time.monotonic() - began < 10
        store.check("docs", "new")
        store.close()


def test_a_reindex_that_the_server_refuses_is_one_sentence(server: ChromaProcess) -> None:
    """Requests outside of the copying brought errors of Chroma to the visitor."""
    refused: list[str] = []
    with gate(server, watch=lambda path: 500 if path.endswith(tuple(refused)) else None) as place:
        store = ChromaStore(place)
        put(store, "aaaa", 5)
        for path in ("/add", "/upsert", "/update", "/collections"):
            refused[:] = [path]
            with pytest.raises(StoreError, match="the disk is full"):
                store.reindex("docs", "new", lambda texts: unit(*range(len(texts))), lambda _at, _of: None)
        refused.clear()
        store.check("docs", PRINT)
        assert store.query("docs", unit(2)[0], 1)[0].id == "aaaa-00002"
        store.close()
