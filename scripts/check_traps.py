"""Builds every trap of docs/traps.md into a copy of the source and sees that its test fails.

    python -m scripts.check_traps [--only N]

1. Copies the tree to a temporary folder; the checkout is never touched.
2. Runs all named tests there unchanged: a test that fails anyway proves nothing.
3. For every trap: builds it in, runs its test, expects it to fail, takes the trap out again.

Prints a table. Exit status 1 if a trap survives, no longer matches the source, or breaks more than its test.
Some tests need the embedded weights, which are fetched once to SPECRAG_HOME.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from scripts.traps import TRAPS, Change, Trap

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("specrag", "tests", "assets", "scripts", "docs", "pyproject.toml", "requirements.txt", "README.md")
BASELINE_S = 600
"""For all named tests together, without a trap."""
PASSED, FAILED = 0, 1
"""What pytest's exit status says; any other means that no test was run."""

Outcome: TypeAlias = Literal["caught", "caught (no end)", "SURVIVES", "STALE", "BROKEN"]
GOOD: frozenset[Outcome] = frozenset({"caught", "caught (no end)"})


def main() -> int:
    """Check all traps, or those of one number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, metavar="N", help="Only trap N of docs/traps.md.")
    only: int | None = parser.parse_args().only
    traps = [trap for trap in TRAPS if only in (None, trap.number)]
    if not traps:
        parser.error(f"there is no trap {only}")
    with tempfile.TemporaryDirectory(prefix="specrag-traps-") as folder:
        tree = copy_of(ROOT, Path(folder))
        if run(tree, sorted({trap.test for trap in traps}), limit_s=BASELINE_S) != PASSED:
            print("Some of these tests fail without any trap; mend them first.")
            return 1
        outcomes = [report(trap, tree) for trap in traps]
    caught = sum(outcome in GOOD for outcome in outcomes)
    print(f"{caught} of {len(outcomes)} caught")
    return int(caught < len(outcomes))


def copy_of(root: Path, folder: Path) -> Path:
    """The parts of the tree that tests need."""
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            shutil.copy(source, folder / name)
    return folder


def report(trap: Trap, tree: Path) -> Outcome:
    """Check one trap and print its line."""
    began = time.perf_counter()
    outcome = check(trap, tree)
    seconds = time.perf_counter() - began
    print(f"{trap.number:2}  {outcome:15}  {seconds:5.1f} s  {trap.name}  [{trap.test}]", flush=True)
    return outcome


def check(trap: Trap, tree: Path) -> Outcome:
    """Build the trap in, run its test, and take it out again."""
    before = {change.path: (tree / change.path).read_text(encoding="utf-8") for change in trap.changes}
    if stale(trap.changes, before):
        return "STALE"
    try:
        for path, text in built_in(trap.changes, before).items():
            (tree / path).write_text(text, encoding="utf-8")
        status = run(tree, [trap.test], limit_s=trap.limit_s)
    finally:
        for path, text in before.items():
            (tree / path).write_text(text, encoding="utf-8")
    match status:
        case None:
            return "caught (no end)"
        case 0:
            return "SURVIVES"
        case 1:
            return "caught"
        case _:
            return "BROKEN"


def stale(changes: Sequence[Change], texts: dict[str, str]) -> list[Change]:
    """Changes whose text does not stand exactly once in its file."""
    return [change for change in changes if texts[change.path].count(change.old) != 1]


def built_in(changes: Sequence[Change], texts: dict[str, str]) -> dict[str, str]:
    """The files with all changes of a trap."""
    changed = dict(texts)
    for change in changes:
        changed[change.path] = changed[change.path].replace(change.old, change.new)
    return changed


def run(tree: Path, tests: Sequence[str], *, limit_s: float) -> int | None:
    """Exit status of pytest over these tests; None if they do not end."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=limit_s, check=False)  # noqa: S603 - our own words
    except subprocess.TimeoutExpired:
        return None
    if done.returncode not in (PASSED, FAILED):
        print(done.stdout[-2000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
