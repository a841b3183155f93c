"""The runs of an evaluation: the same passages for all, nothing twice, nothing lost, nothing mixed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from specrag.errors import UsageError
from specrag.evaluation.corpus import OPEN, OpenCorpus
from specrag.evaluation.folder import LINES, Folder, Line
from specrag.evaluation.plan import sample
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.runner import Progress
from specrag.evaluation.systems import forked, systems_of
from specrag.models.scripted import ScriptedModel, Written
from specrag.retrieval.chroma import ChromaStore
from tests.evaluation_rig import DATA, PASSAGES, QUESTIONS, evaluated, plan, runner, write
from tests.toys import WordEmbedder


def answers(folder: Folder) -> dict[tuple[str, str], str]:
    return {(line.question, line.system): line.answer for line in folder.finished.values()}


async def test_all_systems_answer_from_the_same_passages(tmp_path: Path) -> None:
    """Each with its own retrieval, a difference between pipelines could be one between searches."""
    folder, told = await evaluated(tmp_path, plan("standard,drafter,speculative,multihop"))
    assert len(folder.finished) == 12
    for question in QUESTIONS:
        traces = [folder.trace(line) for line in folder.finished.values() if line.question == question.id]
        found = {tuple(one.id for one in trace.passages) for trace in traces if trace is not None}
        assert len(found) == 1
        assert set(*found) <= {one.id for one in PASSAGES}
    assert answers(folder)["hours", "speculative"] == "5 hours."
    assert (told[0].done, told[0].left_s, told[-1].done, told[-1].left_s) == (0, None, 12, 0.0)
    assert told[-1].failed == 0


async def test_no_label_reaches_a_system(tmp_path: Path) -> None:
    """Gold passages, accepted answers and ids of the file stay out of every prompt and trace."""
    question = replace(QUESTIONS[0], id="secret-id", answers=("secret-answer",))
    folder, _ = await evaluated(tmp_path, plan(datasets=(replace(DATA, questions=(question,)),)))
    for trace in (tmp_path / "traces").glob("*.json"):
        text = trace.read_text(encoding="utf-8")
        assert "secret" not in text
        assert "gold" not in text
    assert len(folder.finished) == 3


async def test_closed_book_sees_no_passage(tmp_path: Path) -> None:
    """A control that reads the passages, or is told to, is none."""
    prompts: list[str] = []

    def told(text: str) -> Written:
        prompts.append(text)
        return {"answer": "five hours."}

    folder = Folder(tmp_path)
    await runner(folder, plan("closed-book,closed-book-drafter"), drafter=ScriptedModel(told)).run()
    asked = [prompt for prompt in prompts if "Question:" in prompt]
    assert len(asked) == 6
    assert not any("watt-hours" in prompt or "passage" in prompt.lower() for prompt in asked)
    assert set(answers(folder).values()) == {"Five hours."}
    line = folder.finished["bikes", "hours", "closed-book"]
    trace = folder.trace(line)
    assert line.retrieve_ms is None
    assert trace is not None
    assert trace.passages == ()
    assert trace.usage.verifier.completion_tokens == 2


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


async def test_a_failed_question_is_counted_named_and_tried_again(tmp_path: Path) -> None:
    """One question that a model cannot take ends neither the others nor the evaluation."""

    def refuse(text: str) -> Written:
        if "heavy" in text:
            raise ValueError("the model is out of memory")
        return write(text)

    folder = Folder(tmp_path)
    told: list[Progress] = []
    await runner(folder, plan("standard"), drafter=ScriptedModel(refuse), tell=told.append).run()
    assert (told[-1].failed, told[-1].done) == (1, 3)
    line = folder.finished["bikes", "weight", "standard"]
    assert (line.status, line.error) == ("failed", "the model is out of memory")
    assert any("weight standard failed: the model is out of memory" in one.text for one in told)
    folder.close()
    folder, told_again = await evaluated(tmp_path, plan("standard"))
    assert (told_again[0].done, told_again[-1].failed) == (2, 0)


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


async def test_the_time_left_knows_that_systems_differ(tmp_path: Path) -> None:
    """By the mean of all runs, an evaluation that began with its slowest system promised hours."""
    seconds = {"standard": 2.0, "drafter": 10.0}
    now, told = [0.0], list[Progress]()

    def tell(state: Progress) -> None:
        told.append(state)

    def timer() -> float:
        lines = folder.finished.values()
        now[0] = sum(seconds[line.system] for line in lines)
        return now[0]

    folder = Folder(tmp_path)
    await runner(folder, plan("standard,drafter"), tell=tell, timer=timer).run()
    assert told[0].left_s is None
    assert told[2].left_s == 2 * 2.0 + 2 * 10.0  # after one question, whichever system came first
    assert told[-1].left_s == 0.0


def test_two_evaluations_do_not_share_a_folder(tmp_path: Path) -> None:
    held = Folder(tmp_path)
    with pytest.raises(EvaluationError, match="in use by another evaluation"):
        Folder(tmp_path)
    held.close()
    Folder(tmp_path).close()


def test_a_smaller_sample_is_part_of_a_larger_one() -> None:
    """So that more questions can be added to a folder."""
    questions = [replace(QUESTIONS[0], id=str(number)) for number in range(50)]
    ten, twenty = sample(questions, seed=3, limit=10), sample(questions, seed=3, limit=20)
    assert twenty[:10] == ten
    assert sample(list(reversed(questions)), seed=3, limit=10) == ten
    assert sample(questions, seed=4, limit=10) != ten


async def test_no_system_is_always_first(tmp_path: Path) -> None:
    """The first run of a question would pay for cold caches every time."""
    made = plan()
    firsts = {made.order(replace(QUESTIONS[0], id=str(number)))[0].name for number in range(30)}
    assert firsts == {"standard", "drafter", "speculative"}


async def test_the_open_corpus_is_searched_whole(tmp_path: Path) -> None:
    """A question finds a passage that another one brought; what is indexed already stays."""
    questions = (
        replace(QUESTIONS[0], passages=PASSAGES[2:]),
        replace(QUESTIONS[1], passages=PASSAGES[:2]),
    )
    made = plan("standard", datasets=(replace(DATA, questions=questions),), corpus="open")
    store = ChromaStore(None)
    told: list[tuple[int, int]] = []

    def corpus(store: ChromaStore) -> OpenCorpus:
        return OpenCorpus(
            store, WordEmbedder(), questions, tell=lambda *state: told.append((state[0], state[1]))
        )

    folder = Folder(tmp_path)
    await runner(folder, made, corpus=corpus, store=store).run()
    trace = folder.trace(folder.finished["bikes", "hours", "standard"])
    assert trace is not None
    assert PASSAGES[1].id in {one.id for one in trace.passages}
    assert told == [(5, 5)]
    editions = store.editions(OPEN)
    corpus(store)
    assert store.editions(OPEN) == editions
    store.close()


async def test_a_fork_takes_over_what_the_plain_run_wrote(tmp_path: Path) -> None:
    """Groundedness costs one more reading, not four more drafts."""
    systems = (*systems_of("speculative"), forked(systems_of("speculative:grounded=true")[0]))
    assert systems[1].fork == "verify"
    folder, _ = await evaluated(tmp_path, plan(systems=systems))
    plain, other = (folder.trace(folder.finished["bikes", "hours", system.name]) for system in systems)
    assert plain is not None
    assert other is not None
    assert [draft.answer for draft in plain.drafts] == [draft.answer for draft in other.drafts]
    assert other.usage.drafter.completion_tokens == 0
    assert all(draft.scores.grounded for draft in other.drafts if draft.usable)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "No pipeline is named"),
        ("fast", "There is no pipeline “fast”"),
        ("standard,standard", "named twice"),
        ("standard:drafts", "“drafts” is no setting"),
        ("standard:drfts=2", "drfts is not a setting of specrag; did you mean drafts?"),
        ("standard:drafts=99", "SPECRAG_DRAFTS"),
        ("standard:verifier=x", "cannot differ from run to run"),
    ],
)
def test_wrong_systems_are_refused_before_anything_is_run(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        runner(Folder(tmp_path), plan(systems=systems_of(text)))
    assert says in str(refused.value)


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
