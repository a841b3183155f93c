"""Scan the page with axe-core in every state, light and dark, wide and on a phone.

From the root of the repository: `python -m scripts.check_page --url http://127.0.0.1:7860`. It lists every
finding, minor ones included; the browser test `tests/e2e/test_accessibility.py` walks through the same states
and demands that none is serious. Runs that are recorded for the walkthrough have to be among the server's
traces for the states that show one (`--home` puts them there).
"""

import argparse
from pathlib import Path
from typing import Final

from specrag.tracing.store import TraceStore
from specrag.tracing.trace import fold
from specrag.ui.tour import recordings
from tests.e2e.axe import STATES, Finding, findings
from tests.e2e.serving import chromium
from tests.e2e.visitor import DESKTOP, PHONE, Theme, Visitor

THEMES: Final[tuple[Theme, ...]] = ("light", "dark")

SAID: Final = 3
"""States that are named with a finding."""


def main() -> None:
    """Parse the command line and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True, help="a server that runs")
    parser.add_argument(
        "--home", type=Path, help="its data folder; the recorded runs are added to its traces"
    )
    arguments = parser.parse_args()
    if arguments.home:
        keep_recordings(arguments.home)
    seen: dict[tuple[str, str], list[str]] = {}
    with chromium() as browser:
        for theme in THEMES:
            for width in (DESKTOP, PHONE):
                visitor = Visitor(browser, arguments.url.rstrip("/"), width=width, theme=theme)
                with visitor:
                    for name, reach in STATES.items():
                        reach(visitor)
                        for finding in findings(visitor.page):
                            _note(seen, finding, f"{name} {theme} {width}")
                    visitor.problems.clear()
    for (what, where), states in sorted(seen.items()):
        print(f"{what} | {where} | {', '.join(states[:SAID])}{' ...' if len(states) > SAID else ''}")
    print(f"{len(seen)} findings")


def keep_recordings(home: Path) -> None:
    """Put the recorded runs among the traces of a server."""
    store = TraceStore(home / "traces.db")
    for run in recordings():
        store.save(fold(run.events), run.events)


def _note(seen: dict[tuple[str, str], list[str]], finding: Finding, state: str) -> None:
    seen.setdefault((f"{finding.impact} {finding.rule}", finding.target), []).append(state)


if __name__ == "__main__":
    main()
