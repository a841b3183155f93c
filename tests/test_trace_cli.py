"""`specrag trace`: what a person and a script see of kept runs, and how runs leave and come in."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrag.cli import main
from specrag.tracing.codec import to_dict
from specrag.tracing.export.events_of import events_of
from specrag.tracing.store import TraceStore
from tests.chrome_trace import check_chrome_trace
from tests.ui_runs import MULTIHOP
from tests.ui_traces import DISPUTED, SELECTED


class Outcome:
    """Exit status and words of one call."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Trace = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with three runs."""
    monkeypatch.setenv("SPECRAG_HOME", str(tmp_path))
    store = TraceStore(tmp_path / "traces.db")
    for trace in (SELECTED, DISPUTED, MULTIHOP):
        store.save(trace, events_of(trace))
    return tmp_path


@pytest.fixture
def trace(home: Path, capfd: pytest.CaptureFixture[str]) -> Trace:
    def call(*words: str | Path) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            main(["trace", *map(str, words)])
        said = capfd.readouterr()
        return Outcome(int(ended.value.code or 0), said.out, said.err)

    return call


def test_the_list_can_be_searched_and_cut(trace: Trace) -> None:
    assert {run["run_id"] for run in trace("list", "--json").document["runs"]} == {
        "run-1",
        "run-2",
        "run-multihop",
    }
    found = trace("list", "boat", "--limit", "1", "--json").document
    assert (found["schema"], found["total"], len(found["runs"])) == ("specrag.traces/1", 2, 1)
    assert "run-multihop" not in trace("list", "boat").out
    assert "1 of 2 runs" in trace("list", "boat", "--limit", "1").err
    assert trace("list", "zebra").out.strip() == "No run has “zebra”."
    assert trace("list", "zebra", "--json").document["runs"] == []
    assert trace("list", "--limit", "0").code == 2


@pytest.mark.parametrize(
    ("form", "begins"),
    [("json", b"{"), ("perfetto", b"{"), ("openinference", b"{"), ("html", b"<!doctype html>")],
)
def test_a_run_leaves_in_every_format(trace: Trace, tmp_path: Path, form: str, begins: bytes) -> None:
    """To a file and to stdout alike, and nothing else is on stdout."""
    file = tmp_path / "out"
    assert trace("export", "run-2", "--format", form, "-o", file).code == 0
    data = file.read_bytes()
    assert data.lstrip().startswith(begins)
    assert trace("export", "run-2", "--format", form).out.encode() == data
    bare = trace("export", "run-2", "--format", form, "--without-texts").out
    assert DISPUTED.question in data.decode()
    assert DISPUTED.question not in bare
    if form == "perfetto":
        check_chrome_trace(data)


def test_what_was_exported_is_imported_under_an_id_of_its_own(
    trace: Trace, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "run.json"
    trace("export", "run-2", "--out", file)
    run_id = trace("import", file).out.strip()
    assert run_id != "run-2"
    kept = TraceStore(home / "traces.db")
    assert to_dict(kept.load(run_id)) == {**to_dict(DISPUTED), "run_id": run_id}
    assert kept.events(run_id)[1:] == kept.events("run-2")[1:]
    assert trace("delete", "run-2", run_id).code == 0
    assert trace("import", file, "--json").document == {
        "schema": "specrag.imported/1",
        "run_id": "run-2",
        "question": DISPUTED.question,
    }
    assert trace("export", "run-2").out == file.read_text(encoding="utf-8")


def test_deleted_runs_are_gone_and_unknown_ones_are_named(trace: Trace) -> None:
    outcome = trace("delete", "run-1", "nobody", "run-1", "--json")
    assert outcome.code == 1
    assert outcome.document == {"schema": "specrag.deleted/1", "deleted": ["run-1"], "missing": ["nobody"]}
    assert "There is no run “nobody” here; deleted 1 of 2." in outcome.err
    assert trace("show", "run-1").code == 1
    assert trace("delete", "run-2").err.strip() == "Deleted 1 run."


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("export", "nothing"), 1, "There is no run"),
        (("export", "run-1", "--format", "pigeon"), 2, "choose one of json, perfetto, openinference, html"),
        (("export", "run-1", "-o", "/nowhere/run.json"), 1, "cannot be written"),
        (("import", "/nowhere/run.json"), 1, "cannot be read: No such file"),
        (("import", __file__), 1, "not JSON"),
        (("delete",), 2, "Missing argument"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_a_status(
    trace: Trace, words: tuple[str, ...], code: int, sentence: str
) -> None:
    outcome = trace(*words)
    assert (outcome.code, outcome.out) == (code, "")
    assert sentence in outcome.err
    assert "Traceback" not in outcome.err
