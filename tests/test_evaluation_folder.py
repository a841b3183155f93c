"""What is on the disk: nothing twice, nothing lost, nothing mixed, whatever happens to the process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from specrag.evaluation.folder import LINES, Folder, Line
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.systems import systems_of
from tests.evaluation_rig import DATA, evaluated, plan, runner


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


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": 2}, "with seed 1, and now it is 2"),
        ({"corpus": "open"}, 'with corpus "given", and now it is "open"'),
        ({"datasets": (replace(DATA, sha256="f" * 64),)}, "with data.bikes "),
        ({"systems": systems_of("standard:answer_tokens=9")}, ""),
        (
            {"settings": plan().settings.model_copy(update={"drafts": 2})},
            "with settings.drafts 4, and now it is 2",
        ),
    ],
)
async def test_another_plan_is_refused_by_name(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    """Half of a table under other settings is no table, and nobody would see it."""
    folder, _ = await evaluated(tmp_path, plan("standard"))
    folder.close()
    again = Folder(tmp_path)
    other = plan("standard", **changes)
    if not says:  # another system is no other plan
        runner(again, other)
        return
    with pytest.raises(EvaluationError) as refused:
        runner(again, other)
    assert says in str(refused.value)
    assert "--restart" in str(refused.value)
    again.begin({"data": {}, "systems": {}}, restart=True)
    assert again.finished == {}
    assert not list((tmp_path / "traces").iterdir())


@pytest.mark.parametrize("files", [("bikes", "bells"), ("bells",)])
async def test_an_open_corpus_belongs_to_its_files(tmp_path: Path, files: tuple[str, ...]) -> None:
    """With another file every question looks among more passages: the runs of before did not."""
    folder = Folder(tmp_path)
    made = plan("standard", corpus="open")
    folder.begin(made.document({}, {}))
    folder.close()
    other = replace(made, datasets=tuple(replace(DATA, name=name) for name in files))
    with pytest.raises(
        EvaluationError, match=r"holds runs with data\.(bells not set|bikes .*, and now it is not set)"
    ):
        Folder(tmp_path).begin(other.document({}, {}))


def test_a_restart_removes_the_corpus(tmp_path: Path) -> None:
    """What an open corpus has left stays for nobody when a folder begins anew with the questions' own passages."""
    folder = Folder(tmp_path)
    folder.begin(plan("standard", corpus="open").document({}, {}))
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "chroma.sqlite3").write_text("")
    folder.begin(plan("standard").document({}, {}), restart=True)
    assert not (tmp_path / "chroma").exists()


async def test_code_that_answers_follow_from_is_part_of_the_plan(tmp_path: Path) -> None:
    """A changed prompt changes every answer and no version."""
    folder, _ = await evaluated(tmp_path, plan("standard"))
    folder.close()
    file = tmp_path / "plan.json"
    file.write_text(file.read_text().replace('"code": "', '"code": "0'))
    with pytest.raises(EvaluationError, match="holds runs with code"):
        runner(Folder(tmp_path), plan("standard"))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not touch")
    with pytest.raises(EvaluationError, match="files that are no evaluation"):
        Folder(tmp_path).begin({"data": {}, "systems": {}})


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
