"""Every example of docs/python.md runs, top to bottom, on the real weights."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from specrag.sample import FOLDER

pytestmark = pytest.mark.integration
PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHORT = {
    "DRAFTS": 2,
    "RATIONALE_TOKENS": 12,
    "ANSWER_TOKENS": 12,
    "FALLBACK_TOKENS": 12,
    "NOTE_TOKENS": 8,
    "QUERY_TOKENS": 8,
    "HOPS": 1,
}
"""Enough to see that an example works; how well the models answer is not the question here."""
PAGES = ("02-battery-and-charging.md", "03-owners-manual-2023-load.md", "04-service-bulletin-2025.md")


@pytest.fixture
def program(tmp_path: Path, embedder_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the page expects it, and an environment for a slow machine."""
    (tmp_path / "handbook").mkdir()
    for name in PAGES:
        shutil.copy(FOLDER / name, tmp_path / "handbook" / name)
    paths = {
        "HOME": tmp_path / "home",
        "EMBEDDER": embedder_path,
        "DRAFTER": model_path,
        "VERIFIER": model_path,
    }
    for name, value in {**SHORT, **paths}.items():
        monkeypatch.setenv(f"SPECRAG_{name}", str(value))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_example_of_the_page_runs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(page)
    assert len(blocks) == page.count("```python") > 0
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)  # noqa: S102 - our own page
    said = capsys.readouterr().out
    for name in PAGES:
        assert f"{name} ready" in said
    assert "There is no pipeline “telepathy”" in said
    assert "cancelled after" in said
    for pipeline in ("standard", "drafter", "multihop", "speculative"):
        assert re.search(rf"^{pipeline} +[0-9.]+ s  \S", said, re.MULTILINE), pipeline
    assert re.search(r"\('2025', \d\)", said)
    assert "640 watt-hours" in said.splitlines()[-1]
    assert said.splitlines()[-1].endswith("nearest-sentence")
    assert (program / "battery.json").is_file()
