"""The report: figures by hand, the published form of its JSON, and words that say no more than is shown."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specrag.evaluation.choices import Judgement
from specrag.evaluation.document import Origin, document
from specrag.evaluation.markdown import markdown
from specrag.evaluation.outcome import Outcome, outcomes
from specrag.evaluation.summary import compared, summary
from specrag.evaluation.words import choice_words, difference_words, left_words
from tests.evaluation_rig import DATA, evaluated, plan

ORIGIN = Origin(
    command=("python", "-m", "specrag", "eval", "--data", "my file.jsonl"),
    environment={"versions": {"specrag": "0"}, "models": {"drafter": {"name": "toy"}}, "device": "cpu"},
    config={"drafts": 4},
)


def outcome(question: str, score: float, system: str = "speculative", **fields: Any) -> Outcome:
    return Outcome(dataset="bikes", question=question, system=system, marks={"score": score}, **fields)


async def report(path: Path, names: str = "standard,speculative", **changes: Any) -> dict[str, Any]:
    made = plan(names, **changes)
    folder, _ = await evaluated(path, made)
    return document(made, list(outcomes(made, folder)), ORIGIN)


async def test_the_published_form(tmp_path: Path) -> None:
    """Scripts read these names; the numbers are plain numbers."""
    found = await report(tmp_path)
    assert found["schema"] == "specrag.eval/1"
    assert (found["dataset"], found["n"], found["seed"], found["finished"]) == ("bikes", 3, 1, True)
    assert set(found["pipelines"]) == {"standard", "speculative"}
    assert found["pipelines"]["standard"]["metrics"]["score"] == 1.0
    assert found["pipelines"]["standard"]["intervals"]["score"] == [1.0, 1.0]
    one = found["pipelines"]["speculative"]
    assert one["metrics"]["score"] == pytest.approx(2 / 3)  # three drafts without the fact agree on another
    assert one["counts"] == {
        "score": 3, "exact_match": 2, "f1": 2, "contained": 2, "abstained_right": 1, "abstained_wrong": 2, "words": 2,
        "citation_precision": 1, "citation_recall": 2,
    }  # fmt: skip  # the wrong answer cites nothing, so it has no precision
    assert {"total_ms", "ttft_ms", "retrieve_ms", "phase.draft", "phase.verify", "p95"} <= set(one["latency"])
    assert one["usage"]["verifier"]["forward_passes"] == 1
    assert one["usage"]["drafter"]["completion_tokens"] > 0
    assert found["environment"] == ORIGIN.environment
    assert found["command"] == "python -m specrag eval --data 'my file.jsonl'"
    assert json.loads(json.dumps(found, allow_nan=False)) == found


async def test_the_same_runs_give_the_same_report(tmp_path: Path) -> None:
    assert await report(tmp_path) == json.loads(json.dumps(await _again(tmp_path)))


async def _again(path: Path) -> dict[str, Any]:
    (path / "evaluation.lock").unlink(missing_ok=True)
    return await report(path)


async def test_files_are_told_apart(tmp_path: Path) -> None:
    """Over all files together, a pipeline that fails in one of them could look like the better one."""
    other = replace(DATA, name="bells", questions=DATA.questions[2:])
    found = await report(tmp_path, "standard", datasets=(DATA, other))
    assert (found["n"], found["dataset"]) == (4, "bikes, bells")
    bells = found["datasets"]["bells"]
    assert (bells["n"], bells["pipelines"]["standard"]["counts"]) == (1, {"score": 1, "abstained_right": 1})
    assert "## Score by file" in markdown(found)


async def test_an_unfinished_evaluation_says_so(tmp_path: Path) -> None:
    """Figures of half the questions in a table without a word would be taken for the whole."""
    made = plan("standard", limit=1)
    folder, _ = await evaluated(tmp_path, made)
    larger = plan("standard")
    found = document(larger, list(outcomes(larger, folder)), ORIGIN)
    assert (found["finished"], found["pipelines"]["standard"]["n"]) == (False, 1)
    assert "not finished" in markdown(found)


async def test_a_figure_of_fewer_questions_says_of_how_many(tmp_path: Path) -> None:
    """A citation precision of the one run that cites stood beside n = 3 as if it were of all three."""
    text = markdown(await report(tmp_path))
    heads, row = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith(("| pipeline | n |", "| `speculative` | 3 |"))
    )
    told = dict(zip(heads, row, strict=True))
    assert "n =" not in told["score"]
    assert told["citation precision"].endswith(", n = 1)")
    assert told["exact match"].endswith(", n = 2)")


def test_figures_by_hand() -> None:
    runs = [
        outcome("a", 1.0, times={"total_ms": 100.0}, claimed=(0.9, True)),
        outcome("b", 0.0, times={"total_ms": 300.0}, claimed=(0.9, False)),
        outcome("c", 0.0, error="out of memory"),
    ]
    found = summary(runs, seed=0)
    assert found.metrics["score"].mean == pytest.approx(1 / 3)
    assert found.times["total_ms"].median == 200.0
    assert found.times["total_ms"].p95 == pytest.approx(290.0)
    assert found.failed == (("bikes c", "out of memory"),)
    assert found.calibration.error == pytest.approx(0.4)


def test_differences_are_of_the_questions_that_both_have() -> None:
    """A pipeline that has done only the easy half must not be set against the whole of another."""
    ours = [outcome("a", 1.0), outcome("b", 1.0)]
    theirs = [outcome("b", 0.0), outcome("c", 0.0), outcome("d", 0.0)]
    found = compared(ours, theirs, "score", seed=0)
    assert found is not None
    assert (found.n, found.mean) == (1, 1.0)
    assert compared(ours, [outcome("z", 1.0)], "score", seed=0) is None


def _runs(count: int, selected: Sequence[float], first: Sequence[float]) -> list[Outcome]:
    return [
        outcome(
            str(number),
            selected[number],
            choices={"selected": selected[number], "first": first[number], "oracle": 1.0},
            drafts=(
                Judgement(scores={"draft": 0.9}, right=True),
                Judgement(scores={"draft": 0.9 if number % 2 else 0.1}, right=False),
            ),
        )
        for number in range(count)
    ]


def test_what_the_scores_add_is_said_plainly() -> None:
    """A gain that the interval does not show is called none, and a loss a loss."""
    for first, says in [
        ([0.0] * 40, "is better than taking the first draft (+0.500"),
        ([1.0] * 40, "is worse than taking the first draft (-0.500"),
        ([0.0, 1.0] * 19 + [0.0, 0.0], "40 questions show no gain from choosing by the scores (+0.025"),
    ]:
        found = summary(_runs(40, [0.0, 1.0] * 20, first), seed=0).choices
        assert found is not None
        told = {
            "worth": {name: one.mean for name, one in found.worth.items()},
            "selected_minus": {
                name: {"mean": one.mean, "low": one.low, "high": one.high, "n": one.n, "clear": one.clear}
                for name, one in found.against.items()
            },
        }
        assert says in choice_words(told)
        assert "the choice loses 0.500" in choice_words(told)


def test_scores_are_judged_within_questions() -> None:
    """Half of the questions tie, half are told apart: 0.75."""
    found = summary(_runs(4, [1.0] * 4, [1.0] * 4), seed=0).choices
    assert found is not None
    separation = found.separation["draft"]
    assert (separation.within, separation.questions, separation.drafts) == (0.75, 4, 8)
    assert set(found.separation) == {"draft"}


def test_words_of_a_difference() -> None:
    assert difference_words({"mean": 0.2, "clear": True}) == "better"
    assert difference_words({"mean": -0.2, "clear": True}) == "worse"
    assert difference_words({"mean": 0.2, "clear": False}) == "no difference shown"


async def test_names_of_files_and_errors_bring_no_markup(tmp_path: Path) -> None:
    """A file called "a|b<script>" would tear the table, and an error could write its own heading."""
    found = await report(tmp_path, "standard", datasets=(replace(DATA, name="a|b<script>"),))
    found["pipelines"]["standard"]["failed"] = [
        {"question": "x\n# Title", "error": "| 1 | <img src=x> `code` [a](javascript:b)"}
    ]
    text = markdown(found)
    assert "\n# Title" not in text
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "<img" not in text.replace("\\<img", "")
    assert "[a](" not in text.replace("\\[a\\](", "")
    rows = [line for line in text.splitlines() if line.startswith("| `standard`")]
    assert rows


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, ""), (0.0, ""), (29.6, "30 s left"), (59.6, "1 min left"), (150.0, "2 min left")],
)
def test_what_is_left_is_never_sixty_seconds(seconds: float | None, said: str) -> None:
    assert left_words(seconds) == said
