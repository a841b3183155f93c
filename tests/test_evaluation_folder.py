"""What is on the disk: nothing twice, nothing lost, nothing mixed, whatever happens to the process."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specrag.evaluation.folder import LINES, Folder, Line
from specrag.evaluation.problems import EvaluationError
from tests.evaluation_rig import evaluated, plan, runner


async def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    first, _ = await evaluated(tmp_path)
    before = (tmp_path / LINES).read_bytes()
    first.close()
    second, told = await evaluated(tmp_path)
    assert (tmp_path / LINES).read_bytes() == before
    assert (told[0].done, len(told)) == (9, 1)
    second.close()


async def test_more_questions_and_more_systems_are_added(tmp_path: Path) -> None:
    """Whoever wants a second baseline must not pay for the first one again."""
    folder, _ = await evaluated(tmp_path, plan("standard", limit=2))
    assert len(folder.finished) == 2
    folder.close()
    folder, told = await evaluated(tmp_path, plan("drafter,standard", limit=3))
    assert told[0].done == 2
    assert len(folder.finished) == 6
    folder.close()
    folder, told = await evaluated(tmp_path, plan("drafter", limit=1))
    assert (told[0].done, told[0].total) == (1, 1)


async def test_a_torn_line_is_run_again(tmp_path: Path) -> None:
    """A machine that lost power in the middle of a line must neither stop nor count it."""
    folder, _ = await evaluated(tmp_path)
    folder.close()
    path = tmp_path / LINES
    path.write_bytes(path.read_bytes()[:-20])
    folder, told = await evaluated(tmp_path)
    assert told[0].done == 8
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 9


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not touch")
    with pytest.raises(EvaluationError, match="files that are no evaluation"):
        Folder(tmp_path).begin({"data": {}, "systems": {}})


def test_a_plan_that_cannot_be_written_leaves_an_empty_folder(tmp_path: Path) -> None:
    """Half of it stayed, and the same command refused the folder as one of something else."""
    made = {"data": {"bikes": "0" * 2000}, "systems": {}}
    folder = Folder(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(EvaluationError, match="cannot be written: File too large"):
            folder.begin(made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    folder.begin(made)
    assert folder.plan() == made
    folder.close()


def test_a_plan_that_was_half_written_when_the_process_died_is_no_hindrance(tmp_path: Path) -> None:
    """A process that is killed leaves the file in which a plan begins; the same command refused the folder for it."""
    made: dict[str, object] = {"data": {}, "systems": {}}
    (tmp_path / ".plan.json.0a1b2c3d").write_text('{"data"')
    folder = Folder(tmp_path)
    folder.begin(made)
    assert folder.plan() == made
    folder.close()


def test_a_restart_removes_runs_and_nothing_else(tmp_path: Path) -> None:
    """A plan that is damaged must not stand in the way of beginning anew, nor a thesis be in it."""
    folder = Folder(tmp_path)
    folder.begin({"data": {}, "systems": {}})
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(EvaluationError, match="use --restart"):
        folder.begin({"data": {}, "systems": {}})
    folder.begin({"data": {}, "systems": {}}, restart=True)
    folder.close()
    other = tmp_path / "other"
    other.mkdir()
    (other / "results.jsonl").write_text("somebody's")
    with pytest.raises(EvaluationError, match="no evaluation"):
        Folder(other).begin({"data": {}, "systems": {}}, restart=True)
    assert (other / "results.jsonl").read_text() == "somebody's"


def test_two_evaluations_do_not_share_a_folder(tmp_path: Path) -> None:
    held = Folder(tmp_path)
    with pytest.raises(EvaluationError, match="in use by another evaluation"):
        Folder(tmp_path)
    held.close()
    Folder(tmp_path).close()


async def test_cancelling_leaves_what_was_finished(tmp_path: Path) -> None:
    """Ctrl-C after two of nine runs: every run that ended has its line and its trace, and no other has."""
    folder = Folder(tmp_path)
    task: asyncio.Task[None] | None = None

    def stop(state: object) -> None:
        if len(folder.finished) == 2 and task is not None:
            task.cancel()

    task = asyncio.create_task(runner(folder, plan(), tell=stop).run())
    with pytest.raises(asyncio.CancelledError):
        await task
    kept = [Line(**json.loads(line)) for line in (tmp_path / LINES).read_text().splitlines()]
    assert kept == list(folder.finished.values())
    assert 2 <= len(kept) < 9
    assert all(folder.trace(line) is not None for line in folder.finished.values())


async def test_a_disk_that_takes_no_line_is_one_sentence(tmp_path: Path) -> None:
    """A full disk ended hours of an evaluation with a traceback."""
    folder = Folder(tmp_path)
    made = runner(folder, plan("standard"))
    (tmp_path / LINES).symlink_to("/dev/full")
    with pytest.raises(EvaluationError, match=r"results\.jsonl cannot be written: No space left on device\."):
        await made.run()
    assert folder.finished == {}


_KILLED = """
import asyncio, sys
from pathlib import Path
from specrag.evaluation.folder import Folder
from specrag.models.scripted import ScriptedModel
from tests.evaluation_rig import plan, runner, write

calls = 0

def slow(text):
    global calls
    calls += "Question:" in text
    if calls == 5:
        print("hangs", flush=True)
        sys.stdin.read()
    return write(text)

folder = Folder(Path(sys.argv[1]))
asyncio.run(runner(folder, plan("standard,drafter"), drafter=ScriptedModel(slow)).run())
"""


def _start_and_kill(folder: Path) -> None:
    command = [sys.executable, "-c", _KILLED, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hangs\n"
        os.kill(process.pid, signal.SIGKILL)


async def test_a_killed_process_goes_on_where_it_was(tmp_path: Path) -> None:
    """SIGKILL in the middle of a run, in a process of its own: what was finished is there, once."""
    _start_and_kill(tmp_path)
    before = (tmp_path / LINES).read_text().splitlines()
    assert len(before) == 4
    folder, told = await evaluated(tmp_path, plan("standard,drafter"))
    after = (tmp_path / LINES).read_text().splitlines()
    assert after[:4] == before
    assert (told[0].done, told[-1].done, len(after)) == (4, 6, 6)
    assert len({Line(**json.loads(line)).key for line in after}) == 6
    folder.close()
