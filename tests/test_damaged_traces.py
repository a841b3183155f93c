"""Runs whose documents in the file are damaged: one sentence to whoever opens them, and they can be deleted."""

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specrag.cli import app
from specrag.config import load_settings
from specrag.errors import TraceError
from specrag.library.visitors import OPERATOR, VISITOR, Visitor
from specrag.runs import Runs
from specrag.tracing.history import History
from specrag.tracing.store import RunFilter, TraceStore
from tests.kept_runs import keep

ANN, BEN = (Visitor(id=name, owner=f"{VISITOR}{name}") for name in ("ann", "ben"))
DAMAGE = {
    "not packed": b"\x00 no zlib",
    "cut": zlib.compress(b"{" * 10_000)[:20],
    "no letters": zlib.compress(b"\xff\xfe\xff"),
    "no document": zlib.compress(b'{"schema": 1'),
    "another one": zlib.compress(b"[1, 2]"),
}


@pytest.fixture(params=list(DAMAGE.values()), ids=list(DAMAGE))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A home with a whole run of Ann's and a damaged one."""
    store = TraceStore(tmp_path / "traces.db")
    for run_id in ("whole", "bad"):
        keep(store, run_id, owner=ANN.owner or "")
    with closing(sqlite3.connect(tmp_path / "traces.db")) as connection, connection:
        connection.execute(
            "UPDATE recordings SET trace = ?1, events = ?1 WHERE run_id = 'bad'", (request.param,)
        )
    return tmp_path


@pytest.fixture
def history(home: Path) -> History:
    store = TraceStore(home / "traces.db")
    return History(store, Runs(store, deadline_s=20), load_settings({}, access="visitor"))


def test_it_is_listed_and_named_and_deleted(history: History) -> None:
    """Its button read the trace for the name of the run, and so could never delete it."""
    assert {run.run_id for run in history.find(ANN, RunFilter())[0]} == {"whole", "bad"}
    for read in (history.trace, history.events):
        with pytest.raises(TraceError) as refused:
            read(ANN, "bad")
        assert "\n" not in str(refused.value)
    assert history.question(ANN, "bad") == "How long may boats stay?"
    assert history.delete(ANN, ["bad"]) == 1
    assert {run.run_id for run in history.find(ANN, RunFilter())[0]} == {"whole"}


def test_its_question_is_nobody_elses(history: History) -> None:
    for run_id in ("bad", "whole"):
        with pytest.raises(TraceError, match="There is no run"):
            history.question(BEN, run_id)
    assert history.question(OPERATOR, "whole") == "How long may boats stay?"


def test_the_command_line_deletes_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECRAG_HOME", str(home))
    shown = CliRunner().invoke(app, ["trace", "show", "bad"])
    assert shown.exit_code == 1
    assert "Error: " in shown.output
    assert CliRunner().invoke(app, ["trace", "delete", "bad"]).exit_code == 0
    assert "bad" not in CliRunner().invoke(app, ["trace"]).output
