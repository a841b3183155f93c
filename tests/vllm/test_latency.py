"""`specrag bench` over real servers: both ways write exactly what they are told to, whatever the model would say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specrag.vllm.servers import VllmServers

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).resolve().parents[2]
TOKENS, DRAFTS = 16, 3


def test_bench_times_what_the_servers_serve(servers: VllmServers, tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    lengths = ["--passages", "4", "--passage-tokens", "40", "--drafts", str(DRAFTS), "--tokens", str(TOKENS)]
    urls = ["--server-drafter", servers.drafter.url, "--server-verifier", servers.verifier.url]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    subprocess.run(
        [
            *(sys.executable, "-m", "specrag", "bench"),
            *(*urls, *lengths, "--repeats", "2", "--json", str(report)),
        ],
        cwd=ROOT,
        env=kept | {"SPECRAG_HOME": str(tmp_path)},
        check=True,
        timeout=300,
    )
    found = json.loads(report.read_text(encoding="utf-8"))
    standard, speculative = found["standard"], found["speculative"]
    assert (found["drafter"], found["verifier"]) == (servers.drafter.model, servers.verifier.model)
    assert standard["usage"]["verifier"]["completion_tokens"] == TOKENS
    assert speculative["usage"]["drafter"]["completion_tokens"] == DRAFTS * TOKENS
    assert speculative["usage"]["verifier"]["completion_tokens"] == 0
    assert len(standard["runs"]) == len(speculative["runs"]) == 2
    assert 0 < standard["ttft_ms"] < standard["total_ms"]
    assert found["ratio"]["total"] == pytest.approx(standard["total_ms"] / speculative["total_ms"], rel=0.5)
    assert found["floor"] == {}
