"""Does the memory of the server grow? Runs one after the other, and pages that open and close meanwhile.

From the root of the repository: `python -m scripts.bench_page_memory`. A server with a scripted model (the
memory of real ones is theirs and does not depend on the number of runs) answers 200 questions, and every
tenth is asked by a page of its own that is closed at once, twenty sessions in all. The resident memory of the
server is read every 20 runs; after the first hundred, which fill what is kept on purpose (event logs of
finished runs, caches), it has to stay within a tolerance.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser

from specrag.config import load_settings
from specrag.models.weights import Weights
from tests.e2e.scripted_page import ScriptedPage, scripted_page
from tests.e2e.serving import chromium
from tests.e2e.visitor import DONE, Visitor

EVERY: Final = 20
"""Runs between two readings."""
SETTLED: Final = 100
"""Runs after which nothing more is to be filled."""
TOLERANCE: Final = 0.05
"""Share by which the last reading may be above the one when everything had settled."""
QUESTION: Final = "What is the maximum load of the Larkspur 3?"


def main() -> None:
    """Parse the command line, measure, and exit 1 if the memory grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=20)
    asked = parser.parse_args()
    embedder = Weights(home=load_settings().home).ensure("all-minilm-l6-v2")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        scripted_page(Path(home), embedder=embedder, per_second=0) as page,
        chromium() as browser,
    ):
        readings = measure(browser, page, runs=asked.runs, sessions=asked.sessions)
    document = judged(readings)
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")
    sys.exit(0 if document["flat"] else 1)


def measure(browser: Browser, page: ScriptedPage, *, runs: int, sessions: int) -> dict[int, float]:
    """Megabytes of resident memory by the number of runs that were done."""
    readings: dict[int, float] = {}
    between = max(1, runs // sessions)
    with Visitor(browser, page.url) as staying:
        staying.open()
        for number in range(1, runs + 1):
            if number % between == 0:
                _come_and_go(browser, page)
            else:
                staying.ask(f"{QUESTION} ({number})")
                staying.wait_for_end(DONE)
            if number % EVERY == 0:
                readings[number] = resident_mb(page.pid)
                print(f"{number} runs: {readings[number]:.0f} MB", file=sys.stderr)
    return readings


def _come_and_go(browser: Browser, page: ScriptedPage) -> None:
    """A session of its own that asks and is closed before the run has ended."""
    with Visitor(browser, page.url) as passing:
        passing.open()
        passing.ask(QUESTION)


def resident_mb(pid: int) -> float:
    """Resident memory of a process, in megabytes (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(f"Process {pid} has no resident memory.")


def judged(readings: dict[int, float]) -> dict[str, Any]:
    """The readings with what they mean."""
    settled = [mb for number, mb in readings.items() if number >= SETTLED]
    grown = settled[-1] - settled[0] if settled else 0.0
    return {
        "schema": "specrag.bench-page-memory/1",
        "resident_mb": {str(number): round(mb, 1) for number, mb in readings.items()},
        "grown_mb_since_settled": round(grown, 1),
        "kb_per_run": round(1024 * grown / max(1, max(readings, default=0) - SETTLED), 1),
        "flat": bool(settled) and grown <= TOLERANCE * settled[0],
    }


if __name__ == "__main__":
    main()
