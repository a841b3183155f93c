"""What the rest of these tests relies on: the servers answer, score, tell how busy they are, and come back."""

import time
from typing import Any

import httpx
import pytest

from specrag.vllm.servers import VllmServers

pytestmark = pytest.mark.vllm
PROMPT = "The capital of France is"


def complete(url: str, model: str, **more: Any) -> httpx.Response:
    return httpx.post(
        f"{url}/completions",
        json={"model": model, "prompt": PROMPT, "max_tokens": 1, "temperature": 0, **more},
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
