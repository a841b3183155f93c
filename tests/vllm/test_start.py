"""The real thing: started by the command, with the flags that were printed, and ended without a trace."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from specrag.vllm.machine import free_ports
from specrag.vllm.servers import VllmServers

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).resolve().parents[2]
PROMPT = "The capital of France is"


def complete(url: str, model: str, key: str | None = None, **more: Any) -> httpx.Response:
    return httpx.post(
        f"{url}/completions",
        json={"model": model, "prompt": PROMPT, "max_tokens": 1, "temperature": 0, **more},
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=120,
    )


def test_both_answer_by_their_names_and_score_prompts(servers: VllmServers) -> None:
    for server in servers.all:
        (choice,) = complete(server.url, server.model, prompt_logprobs=1).json()["choices"]
        assert choice["text"] == " Paris"
        assert choice["prompt_logprobs"][0] is None
        assert all(entry for entry in choice["prompt_logprobs"][1:])
    assert complete(servers.drafter.url, servers.verifier.model).status_code == 404


def test_as_many_candidates_as_our_scoring_wants(servers: VllmServers) -> None:
    answer = complete(servers.verifier.url, servers.verifier.model, logprobs=20)
    assert len(answer.json()["choices"][0]["logprobs"]["top_logprobs"][0]) >= 20


def test_it_tells_how_busy_it_is_and_forgets_a_closed_request(servers: VllmServers) -> None:
    url, model = servers.drafter.url, servers.drafter.model
    assert servers.drafter.running() == 0
    request = {"model": model, "prompt": PROMPT, "max_tokens": 2000, "ignore_eos": True, "stream": True}
    with httpx.stream("POST", f"{url}/completions", json=request, timeout=120) as stream:
        next(stream.iter_lines())
        assert servers.drafter.running() == 1
    deadline = time.monotonic() + 10
    while servers.drafter.running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert servers.drafter.running() == 0


def test_a_killed_server_comes_back(servers: VllmServers) -> None:
    before = servers.drafter.pid
    servers.drafter.kill()
    with pytest.raises(httpx.ConnectError):
        httpx.get(servers.drafter.url)
    assert servers.verifier.running() == 0
    servers.drafter.start()
    servers.drafter.wait_ready()
    assert servers.drafter.pid != before
    assert complete(servers.drafter.url, servers.drafter.model).is_success


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
                assert complete(server["url"], server["served_name"], "wrong").status_code == 401
                assert complete(server["url"], server["served_name"], key).is_success
            assert len(_processes(model_path, first, second)) == 2
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=60)
        finally:
            process.terminate()
    assert "drafter: ready after" in told
    assert "Traceback" not in told
    assert _processes(model_path, first, second) == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(document["servers"][0]["url"])


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


def _processes(model: Path, *ports: int) -> list[int]:
    """The processes whose command line holds the model and one of the ports."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if (
            "--served-model-name" in words
            and str(model) in words
            and {str(port) for port in ports} & {*words}
        ):
            found.append(int(folder.name))
    return found
