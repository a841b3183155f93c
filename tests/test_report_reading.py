"""Reports from outside are checked, and the last ones are kept: what a visitor hands in is nobody's trust."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.reading import MOST_BYTES, checked, read_report
from specrag.evaluation.shelf import FOLDER, MOST, Shelf
from tests.report_samples import HOSTILE, evaluation, latency
from tests.test_evaluation_report import report

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_both_forms_are_read() -> None:
    assert read_report(json.dumps(evaluation()).encode())["pipelines"]["standard"]["metrics"]["score"] == 0.6
    assert read_report(json.dumps(latency()).encode())["ratio"]["total"] == 2.5


async def test_what_an_evaluation_writes_is_read_whole(tmp_path: Path) -> None:
    """A form that lags behind its writer would refuse every report of the next version."""
    made = await report(tmp_path)
    found = checked(json.loads(json.dumps(made)))
    for name, one in made["pipelines"].items():
        assert found["pipelines"][name]["metrics"] == one["metrics"]
        assert found["pipelines"][name]["latency"] == one["latency"]
        assert set(found["pipelines"][name]["choices"] or {}) <= {*one.get("choices", {})}
    assert [one["mean"] for one in found["differences"]] == [one["mean"] for one in made["differences"]]


def test_a_served_benchmark_has_no_floor() -> None:
    assert checked(latency(floor={}))["floor"] is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is no report"),
        (b'{"schema": ["specrag.eval/1"]}', "is no report"),
        (b'{"schema": "specrag.trace/1"}', "is no report"),
        (b'{"schema": "specrag.eval/1"}', "is no whole report: dataset"),
        (b" " * (MOST_BYTES + 1), "is larger than 8 MiB"),
    ],
)
def test_what_is_no_report_is_one_sentence(data: bytes, says: str) -> None:
    """A stack trace, or a page that draws half of it, would be the other outcomes."""
    with pytest.raises(EvaluationError, match=says):
        read_report(data, "my.json")


@pytest.mark.parametrize(
    "change",
    [
        {"n": float("inf")},
        {"n": -1},
        {"n": 10**400},
        {"pipelines": {}},
        {"pipelines": {f"p{number}": evaluation()["pipelines"]["standard"] for number in range(61)}},
        {"differences": "many"},
        {"datasets": {"bikes": None}},
    ],
)
def test_numbers_and_sizes_have_bounds(change: dict[str, Any]) -> None:
    """Infinity broke the axes of a figure, thousands of pipelines the page."""
    with pytest.raises(EvaluationError, match="is no whole report"):
        checked(evaluation(**change))


def test_texts_are_bounded_and_printable() -> None:
    found = checked(evaluation(dataset="x" * 10_000, command=f"a\nb{HOSTILE}"))
    assert len(found["dataset"]) < 1100
    assert found["command"].isprintable()


def test_the_last_reports_are_kept(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    for number in range(MOST + 3):
        made = evaluation(dataset=f"set {number}") if number % 2 else latency(drafter=f"shape {number}")
        shelf.keep(made, now=NOW + timedelta(minutes=number))
    kept = shelf.kept()
    assert len(kept) == MOST
    assert (kept[0].title, kept[0].kind) == ("shape 22 drafts, smollm2-1.7b verifies", "bench")
    assert kept[0].made_at == "2026-01-01 00:22"
    assert kept[1].title.startswith("set 21: 4 questions, standard, speculative")
    assert shelf.load(kept[1].name)["dataset"] == "set 21"


def test_somebody_elses_report_is_not_there(tmp_path: Path) -> None:
    """Behind a login, the questions that somebody has uploaded are theirs."""
    shelf = Shelf(tmp_path)
    hers = shelf.keep(evaluation(), owner="user:ada")
    ours = shelf.keep(latency())
    assert {one.name for one in shelf.kept("user:ada")} == {hers, ours}
    assert {one.name for one in shelf.kept("user:bob")} == {ours}
    assert shelf.load(hers, "user:ada")["n"] == 4
    with pytest.raises(EvaluationError, match="no such report"):
        shelf.load(hers, "user:bob")
    assert "ada" not in hers


@pytest.mark.parametrize(
    "name", ["", "../traces.db", "/etc/passwd", "20260101T000000-eval-all-00000000.json\n"]
)
def test_a_name_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(EvaluationError):
        Shelf(tmp_path).load(name)


def test_a_damaged_report_is_left_out(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    name = shelf.keep(evaluation())
    (tmp_path / FOLDER / name).write_text("{}")
    (tmp_path / FOLDER / "notes.txt").write_text("mine")
    assert shelf.kept() == ()
    with pytest.raises(EvaluationError, match="is no report"):
        shelf.load(name)


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file")
    with pytest.raises(EvaluationError, match="cannot be kept"):
        Shelf(tmp_path).keep(evaluation())
    assert Shelf(tmp_path).kept() == ()
