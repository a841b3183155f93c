"""Files kept for documents: by ids alone, whole or not there, and gone with their documents."""

from pathlib import Path

import pytest

from specrag.errors import DocumentError, UsageError
from specrag.ingest.originals import Originals


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    path = tmp_path / "upload"
    path.write_bytes(b"%PDF-1.7 as it looks")
    return path


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_a_file_is_found_by_its_document_and_nothing_on_disk_has_the_visitors_name(
    tmp_path: Path, upload: Path
) -> None:
    kept = Originals(tmp_path / "originals")
    assert kept.path("docs", "aaaa") is None
    kept.keep("docs", "aaaa", upload, "../Müller's \u202epassport.pdf")
    found = kept.path("docs", "aaaa")
    assert found is not None
    assert found.read_bytes() == upload.read_bytes()
    assert files(tmp_path / "originals") == ["docs/aaaa"]
    assert kept.path("other", "aaaa") is None


def test_keeping_again_replaces(tmp_path: Path, upload: Path) -> None:
    kept = Originals(tmp_path / "originals")
    kept.keep("docs", "aaaa", upload, "a.pdf")
    upload.write_bytes(b"newer")
    kept.keep("docs", "aaaa", upload, "a.pdf")
    found = kept.path("docs", "aaaa")
    assert found is not None
    assert found.read_bytes() == b"newer"
    assert files(tmp_path / "originals") == ["docs/aaaa"]


def test_files_go_with_their_document_and_their_collection(tmp_path: Path, upload: Path) -> None:
    kept = Originals(tmp_path / "originals")
    for collection, document in (("docs", "aaaa"), ("docs", "bbbb"), ("other", "aaaa")):
        kept.keep(collection, document, upload, "a.pdf")
    kept.delete("docs", "aaaa")
    kept.delete("docs", "aaaa")
    assert files(tmp_path / "originals") == ["docs/bbbb", "other/aaaa"]
    kept.delete_collection("docs")
    kept.delete_collection("docs")
    assert files(tmp_path / "originals") == ["other/aaaa"]


@pytest.mark.parametrize(
    "word", ["..", "../docs", "a/b", "/etc/passwd", "", ".coming-1", "a\0b", "é", "a" * 300]
)
def test_an_id_that_is_a_path_reaches_nothing(tmp_path: Path, upload: Path, word: str) -> None:
    """Ids come from addresses that anybody can write."""
    kept = Originals(tmp_path / "originals")
    for collection, document in ((word, "aaaa"), ("docs", word)):
        with pytest.raises(UsageError, match="is not the id of a"):
            kept.path(collection, document)
        with pytest.raises(UsageError, match="is not the id of a"):
            kept.delete(collection, document)
        with pytest.raises(UsageError, match="is not the id of a"):
            kept.keep(collection, document, upload, "a.pdf")
    with pytest.raises(UsageError):
        kept.delete_collection(word)
    assert files(tmp_path) == ["upload"]


def test_a_file_that_cannot_be_copied_leaves_nothing(tmp_path: Path) -> None:
    kept = Originals(tmp_path / "originals")
    with pytest.raises(DocumentError, match=r"a\.pdf cannot be kept .*SPECRAG_KEEP_ORIGINALS"):
        kept.keep("docs", "aaaa", tmp_path / "gone", "a.pdf")
    assert files(tmp_path) == []


def test_a_sweep_removes_what_no_document_claims(tmp_path: Path, upload: Path) -> None:
    """After a kill between the copy and the store's line, or in the middle of the copy."""
    root = tmp_path / "originals"
    kept = Originals(root)
    kept.sweep({})  # nothing was ever kept
    for collection, document in (("docs", "aaaa"), ("docs", "bbbb"), ("gone", "aaaa")):
        kept.keep(collection, document, upload, "a.pdf")
    (root / "docs" / ".coming-0123").write_bytes(b"half")
    kept.sweep({"docs": {"aaaa"}, "new": {"cccc"}})
    assert files(root) == ["docs/aaaa"]
    assert not (root / "gone").exists()


def test_a_file_that_somebody_may_be_adding_at_this_moment_is_left(tmp_path: Path, upload: Path) -> None:
    """Another program with the same home lost the files that it had kept and not yet committed."""
    kept = Originals(tmp_path / "originals")
    kept.keep("docs", "aaaa", upload, "a.pdf")
    kept.sweep({}, idle_s=60)
    assert files(tmp_path / "originals") == ["docs/aaaa"]
    kept.sweep({})
    assert files(tmp_path / "originals") == []
