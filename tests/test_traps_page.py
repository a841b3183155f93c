"""docs/traps.md, scripts/traps.py and the source belong together: none may move on without the others."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from scripts.check_traps import built_in, stale
from scripts.traps import TRAPS, Trap

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "traps.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| .* \| .* \| (.*) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SOURCE = re.compile(r"`(specrag/[\w/]+\.py)`")


def rows() -> dict[int, list[tuple[str, str]]]:
    """Number of each trap on the page with its tests: file and function."""
    return {int(row[1]): TEST.findall(row[2]) for row in ROW.finditer(PAGE)}


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def named(trap: Trap) -> str:
    return f"{trap.number}: {trap.name}"


def test_the_page_has_all_twelve_traps_and_a_test_for_each() -> None:
    assert list(rows()) == list(range(1, 13))
    assert all(rows().values())


@pytest.mark.parametrize("number", range(1, 13))
def test_every_test_on_the_page_exists(number: int) -> None:
    for path, function in rows()[number]:
        assert function in functions(path), f"{path}::{function}"


def test_every_file_on_the_page_exists() -> None:
    named_files = set(SOURCE.findall(PAGE))
    assert named_files
    assert not [path for path in named_files if not (ROOT / path).is_file()]


@pytest.mark.parametrize("trap", TRAPS, ids=named)
def test_a_trap_can_still_be_built_in(trap: Trap) -> None:
    """Text that no longer stands exactly once in its file: bring the change in scripts/traps.py up to date."""
    texts = {change.path: (ROOT / change.path).read_text(encoding="utf-8") for change in trap.changes}
    assert not stale(trap.changes, texts)
    for path, text in built_in(trap.changes, texts).items():
        assert text != texts[path]
        ast.parse(text)


def test_page_and_script_name_the_same_tests() -> None:
    built: dict[int, set[str]] = defaultdict(set)
    for trap in TRAPS:
        built[trap.number].add(trap.test.partition("[")[0])
    assert built == {number: {"::".join(test) for test in tests} for number, tests in rows().items()}
