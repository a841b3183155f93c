"""How long a stored run takes from the press in the list to its board on the screen.

From the root of the repository: `python -m scripts.bench_opening`. A page over a store of 500 runs, one of
them of twenty drafts, in the system's Chromium: seven times the list is come back to, and the run is opened
from it. A time runs in the browser from the press to the first frame after what was asked for stands there;
with it come the requests to the server that a press takes. Medians with the extremes; nothing else should run
on the machine.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, Request

from scripts.figures import say, spread
from specrag import events as e
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import fold
from tests.detail_runs import events_of_run
from tests.e2e.quick_page import quick_page
from tests.e2e.serving import chromium
from tests.e2e.visitor import Visitor

DRAFTS: Final = 20
WORDS: Final = 100
_JOINED: Final = "/queue/join"
_RUN: Final = "run-of-twenty"
_TIMED: Final = """async ([press, seen, count]) => {
  const there = () => {
    const all = [...document.querySelectorAll(seen)];
    return all.length === count && all[0].checkVisibility();
  };
  const begun = performance.now();
  document.querySelector(press).click();
  while (!there()) await new Promise(requestAnimationFrame);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - begun;
}"""


def main() -> None:
    """Measure and print one document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--openings", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, quick_page(Path(home)) as server:
        fill(Path(home), asked.runs)
        with chromium() as browser, Visitor(browser, server.url) as visitor:
            document = measured(visitor, server.url, asked.openings)
    json.dump({"schema": "specrag.bench-opening/1", "runs": asked.runs, **document}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def fill(home: Path, runs: int) -> None:
    """Keep so many runs, the newest of twenty drafts."""
    store = TraceStore(home / "traces.db")
    small, large = events_of_run(), events_of_run(drafts=DRAFTS, words=WORDS)
    for number in range(runs - 1):
        _keep(store, small, f"run-{number}", f"2026-01-{1 + number % 28:02d}T10:00:00+00:00")
    _keep(store, large, _RUN, "2026-02-01T10:00:00+00:00")
    say(f"{runs} runs are kept")


def _keep(store: TraceStore, events: list[e.Event], run_id: str, created_at: str) -> None:
    first = events[0]
    assert isinstance(first, e.RunStarted)
    named = [replace(first, run_id=run_id, created_at=created_at), *events[1:]]
    store.save(fold(named), named)


def measured(visitor: Visitor, url: str, openings: int) -> dict[str, Any]:
    """Both times, with what went over the line; the first of each pays for what is loaded once."""
    page = visitor.page
    page.goto(f"{url}/?trace={_RUN}")
    page.locator("#sr-detail-board article.sr-card").nth(DRAFTS - 1).wait_for()
    joined: list[str] = []
    page.on("request", lambda request: _note(request, joined))
    times: dict[str, list[float]] = {"list": [], "run": []}
    requests: dict[str, list[float]] = {"list": [], "run": []}
    presses = {
        "list": ['[data-sr-action="runs-back"]', "#sr-runs .sr-run-question", 50],
        "run": [
            f'[data-sr-action="run-open"][data-sr-id="{_RUN}"]',
            "#sr-detail-board article.sr-card",
            DRAFTS,
        ],
    }
    for number in range(openings + 1):
        for name, press in presses.items():
            joined.clear()
            took = page.evaluate(_TIMED, press)
            _settle(page)
            if number:
                times[name].append(took)
                requests[name].append(len(joined))
        say(f"opening {number} of {openings}")
    return {
        "press_to_paint_ms": {name: spread(values) for name, values in times.items()},
        "requests_of_a_press": {name: spread(values) for name, values in requests.items()},
    }


def _note(request: Request, joined: list[str]) -> None:
    if _JOINED in request.url:
        joined.append(request.url)


def _settle(page: Page) -> None:
    """Let what a press has begun come to its end, so that the next one is measured alone."""
    page.wait_for_timeout(1000)


if __name__ == "__main__":
    main()
