"""Reports from outside are checked, and the last ones are kept: what a visitor hands in is nobody's trust."""

import json
import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from specrag.evaluation.document import COMPARED
from specrag.evaluation.form_parts import MOST, MOST_FILES, MOST_SIZES, MOST_SYSTEMS
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.reading import MOST_BYTES, checked, read_report
from specrag.evaluation.shelf import FOLDER, Shelf
from specrag.evaluation.shelf import MOST as MOST_KEPT
from tests.report_samples import HOSTILE, evaluation, latency
from tests.test_evaluation_report import report

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pipelines(count: int) -> dict[str, Any]:
    return {f"p{number}": evaluation()["pipelines"]["standard"] for number in range(count)}


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


def test_as_much_as_the_commands_take_is_read() -> None:
    """The 21st file of questions cost the page, after hours of evaluating."""
    many, (difference, _) = pipelines(MOST_SYSTEMS), evaluation()["differences"]
    found = checked(
        evaluation(
            seed=int(MOST),
            pipelines=many,
            datasets={f"file {number}": {"n": 1, "pipelines": many} for number in range(MOST_FILES)},
            differences=[{**difference, "metric": one} for one in COMPARED for _ in many],
            judge={"model": "big-1", "pipelines": {name: {} for name in many}},
        )
    )
    assert len(found["datasets"]) == MOST_FILES
    made = latency()
    made["sweep"]["points"] = made["sweep"]["points"][:1] * MOST_SIZES
    made["sweep"]["left_out"] = ["It does not fit."] * MOST_SIZES
    assert len(checked(made)["sweep"]["points"]) == MOST_SIZES


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
        {"pipelines": pipelines(MOST_SYSTEMS + 1)},
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
    for number in range(MOST_KEPT + 3):
        made = evaluation(dataset=f"set {number}") if number % 2 else latency(drafter=f"shape {number}")
        shelf.keep(made, now=NOW + timedelta(minutes=number))
    kept = shelf.kept()
    assert len(kept) == MOST_KEPT
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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pipelines": {}}, "is no whole report: pipelines"),
        ({"command": "x" * (MOST_BYTES + 1)}, "is larger than 8 MiB"),
    ],
)
def test_what_could_not_be_read_again_is_not_kept(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    """It stood on the shelf, took the place of an older one, and was in no list."""
    with pytest.raises(EvaluationError, match=says):
        Shelf(tmp_path).keep(evaluation(**change))
    assert not (tmp_path / FOLDER).exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """Half a file stayed for ever, under a name that nobody clears."""
    shelf = Shelf(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(EvaluationError, match=r"cannot be kept in .*: File too large"):
            shelf.keep(evaluation())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_file_that_has_grown_is_not_read_whole(tmp_path: Path) -> None:
    """The list read it all into memory, whatever its size."""
    shelf = Shelf(tmp_path)
    name = shelf.keep(evaluation())
    (tmp_path / FOLDER / name).write_text(json.dumps(evaluation()) + " " * MOST_BYTES)
    assert Shelf(tmp_path).kept() == ()
    with pytest.raises(EvaluationError, match="is larger than 8 MiB"):
        shelf.load(name)


def test_titles_of_reports_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    for number in range(MOST_KEPT + 3):
        shelf.keep(evaluation(), now=NOW + timedelta(minutes=number))
        shelf.kept()
    assert len(shelf._titles) == MOST_KEPT


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file")
    with pytest.raises(EvaluationError, match="cannot be kept"):
        Shelf(tmp_path).keep(evaluation())
    assert Shelf(tmp_path).kept() == ()
