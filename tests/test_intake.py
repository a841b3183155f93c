"""A file is one document, an archive as many as it holds; each ends with a line of its own."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.index import Indexer
from specrag.ingest.intake import take
from specrag.retrieval.chroma import ChromaStore
from tests.toys import WordEmbedder

pytestmark = pytest.mark.integration


@pytest.fixture
def indexer(embedder_path: Path) -> Iterator[Indexer]:
    store = ChromaStore(None)
    chunker = Chunker(embedder_path / "tokenizer.json", tokens=64, overlap=8)
    yield Indexer(store, WordEmbedder(), chunker, load_settings({}, max_unpacked_mb=1))
    store.close()


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return path


def test_a_file_is_one_result(indexer: Indexer, tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("The mill grinds.", encoding="utf-8")
    results = take(indexer, tmp_path / "mill.txt", "mill.txt", "docs")
    assert [(one.name, one.status) for one in results] == [("mill.txt", "ready")]
    assert take(indexer, tmp_path / "gone.txt", "gone.txt", "docs")[0].reason == "unreadable"


def test_each_file_of_an_archive_is_a_document_and_a_bad_one_stops_no_other(
    indexer: Indexer, tmp_path: Path
) -> None:
    inner = archive(tmp_path / "inner.zip", **{"deep.txt": b"Deep."}).read_bytes()
    path = archive(
        tmp_path / "upload",
        **{
            "mill.md": b"# Mill\n\nThe mill grinds rye.",
            "../../a/ferry.txt": b"The ferry leaves at nine.",
            "empty.txt": b"",
            "inner.zip": inner,
            "__MACOSX/mill.md": b"junk",
        },
    )
    results = take(indexer, path, "texts.zip", "docs")
    assert {one.name: one.status for one in results} == {
        "texts.zip/mill.md": "ready",
        "texts.zip/a/ferry.txt": "ready",
        "texts.zip/empty.txt": "failed",
        "texts.zip/inner.zip": "failed",
    }
    assert {one.path for one in results} == {path}
    assert all(one.error for one in results if one.status == "failed")
    assert {one.source for one in indexer.store.documents("docs")} == {
        "texts.zip/mill.md",
        "texts.zip/a/ferry.txt",
    }


def test_an_archive_that_cannot_be_unpacked_is_one_sentence(indexer: Indexer, tmp_path: Path) -> None:
    bomb = archive(tmp_path / "bomb.zip", **{"zeros.txt": bytes(3_000_000)})
    for path, reason in ((bomb, "too_large"), (archive(tmp_path / "none.zip"), "no_files")):
        (result,) = take(indexer, path, path.name, "docs")
        assert (result.status, result.reason, result.name) == ("failed", reason, path.name)
        assert result.error is not None
        assert result.error.startswith(path.name)
    assert indexer.store.collections() == ()


def test_cancelling_ends_every_file_that_is_left(indexer: Indexer, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", **{f"{number}.txt": b"Text %d." % number for number in range(4)})
    begun: list[str] = []
    results = take(
        indexer,
        path,
        "a.zip",
        "docs",
        progress=lambda stage, *_: begun.append(stage),
        cancelled=lambda: begun.count("embedding") > 2,
    )
    assert [one.status for one in results] == ["ready", "failed", "failed", "failed"]
    assert {one.reason for one in results[1:]} == {"cancelled"}
    assert len(indexer.store.documents("docs")) == 1
