"""The stores that keep the contract: in a folder, in memory, and behind a real server."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from specrag.retrieval.address import ChromaServer
from specrag.retrieval.base import VectorStore
from specrag.retrieval.chroma import ChromaStore
from tests.chroma_process import ChromaProcess


@pytest.fixture(scope="package")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaProcess]:
    with ChromaProcess(tmp_path_factory.mktemp("chroma")) as process:
        yield process


@pytest.fixture(params=["folder", "memory", pytest.param("server", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    place: Path | ChromaServer | None = None
    if request.param == "folder":
        place = tmp_path / "store"
    elif request.param == "server":
        process: ChromaProcess = request.getfixturevalue("chroma_server")
        place = process.place(database=f"test-{uuid.uuid4().hex}")
    opened = ChromaStore(place)
    yield opened
    opened.close()
