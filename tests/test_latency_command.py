"""`specrag bench` as it is typed: files and tables, and what it refuses before anything is measured."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specrag.cli import app
from specrag.evaluation.shelf import Shelf
from tests.test_latency_bench import DRAFTER, VERIFIER

SHORT = ["--passages", "4", "--passage-tokens", "10", "--drafts", "2", "--tokens", "6", "--repeats", "2"]


def test_the_command_writes_its_files_and_prints_the_tables(own_home: Path, tmp_path: Path) -> None:
    as_json, as_markdown, as_html = (tmp_path / f"bench.{form}" for form in ("json", "md", "html"))
    result = CliRunner().invoke(
        app,
        [
            *("bench", "--drafter", DRAFTER, "--verifier", VERIFIER, *SHORT),
            *("--hour", "2", "--million", "1,2,3,4"),
            *("--json", str(as_json), "--markdown", str(as_markdown), "--html", str(as_html)),
        ],
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == as_markdown.read_text("utf-8")
    assert "1 of 2, standard: first token after" in result.stderr
    assert "Where it begins to pay" not in as_html.read_text("utf-8")
    assert f"Latency: {DRAFTER} drafts, {VERIFIER} verifies" in as_html.read_text("utf-8")
    assert [one.kind for one in Shelf(own_home).kept()] == ["bench"]
    found = json.loads(as_json.read_text("utf-8"))
    assert found["lengths"]["rationale"] == 3
    assert found["costs"][0]["assumes"][0].startswith("$1 and $2 for a million tokens")
    assert found["costs"][1]["assumes"][0] == "$2 for an hour of the machine"


@pytest.mark.usefixtures("own_home")
def test_json_on_stdout_is_alone_there() -> None:
    result = CliRunner().invoke(
        app, ["bench", "--drafter", DRAFTER, "--verifier", VERIFIER, *SHORT, "--json", "-"]
    )
    assert json.loads(result.stdout)["schema"] == "specrag.bench/1"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--drafter", "smollm2-135m"], 2, "Give two shapes"),
        (["--drafter", "smollm2-135m", "--verifier", "gpt-9"], 2, "There is no shape “gpt-9”"),
        (["--drafter", DRAFTER, "--verifier", "llama3.1-70b"], 1, "GB of memory and"),
        (["--drafter", DRAFTER, "--verifier", VERIFIER, "--million", "1,2"], 2, "is not four prices"),
        (["--drafter", DRAFTER, "--verifier", VERIFIER, "--sweep", "many"], 2, "is not numbers"),
        (
            ["--drafter", DRAFTER, "--verifier", VERIFIER, "--sweep", ",".join(map(str, range(1, 102)))],
            2,
            "--sweep names 101 sizes; a report holds 100 at most",
        ),
        (["--drafter", DRAFTER, "--verifier", VERIFIER, "--tokens", "1"], 2, "rationale is 0"),
        (["--drafter", DRAFTER, "--verifier", VERIFIER, "--json", "/no/where.json"], 2, "cannot be written"),
        (["--drafter", DRAFTER, "--verifier", VERIFIER, "--json", "/proc/b.json"], 2, "cannot be written"),
        (["--server-drafter", "http://127.0.0.1:1"], 2, "The verifier has no server"),
        (["--drafter", f"{DRAFTER},vocab=100", "--verifier", VERIFIER], 2, "has a vocabulary of 100"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(
    arguments: list[str], status: int, said: str, model_path: Path
) -> None:
    result = CliRunner().invoke(app, ["bench", *arguments])
    assert (result.exit_code, result.stdout) == (status, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("wrong", ["nan", "inf", "0", "-2", "0.5", "1e300"])
def test_a_multiple_that_cannot_be_made_is_refused_before_anything_is_built(
    wrong: str, model_path: Path
) -> None:
    """It was found out after the main benchmark, whose figures went with it; 1e300 was looked for for ever."""
    words = ["bench", "--drafter", DRAFTER, "--verifier", VERIFIER, *SHORT, "--sweep", f"1,{wrong}"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1, "nothing was built and nothing else is told"
    assert "times the drafter's size; give numbers from 1 to 10,000." in result.stderr


def test_what_has_no_meaning_behind_servers_is_refused_and_not_ignored() -> None:
    """Whoever typed --precision took the figures for those of that precision."""
    words = ["--drafter", DRAFTER, "--verifier", VERIFIER, "--sweep", "1,2", "--precision", "float32"]
    for at in (0, 2, 4, 6):
        given = words[at : at + 2]
        result = CliRunner().invoke(app, ["bench", "--server-verifier", "http://127.0.0.1:1", *given])
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"Error: {given[0]} cannot be given together with servers")
        assert result.stderr.count("\n") == 1


def test_a_finished_measurement_is_printed_when_its_file_cannot_be_written(own_home: Path) -> None:
    """The file came first, and a full disk was a traceback with no figures; the page has its copy as well."""
    words = ["bench", "--drafter", DRAFTER, "--verifier", VERIFIER, *SHORT, "--markdown", "/dev/full"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert result.stdout.startswith("# Latency: ")
    assert result.stderr.endswith("Error: /dev/full cannot be written: No space left on device.\n")
    assert len(Shelf(own_home).kept()) == 1
