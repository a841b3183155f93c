"""On a page for visitors nobody reaches another's documents: not by the page, and not past it either."""

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from specrag.build import Parts
from specrag.config import load_settings
from specrag.library.shelves import default_name
from specrag.library.visitors import VISITOR, Visitor
from specrag.ui.who import COOKIE
from tests.e2e.serving import Server, serving

pytestmark = pytest.mark.integration
SECRET = "Zanzibar-7741"
TEXT = f"# Diary\n\nThe password of the safe in the cellar is {SECRET}, and the key is under the mat.\n"
QUESTION = "What is the password of the safe?"
ADA, BO = "A" * 22, "B" * 22
TURNS = ("open", "leaf-on")
SHOWN = ("open", "leaf-on", "chunks", "page")
CHANGED = (
    *("edit", "export", "reindex", "cancel-reindex", "cancel", "cancel-all", "dismiss", "dismiss-all"),
    *("retry", "delete", "delete-collection"),
)


@dataclass(frozen=True)
class Diary:
    """A collection of Ada's, with a secret in it."""

    server: Server
    name: str
    title: str
    first: str
    document: str


def owner(cookie: str) -> Visitor:
    identity = hashlib.sha256(cookie.encode()).hexdigest()[:32]
    return Visitor(id=identity, owner=VISITOR + identity)


@pytest.fixture(scope="module")
def diary(tmp_path_factory: pytest.TempPathFactory, embedder_path: Path, model_path: Path) -> Iterator[Diary]:
    home = tmp_path_factory.mktemp("home")
    file = home / "diary.md"
    file.write_text(TEXT, encoding="utf-8")
    parts = Parts(load_settings({}, home=home, embedder=str(embedder_path), access="visitor"))
    try:
        ada = owner(ADA)
        shelf = parts.library.create(ada, "Diary")
        result = parts.indexer.ingest(file, "diary.md", shelf.name)
        first = parts.library.default(ada)
        parts.library.check_writable(ada, first)
        parts.indexer.ingest(file, "diary.md", first)
    finally:
        parts.close()
    assert result.document_id is not None
    with serving(home, embedder=embedder_path, model=model_path, SPECRAG_ACCESS="visitor") as server:
        yield Diary(server, shelf.name, shelf.title, first, result.document_id)


def ask(server: Server, cookie: str, collection: str) -> Any:
    """What `/ask` answers to whoever has this cookie."""
    client = Client(server.url, verbose=False, headers={"cookie": f"{COOKIE}={cookie}"} if cookie else {})
    try:
        return client.predict(QUESTION, collection, pipeline="standard", api_name="/ask")
    finally:
        client.close()


def refused(server: Server, cookie: str, collection: str) -> str:
    with pytest.raises(AppError) as error:
        ask(server, cookie, collection)
    return str(error.value)


def test_its_owner_asks_a_collection_by_name_and_title(diary: Diary) -> None:
    for called in (diary.name, "dIARY"):
        assert SECRET in json.dumps(ask(diary.server, ADA, called))


@pytest.mark.parametrize("cookie", [BO, "", "no cookie of ours"])
def test_to_others_it_is_one_that_does_not_exist(diary: Diary, cookie: str) -> None:
    nothing = refused(diary.server, cookie, "c-000000000000")
    assert "There is no collection “c-000000000000”" in nothing
    for called in (diary.name, diary.first):
        assert refused(diary.server, cookie, called) == nothing.replace("c-000000000000", called)
    assert "There is no collection “Diary”" in refused(diary.server, cookie, "Diary")


def test_a_program_without_a_cookie_asks_the_sample(diary: Diary) -> None:
    told = ask(diary.server, "", "sample")
    assert told["passages"]
    assert SECRET not in json.dumps(told)


class Intruder:
    """Calls every event of the page, private ones too, with what somebody may have guessed."""

    def __init__(self, diary: Diary, cookie: str, acts: Mapping[str, object]) -> None:
        self._diary = diary
        self._acts = acts
        self._http = httpx.Client(
            base_url=diary.server.url, headers={"cookie": f"{COOKIE}={cookie}"}, timeout=60
        )
        self._config = self._http.get("/config").json()
        self._page = secrets.token_hex(8)
        self._own = default_name(owner(cookie))
        for event in self._config["dependencies"]:
            if event["backend_fn"] and [0, "load"] in event["targets"]:
                # gradio takes no choice that it has not sent to this very page
                told = self.answer(event, [item["props"].get("value") for item in self._inputs(event)])
                assert '"success":true' in told, told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def calls(self) -> Iterator[tuple[dict[str, Any], list[Any]]]:
        """Every event with every guess, of a collection of theirs and of the own one."""
        for event in self._config["dependencies"]:
            if event["backend_fn"]:
                for guess in self._guesses(event):
                    yield event, guess

    def answer(self, event: dict[str, Any], data: list[Any]) -> str:
        """All that the server sends for one call."""
        body = {"data": data, "fn_index": event["id"], "session_hash": self._page}
        joined = self._http.post("/gradio_api/queue/join", json=body)
        if joined.status_code != httpx.codes.OK:
            return joined.text
        told = []
        with self._http.stream("GET", f"/gradio_api/queue/data?session_hash={self._page}") as stream:
            for line in stream.iter_lines():
                told.append(line)
                if '"close_stream"' in line:
                    break
        return "\n".join(told)

    def _guesses(self, event: dict[str, Any]) -> Iterator[list[Any]]:
        inputs = self._inputs(event)
        has_act = any(_hears_acts(item) for item in inputs)
        for message in self._messages() if has_act else [""]:
            for name in (self._diary.name, self._own):
                yield [self._value(item, name, message) for item in inputs]

    def _inputs(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        kinds = {item["id"]: item for item in self._config["components"]}
        return [kinds[one] for one in event["inputs"]]

    def _messages(self) -> list[str]:
        document, name = self._diary.document, self._diary.name
        return [
            json.dumps({"action": action, "id": identity, "value": value})
            for action, value in self._acts.items()
            for identity in ((f"document:{document}",) if action in TURNS else (document, name))
        ]

    @staticmethod
    def _value(item: dict[str, Any], name: str, message: str) -> Any:
        if _hears_acts(item):
            return message
        if str(item["props"].get("elem_id")).endswith("collection"):
            return name
        match item["type"]:
            case "textbox":
                return QUESTION if "question" in str(item["props"].get("elem_id")) else ""
            case "state" | "file" | "uploadbutton":
                return None
            case _:
                return item["props"].get("value")


def _hears_acts(component: dict[str, Any]) -> bool:
    """Whether it is one of the boxes of `acts.channel`."""
    return str(component["props"].get("elem_id")).startswith("sr-act-")


def test_no_event_of_the_page_tells_or_changes_what_is_anothers(diary: Diary) -> None:
    """An event that the page hides from the API can still be called by its number."""
    acts = dict.fromkeys((*SHOWN, *CHANGED), "1") | {"delete-ticked": [diary.document]}
    with Intruder(diary, BO, acts) as intruder:
        for event, data in intruder.calls():
            told = intruder.answer(event, data)
            for secret in (SECRET, "under the mat", diary.title, "Traceback"):
                assert secret not in told, (event["api_name"], data)
    assert SECRET in json.dumps(ask(diary.server, ADA, diary.name))


def test_the_same_calls_show_its_owner_what_is_theirs(diary: Diary) -> None:
    """Otherwise the test above would also pass if it called nothing at all."""
    with Intruder(diary, ADA, dict.fromkeys(SHOWN, "1")) as owner_:
        told = [owner_.answer(event, data) for event, data in owner_.calls() if "action" in str(data)]
    assert any("under the mat" in text for text in told)
