"""`specrag eval` as it is typed, over the real weights and files of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrag.cli import main
from specrag.evaluation.shelf import Shelf
from specrag.models.weights import Weights
from specrag.tracing.codec import from_json

Eval = Callable[..., tuple[int, str, str]]
ROWS = [
    {
        "id": "weight", "question": "How heavy is the battery?", "answers": ["3.4 kilograms"],
        "passages": [
            {"title": "Battery", "text": "The battery weighs 3.4 kilograms.", "is_gold": True},
            {"title": "Bell", "text": "The bell is made of brass and rings twice."},
            {"title": "Soup", "text": "The soup needs 640 onions."},
            {"title": "Load", "text": "The bike carries 160 kilograms."},
        ],
    },
    {
        "id": "onions", "question": "How many onions does the soup need?", "answers": ["640"],
        "passages": [{"title": "Soup", "text": "The soup needs 640 onions.", "is_gold": True}],
    },
]  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "bikes.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], own_home: Path) -> Eval:
    """The command with short answers."""
    for name in ("RATIONALE_TOKENS", "ANSWER_TOKENS", "FALLBACK_TOKENS"):
        monkeypatch.setenv(f"SPECRAG_{name}", "8")

    def call(*words: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["eval", *map(str, words)])
        said = capfd.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


@pytest.mark.integration
def test_one_command_from_a_file_to_a_report(
    evaluate: Eval, data: Path, tmp_path: Path, own_home: Path
) -> None:
    """Tables on stdout, progress on stderr, all forms in files; the second time nothing is run."""
    out, report, tables = tmp_path / "runs", tmp_path / "report.json", tmp_path / "report.md"
    page = tmp_path / "report.html"
    words = ("--data", data, "--pipelines", "speculative,closed-book", "--out", out)
    code, said, told = evaluate(*words, "--json", report, "--markdown", tables, "--html", page)
    assert code == 0, told
    assert "4 runs." in told
    assert "[4/4] bikes" in told
    assert tables.read_text() == said.rstrip("\n") + "\n"
    found: dict[str, Any] = json.loads(report.read_text())
    assert (found["schema"], found["n"], found["finished"]) == ("specrag.eval/1", 2, True)
    assert found["environment"]["models"]["verifier"]["name"] == "smollm2-135m-instruct"
    assert "Evaluation: bikes" in page.read_text(encoding="utf-8")
    assert [one.title for one in Shelf(own_home).kept()] == ["bikes: 2 questions, speculative, closed-book"]
    kept = [from_json(path.read_text()) for path in (out / "traces").glob("*.json")]
    assert len(kept) == 4
    drafted = [trace for trace in kept if trace.drafts]
    assert len(drafted) == 1  # one passage is too few to divide
    code, printed, told = evaluate(*words, "--json", "-")
    assert code == 0
    assert "Going on: 4 of 4 runs are finished and not repeated." in told
    assert json.loads(printed)["pipelines"] == found["pipelines"]


@pytest.mark.integration
def test_the_open_corpus_is_kept_in_the_folder(
    evaluate: Eval, data: Path, tmp_path: Path, weights: Weights
) -> None:
    """Both questions look in all four passages, and the home of the user is not touched."""
    out = tmp_path / "runs"
    words = ("--data", data, "--pipelines", "drafter", "--corpus", "open", "--out", out, "--json", "-")
    code, said, told = evaluate(*words)
    assert code == 0, told
    assert "indexed 4 of 4 passages" in told
    assert json.loads(said)["corpus"] == "open"
    traces = [from_json(path.read_text()) for path in (out / "traces").glob("*.json")]
    assert {len(trace.passages) for trace in traces} == {4}
    assert (out / "chroma").is_dir()


@pytest.mark.integration
def test_an_open_corpus_begins_anew_with_other_files(
    evaluate: Eval, data: Path, tmp_path: Path, weights: Weights
) -> None:
    """Another file is refused by name; after --restart nothing is found that only the old one brought."""
    out, other = tmp_path / "runs", tmp_path / "soups.jsonl"
    other.write_text(json.dumps(ROWS[1]))
    words = ("--pipelines", "drafter", "--corpus", "open", "--out", out, "--json", "-")
    assert evaluate("--data", data, *words)[0] == 0
    code, _, told = evaluate("--data", other, *words)
    assert code == 1
    assert "holds runs with data.bikes" in told
    code, _, told = evaluate("--data", other, *words, "--restart")
    assert code == 0, told
    (trace,) = (from_json(path.read_text()) for path in (out / "traces").glob("*.json"))
    assert [one.title for one in trace.passages] == ["Soup"]


@pytest.mark.integration
@pytest.mark.usefixtures("evaluate", "ctrl_c")
def test_ctrl_c_leaves_what_was_finished(data: Path, tmp_path: Path, weights: Weights) -> None:
    """A real SIGINT to a real process; the sentence says how to go on, and the same command does."""
    command = [sys.executable, "-m", "specrag", "eval", "--data", str(data), "--out", str(tmp_path / "runs")]
    command += ["--pipelines", "standard,closed-book"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert next(line for line in lines if line.startswith("[1/4]"))
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        assert process.wait() == 130
    assert "of 4 runs are finished and kept in" in told
    assert "Traceback" not in told
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Going on: " in done.stderr
    assert "[4/4]" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--pipelines", "fast"), 2, "There is no pipeline “fast”"),
        (("--pipelines", "standard:drafts=0"), 2, "SPECRAG_DRAFTS"),
        (("--json", "none/report.json"), 2, "none/report.json cannot be written"),
        (("--limit", "0"), 2, "greater than or equal to 1"),
        (("--seed", "9" * 20), 2, "Invalid value for '--seed'"),
        (
            ("--pipelines", ",".join(f"standard:seed={n}" for n in range(101))),
            2,
            "a report holds 100 at most",
        ),
        (("--data", "none.jsonl") * 100, 2, "101 files of questions are named; a report holds 100 at most"),
        (("--format", "hotpotqa"), 1, "bikes.jsonl, line 1: “supporting_facts” is not a list of pairs"),
        (("--data", "none.jsonl"), 1, "none.jsonl cannot be read"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    evaluate: Eval, data: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    ended, out, told = evaluate("--data", data, *words)
    assert (ended, out) == (code, "")
    assert says in told
    assert "Traceback" not in told


def test_two_files_of_one_name_are_refused(evaluate: Eval, data: Path, tmp_path: Path) -> None:
    """Their questions would be taken for each other's in the folder."""
    other = tmp_path / "more"
    other.mkdir()
    (other / data.name).write_text(data.read_text())
    code, _, told = evaluate("--data", data, "--data", other / data.name)
    assert code == 2
    assert "Two files of questions are called “bikes”" in told
