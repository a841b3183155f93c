"""The script that chooses weights: figures are of the half that nothing was chosen on, and of the right data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.choose_weights import Case, cases, choose, chosen
from specrag.evaluation.datasets import read_questions
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.questions import Question
from specrag.evaluation.systems import system_of
from specrag.tracing.trace import Trace
from specrag.types import Draft, Scores
from tests.evaluation_rig import QUESTIONS, evaluated, plan

SYSTEM = "speculative:grounded=true"
ROOT = Path(__file__).parent.parent
QUESTION = Question(id="q", question="How heavy?", answers=("3.4 kg",), passages=())


def data(folder: Path) -> Path:
    """Two questions with answers, as a file."""
    rows = [
        {
            "id": one.id,
            "question": one.question,
            "answers": one.answers,
            "passages": [{"title": p.title, "text": p.text} for p in one.passages],
        }
        for one in QUESTIONS[:2]
    ]
    path = folder / "bikes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


async def ran(folder: Path, path: Path) -> Path:
    """An evaluation of that file."""
    made = plan(systems=(system_of(SYSTEM),), datasets=(read_questions(path),))
    kept, _ = await evaluated(folder / "runs", made)
    kept.close()
    return folder / "runs"


async def test_weights_are_chosen_from_the_runs_of_an_evaluation(tmp_path: Path) -> None:
    """The script reads what `specrag eval` has kept."""
    path = data(tmp_path)
    found = choose(list(cases([path], await ran(tmp_path, path), SYSTEM)))
    assert found["n"] == 2
    assert set(found["presets"]) == {"paper", "default"}
    assert found["best_in_sample"][0]["score"] >= max(found["presets"].values())


def case(wrong: Scores, right: Scores, answer: str = "3.4 kg") -> Case:
    drafts = (
        Draft(
            subset_id="s0",
            answer="34 kg" if answer == "3.4 kg" else answer,
            scores=wrong,
            finish_reason="stop",
        ),
        Draft(subset_id="s1", answer="3.4 kg", scores=right, finish_reason="stop"),
    )
    made = Trace(run_id="r", status="done", pipeline="speculative", question="", created_at="", drafts=drafts)
    return QUESTION, made


BY_DRAFT = case(Scores(draft=0.1, relevance=0.9), Scores(draft=0.9, relevance=0.1))
BY_RELEVANCE = case(Scores(draft=0.9, relevance=0.1), Scores(draft=0.1, relevance=0.9))
EASY = case(Scores(draft=0.5, relevance=0.5), Scores(draft=0.5, relevance=0.5), "It is 3.4 kg.")


def test_figures_are_of_the_half_that_nothing_was_chosen_on() -> None:
    """One half is right by the draft's own score, the other by relevance: what each prefers fails on the other.

    On the half that they were chosen on, both choices are right every time.
    """
    found = chosen(([BY_DRAFT, BY_DRAFT], [BY_RELEVANCE, EASY]))
    assert found["held_out"] == {"each": [0.5, 0.0], "mean": 0.25}
    assert found["n"] == 4
    assert (
        found["best_in_sample"][0]["score"] == 0.75
    )  # (0 + 0.5) / 2 in each way of choosing, and better by both


async def test_other_data_than_that_of_the_runs_is_refused(tmp_path: Path) -> None:
    """Runs of before would be judged by the answers of a file that has been corrected since."""
    path = data(tmp_path)
    runs = await ran(tmp_path, path)
    path.write_text(path.read_text().replace("5 hours", "6 hours"))
    with pytest.raises(EvaluationError, match="bikes has changed since the runs"):
        list(cases([path], runs, SYSTEM))
    other = path.rename(tmp_path / "bells.jsonl")
    with pytest.raises(EvaluationError, match="holds no runs on bells"):
        list(cases([other], runs, SYSTEM))


def test_a_mistyped_folder_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    """An empty folder was made, and the sentence spoke of too few runs."""
    command = [sys.executable, str(ROOT / "scripts" / "choose_weights.py"), "--data", str(data(tmp_path))]
    ended = subprocess.run(
        [*command, "--out", str(tmp_path / "rusn")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "rusn holds no evaluation" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "rusn").exists()
