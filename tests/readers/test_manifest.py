"""The real files of ../shared/data/docs, each with what must be found in it or why it must be refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.loaders import read
from tests.readers.tools import folded, text_of

_MANIFEST = Path(__file__).resolve().parents[3] / "shared" / "data" / "docs" / "manifest.jsonl"


def _cases() -> list[dict[str, Any]]:
    if not _MANIFEST.is_file():
        return [{"file": "none"}]
    return [json.loads(line) for line in _MANIFEST.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["file"]))
def test_an_awkward_file_gives_its_text_or_its_reason(shared_data: Path, case: dict[str, Any]) -> None:
    path = shared_data / "docs" / case["file"]
    text, failure = _outcome(path)
    if failure is not None:
        assert (case["outcome"] != "text", failure.reason) == (True, case["error_kind"]), str(failure)
        assert path.name in str(failure)
        return
    assert case["outcome"] in ("text", "text_or_error")
    assert [phrase for phrase in case["must_contain"] if folded(phrase) not in folded(text)] == []
    assert [phrase for phrase in case["must_not_contain"] if phrase in text] == []


def _outcome(path: Path) -> tuple[str, DocumentError | None]:
    try:
        return text_of(read(path, path.name, load_settings(ocr=False))), None
    except DocumentError as error:
        return "", error


def test_an_encrypted_file_of_the_manifest_opens_with_its_password(shared_data: Path) -> None:
    for case in (case for case in _cases() if case.get("password")):
        path = shared_data / "docs" / case["file"]
        text = folded(text_of(read(path, path.name, load_settings(), password=case["password"])))
        assert all(folded(phrase) in text for phrase in case["must_contain"])
