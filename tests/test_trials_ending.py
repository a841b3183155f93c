"""How a small evaluation on the page ends: stopped with what it has, with the program, or with a dead process."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.evaluation.folder import Folder, Line
from specrag.evaluation.shelf import Shelf
from specrag.evaluation.trial_folder import trial_folder
from specrag.evaluation.trials import Trials
from specrag.tracing.trace import Trace
from tests.trial_rig import GatedModel, ended, toy_host, until, wanted


@pytest.fixture
def model() -> GatedModel:
    return GatedModel()


@pytest.fixture
def host(tmp_path: Path, model: GatedModel) -> Iterator[Parts]:
    with toy_host(tmp_path, model) as made:
        yield made


@pytest.fixture
def trials(host: Parts) -> Iterator[Trials]:
    made = Trials(host)
    yield made
    made.close()


def test_a_trial_that_is_stopped_reports_what_it_has(
    trials: Trials, model: GatedModel, tmp_path: Path
) -> None:
    """Minutes of work are not thrown away; and the next one can begin."""
    model.left = 2  # warming up, and one run
    trials.start(wanted("standard"))
    until(lambda: trials.newest is not None and trials.newest.done == 1)
    assert trials.stop()
    trial = ended(trials)
    assert (trial.stage, trial.done, trial.total) == ("stopped", 1, 3)
    report = Shelf(tmp_path).load(trial.report)
    assert (report["finished"], report["pipelines"]["standard"]["n"]) == (False, 1)
    assert not trials.stop()
    model.left = None
    trials.start(wanted("standard"))
    assert ended(trials).stage == "done"


def test_what_failed_is_in_the_report_of_a_trial_that_is_stopped(
    trials: Trials, model: GatedModel, tmp_path: Path
) -> None:
    """Without it the report is of the runs that went well, and better than the pipeline is."""
    model.fails, model.left = 1, 3  # warming up, and two runs
    trials.start(wanted("standard"))
    until(lambda: trials.newest is not None and trials.newest.done == 2)
    trials.stop()
    trial = ended(trials)
    assert (trial.stage, trial.done, trial.failed) == ("stopped", 2, 1), trial.error
    told = Shelf(tmp_path).load(trial.report)["pipelines"]["standard"]
    assert (told["n"], told["metrics"]["score"]) == (2, 0.5)
    assert [one["error"] for one in told["failed"]] == ["the model is out of memory"]


def test_a_trial_that_is_stopped_at_once_leaves_nothing(
    trials: Trials, model: GatedModel, tmp_path: Path
) -> None:
    model.left = 0
    trials.start(wanted())
    assert trials.stop()
    trial = ended(trials)
    assert (trial.stage, trial.report, trial.done) == ("stopped", "", 0)
    assert Shelf(tmp_path).kept() == ()


def test_a_trial_is_stopped_while_its_report_is_put_on_the_shelf(host: Parts, tmp_path: Path) -> None:
    """Its loop is closed by then, which raised in whoever stopped it or closed the program."""
    meanwhile: list[bool] = []

    class Slow(Shelf):
        def keep(self, report: Mapping[str, Any], *, owner: str = "", now: datetime | None = None) -> str:
            meanwhile.append(page.stop())
            return super().keep(report, owner=owner, now=now)

    host.__dict__["shelf"] = Slow(tmp_path)
    page = Trials(host)
    page.start(wanted("standard"))
    trial = ended(page)
    assert (trial.stage, trial.done, trial.error) == ("done", 3, "")
    assert trial.report
    assert meanwhile == [True]
    page.close()


def test_a_part_that_cannot_be_closed_keeps_no_other_from_it(tmp_path: Path) -> None:
    """The lock of the store would be held, and the threads would go on."""
    closed: list[str] = []

    @dataclass
    class Closing:
        name: str
        broken: bool = False

        def close(self) -> None:
            closed.append(self.name)
            if self.broken:
                raise RuntimeError(self.name)

    parts = Parts(load_settings({}, home=tmp_path))
    made = (Closing("trials", broken=True), Closing("jobs"), Closing("worker", broken=True), Closing("store"))
    parts.__dict__.update({one.name: one for one in made})
    with pytest.raises(RuntimeError, match="worker"):
        parts.close()
    assert closed == ["trials", "jobs", "worker", "store"]


def test_stopping_twice_loses_no_run(trials: Trials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pages show the button: the second press tore the run away that was just being kept."""
    keeping, keep = threading.Event(), Folder.keep

    def slowly(folder: Folder, line: Line, trace: Trace | None) -> None:
        keeping.set()
        until(lambda: stopped)
        time.sleep(0.2)
        keep(folder, line, trace)

    stopped = False
    monkeypatch.setattr(Folder, "keep", slowly)
    trials.start(wanted("standard"))
    assert keeping.wait(30)
    assert trials.stop()
    time.sleep(0.1)  # the first one has arrived
    assert trials.stop()
    stopped = True
    trial = ended(trials)
    assert trial.stage == "stopped"
    assert Shelf(tmp_path).load(trial.report)["pipelines"]["standard"]["n"] == 1


def test_nobody_stops_somebody_elses(trials: Trials, model: GatedModel) -> None:
    model.left = 0
    trials.start(wanted(), owner="user:ada")
    assert not trials.stop("user:bob")
    assert not trials.stop("user:bob", number=1)
    assert not trials.stop("user:ada", number=2)
    assert trials.stop("user:ada", number=1)
    ended(trials)


DEAD = """
import os
from specrag.evaluation.trial_folder import trial_folder
with trial_folder() as folder:
    print(folder, flush=True)
    (folder / "runs").mkdir()
    os._exit(1)
"""


def test_folders_of_processes_that_died_are_removed(
    tmp_path: Path, trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds a store, and a machine that ends its processes by force kept them all."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    told = subprocess.run(
        [sys.executable, "-c", DEAD],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    dead = Path(told.stdout.strip())
    assert (dead / "runs").is_dir()
    young, mine, elsewhere = place / "specrag-trial-young", place / "specrag-other", tmp_path / "elsewhere"
    for folder in (young, mine, elsewhere):
        folder.mkdir()
    (link := place / "specrag-trial-link").symlink_to(elsewhere)
    with trial_folder() as living:
        for folder in (dead, living, mine, elsewhere):
            os.utime(folder, (1, 1))
        trials.start(wanted("standard"))
        assert ended(trials).stage == "done"
        assert set(place.iterdir()) == {living, young, mine, link}
        assert list(elsewhere.iterdir()) == []
    assert not living.exists()
