"""What a program does with documents and collections."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from tests.api_page import serving


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[Client]:
    with serving(home) as url:
        made = Client(url, verbose=False)
        yield made
        made.close()


@pytest.fixture
def collection(client: Client) -> Iterator[str]:
    made = client.predict("Of a program", "For a test", api_name="/create_collection")
    assert (made["title"], made["description"], made["documents"]) == ("Of a program", "For a test", 0)
    yield str(made["name"])
    client.predict(made["name"], api_name="/delete_collection")


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.md"
    path.write_text("# Quay\n\nThe heron named Bartleby nests at the quay.", encoding="utf-8")
    return path


def _ended(client: Client, collection: str) -> list[dict[str, Any]]:
    """The states of uploads once all of them have ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        states: list[dict[str, Any]] = client.predict(collection, api_name="/documents_status")
        if states and all(state["state"] not in ("queued", "reading", "embedding") for state in states):
            return states
        time.sleep(0.2)
    raise AssertionError("the files are still on their way")


def test_a_file_is_added_found_and_deleted(client: Client, home: Path, collection: str, note: Path) -> None:
    (queued,) = client.predict([handle_file(note)], collection, api_name="/add_documents")
    assert queued["name"] == "note.md"
    assert "owner" not in queued
    (state,) = _ended(client, collection)
    assert (state["id"], state["state"]) == (queued["id"], "ready")
    (document,) = client.predict("Of a program", api_name="/documents")
    assert (document["id"], document["source"]) == (state["document_id"], "note.md")
    (passage,) = client.predict("Who nests?", collection, api_name="/search")["passages"]
    assert "Bartleby" in passage["text"]
    assert not [path for path in (home / "gradio").rglob("*") if path.is_file() and "note" in path.name]
    assert client.predict([document["id"]], collection, api_name="/delete_documents") == 1
    assert client.predict("Who nests?", collection, api_name="/search")["passages"] == []


def test_a_file_that_is_refused_does_not_keep_others_away(
    client: Client, collection: str, note: Path, tmp_path: Path
) -> None:

    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 nothing")
    files = [handle_file(path) for path in (broken, note)]
    assert len(client.predict(files, collection, api_name="/add_documents")) == 2
    states = {state["name"]: state["state"] for state in _ended(client, collection)}
    assert states == {"broken.pdf": "failed", "note.md": "ready"}


@pytest.mark.parametrize(
    "file",
    [
        {"path": "/etc/hostname"},
        {"path": "/etc/hostname", "meta": {"_type": "something"}},
        {"path": "../../etc/hostname", "meta": {}},
        {"meta": {"_type": "gradio.FileData"}},
        {"path": 5, "meta": {"_type": "gradio.FileData"}},
    ],
)
def test_a_file_of_the_server_is_none_that_was_uploaded(
    client: Client, collection: str, file: dict[str, Any]
) -> None:
    """A program can write any path into its request; the file would be read, indexed and told."""
    with pytest.raises(AppError, match="Files are uploaded with the call"):
        client.predict([file], collection, api_name="/add_documents")
    assert client.predict(collection, api_name="/documents_status") == []


def test_the_sample_is_read_only(client: Client, note: Path) -> None:
    for arguments, name in (
        (([handle_file(note)], "sample"), "/add_documents"),
        ((["nothing"], "sample"), "/delete_documents"),
        (("sample",), "/delete_collection"),
        (("sample",), "/reindex_collection"),
    ):
        with pytest.raises(AppError, match="read-only"):
            client.predict(*arguments, api_name=name)
    assert client.predict("sample", api_name="/documents")


def test_nothing_is_deleted_if_one_is_missing(client: Client, collection: str, note: Path) -> None:
    client.predict([handle_file(note)], collection, api_name="/add_documents")
    (state,) = _ended(client, collection)
    with pytest.raises(AppError, match="nothing was deleted"):
        client.predict([state["document_id"], "nothing"], collection, api_name="/delete_documents")
    assert len(client.predict(collection, api_name="/documents")) == 1
    assert client.predict([state["id"], "nothing"], collection, api_name="/cancel_documents") == 1
    assert client.predict(collection, api_name="/documents_status")[0]["state"] == "ready"


def test_the_text_of_a_document_is_read(client: Client, collection: str, note: Path) -> None:
    client.predict([handle_file(note)], collection, api_name="/add_documents")
    (state,) = _ended(client, collection)
    (chunk,) = client.predict(state["document_id"], collection, api_name="/document")
    assert "Bartleby" in chunk["text"]
    with pytest.raises(AppError):
        client.predict("nothing", collection, api_name="/document")


def test_a_file_that_failed_is_tried_again_and_put_away(
    client: Client, collection: str, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 nothing")
    client.predict([handle_file(broken)], collection, api_name="/add_documents")
    (state,) = _ended(client, collection)
    assert (state["state"], state["retryable"]) == ("failed", True)
    assert client.predict([state["id"]], collection, api_name="/retry_documents") == 1
    assert [again["state"] for again in _ended(client, collection)] == ["failed"]
    assert client.predict([state["id"], "nothing"], collection, api_name="/dismiss_documents") == 1
    assert client.predict(collection, api_name="/documents_status") == []


def test_a_collection_leaves_as_a_file_and_comes_back(
    client: Client, home: Path, collection: str, note: Path
) -> None:
    client.predict([handle_file(note)], collection, api_name="/add_documents")
    _ended(client, collection)
    file = client.predict(collection, api_name="/export_collection")
    path = Path(file["path"] if isinstance(file, dict) else file)
    assert path.read_bytes().startswith(b"PK")
    made = client.predict(handle_file(path), "Come back", api_name="/import_collection")
    assert (made["title"], made["documents"]) == ("Come back", 1)
    (passage,) = client.predict("Who nests?", "Come back", api_name="/search")["passages"]
    assert "Bartleby" in passage["text"]
    client.predict("Come back", api_name="/delete_collection")
    with pytest.raises(AppError, match="Files are uploaded with the call"):
        client.predict({"path": "/etc/hostname"}, api_name="/import_collection")


def test_a_collection_is_made_changed_indexed_anew_and_deleted(client: Client) -> None:
    made = client.predict("First title", api_name="/create_collection")["name"]
    changed = client.predict(made, title="Second title", description="Of 2026", api_name="/change_collection")
    assert (changed["title"], changed["description"]) == ("Second title", "Of 2026")
    assert client.predict("Second title", api_name="/reindex_collection")["name"] == made
    assert made in {shelf["name"] for shelf in client.predict(api_name="/collections")}
    client.predict("Second title", api_name="/delete_collection")
    assert made not in {shelf["name"] for shelf in client.predict(api_name="/collections")}
    with pytest.raises(AppError, match="There is no collection"):
        client.predict(made, api_name="/documents")
