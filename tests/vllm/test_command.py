"""`specrag vllm --start` with the real thing: keys are asked for, and a signal leaves no process.

pytest comes here before the servers of the session are started, because it goes by name: four at once would
want 16 GB of memory.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from specrag.vllm.machine import free_ports

pytestmark = pytest.mark.vllm
TRACKER = re.compile("resource_tracker")
ROOT = Path(__file__).resolve().parents[2]


def test_the_command_starts_both_with_keys_and_sigterm_leaves_nothing(
    vllm_python: Path, model_path: Path, tmp_path: Path
) -> None:
    first, second = free_ports(2)
    models = ["--drafter", str(model_path), "--verifier", str(model_path)]
    ports = ["--drafter-port", str(first), "--verifier-port", str(second)]
    words = [*models, *ports, "--device", "cpu", "--python", str(vllm_python), "--start", "--json"]
    keys = {"SPECRAG_DRAFTER_KEY": "key-1", "SPECRAG_VERIFIER_KEY": "key-2", "SPECRAG_HOME": str(tmp_path)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    with subprocess.Popen(
        [sys.executable, "-m", "specrag", "vllm", *words],
        cwd=ROOT,
        env=kept | keys,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            document = _document(process)
            for server, key in zip(document["servers"], ("key-1", "key-2"), strict=True):
                assert _complete(server, "wrong").status_code == 401
                assert _complete(server, key).is_success
            groups = _groups(model_path, first, second)
            assert len(groups) == 2
            assert len(_members(groups)) > 2, "an engine of its own beside each server"
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=60)
        finally:
            process.terminate()
    assert "drafter: ready after" in told
    assert "Traceback" not in told
    assert _members(groups) == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(document["servers"][0]["url"])


def _complete(server: dict[str, Any], key: str) -> httpx.Response:
    return httpx.post(
        f"{server['url']}/completions",
        json={"model": server["served_name"], "prompt": "The capital of France is", "max_tokens": 1},
        headers={"Authorization": f"Bearer {key}"},
        timeout=120,
    )


def _document(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What the command prints when both are ready; it goes on running."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line == "}\n":
            loaded: dict[str, Any] = json.loads(text)
            return loaded
    assert process.stderr is not None
    pytest.fail(process.stderr.read())


def _groups(model: Path, *ports: int) -> set[int]:
    """The process groups of the servers: those whose command line holds the model and one of the ports."""
    wanted = {str(port) for port in ports}
    return {
        group
        for _, group, words in _running()
        if {"--served-model-name", str(model)} <= {*words} and wanted & {*words}
    }


def _members(groups: set[int]) -> list[int]:
    """All that run in these groups, also engines and workers, whose titles tell neither model nor port.

    Python's resource tracker ends by itself, a little later.
    """
    return [
        pid for pid, group, words in _running() if group in groups and not any(map(TRACKER.search, words))
    ]


def _running() -> Iterator[tuple[int, int, list[str]]]:
    """Number, process group and command line of every process that is not only waiting to be collected."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, _, group = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if state not in "ZX":
            yield int(folder.name), int(group), words
