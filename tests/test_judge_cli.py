"""`specrag eval --judge` as it is typed, with models and a judge behind real ports."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specrag.cli import main
from specrag.models.weights import Weights
from tests.fake_server.faults import Fault
from tests.fake_server.server import FakeServer
from tests.judge_rig import CHATS, KEY, MODEL, server

Eval = Callable[..., tuple[int, str, str]]
ROW = {
    "id": "battery",
    "question": "How many watt-hours does the battery hold?",
    "answers": ["640 watt-hours"],
    "passages": [{"title": "Battery", "text": "The battery holds 640 watt-hours."}],
}
COUNT = 3
"""Questions, of which the scripted models answer the same."""


def write(text: str) -> dict[Any, str]:
    return {"rationale": " The battery holds 640 watt-hours.", "answer": " 640 watt-hours"}


def judged_by(judge: FakeServer) -> tuple[str, ...]:
    return ("--judge", judge.url, "--judge-model", MODEL)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "bikes.jsonl"
    rows = [{**ROW, "id": f"q{at}", "question": f"{ROW['question']} {at}"} for at in range(COUNT)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Eval:
    monkeypatch.setenv("SPECRAG_JUDGE_KEY", KEY)

    def call(*words: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["eval", *map(str, words)])
        said = capfd.readouterr()
        assert KEY not in said.out + said.err
        return int(ended.value.code or 0), said.out, said.err

    return call


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Drafter and verifier that write what a script says."""
    with FakeServer(write, model="drafter") as drafter, FakeServer(write, model="verifier") as verifier:
        for role, one in (("DRAFTER", drafter), ("VERIFIER", verifier)):
            monkeypatch.setenv(f"SPECRAG_{role}_URL", one.url)
            monkeypatch.setenv(f"SPECRAG_{role}", one.api.model)
        yield


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--judge", "http://127.0.0.1:9"), "name one that its server has with --judge-model NAME"),
        (
            ("--judge-model", "m"),
            "--judge-model wants a judge: give the address of its server with --judge URL",
        ),
        (("--ragas",), "--ragas wants a judge"),
        (("--judge", "ftp://x", "--judge-model", "m"), "SPECRAG_JUDGE_URL: “ftp://x” is no address"),
        (("--judge", f"http://ann:{KEY}@x/v1", "--judge-model", "m"), "set SPECRAG_JUDGE_KEY"),
        (("--judge", f"http://x/v1?key={KEY}", "--judge-model", "m"), "must end with its path"),
    ],
)
def test_what_is_wrong_is_one_sentence(evaluate: Eval, data: Path, words: tuple[str, ...], says: str) -> None:
    """Before any model is loaded, and without a key that somebody put into the address."""
    code, out, told = evaluate("--data", data, *words)
    assert (code, out) == (2, "")
    assert says in told


@pytest.mark.integration
def test_one_command_from_a_file_to_judged_figures(
    evaluate: Eval, models: None, data: Path, tmp_path: Path, weights: Weights
) -> None:
    """The judge is tried once, asked once for each different answer, and not at all by the same command again."""
    report, out = tmp_path / "report.json", tmp_path / "runs"
    with server() as judge:
        words = ("--data", data, "--pipelines", "standard,drafter", "--out", out, *judged_by(judge))
        code, said, told = evaluate(*words, "--json", report)
        assert code == 0, told
        assert f"judged {2 * COUNT} of {2 * COUNT}" in told
        assert judge.requests[CHATS] == 1 + COUNT
        again, printed, _ = evaluate(*words, "--json", "-")
        assert (again, judge.requests[CHATS]) == (0, 1 + COUNT)
    assert "## The judge" in said
    assert "`toy-judge`" in said
    found = json.loads(report.read_text())
    assert found["pipelines"]["standard"]["metrics"]["judged"] == 1.0
    assert found["judge"]["tokens"]["prompt"] == 100 * COUNT
    assert json.loads(printed)["judge"] == found["judge"]
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.integration
def test_a_wrong_key_is_told_before_anything_is_run(
    evaluate: Eval, models: None, data: Path, tmp_path: Path, weights: Weights
) -> None:
    """Hours of runs, and then a judge that nobody may ask, would be a bad surprise."""
    with server(key="another") as judge:
        words = (*judged_by(judge), "--out", tmp_path / "runs")
        code, out, told = evaluate("--data", data, "--pipelines", "standard", *words)
    assert (code, out) == (1, "")
    assert "refused the key (status 401); set SPECRAG_JUDGE_KEY" in told
    assert not (tmp_path / "runs" / "results.jsonl").exists()


@pytest.mark.integration
def test_restart_with_a_wrong_key_removes_nothing(
    evaluate: Eval, models: None, data: Path, tmp_path: Path, weights: Weights
) -> None:
    words = ("--data", data, "--pipelines", "standard", "--out", tmp_path / "runs")
    assert evaluate(*words)[0] == 0
    with server(key="another") as judge:
        assert evaluate(*words, *judged_by(judge), "--restart")[0] == 1
    assert len((tmp_path / "runs" / "results.jsonl").read_text().splitlines()) == COUNT


@pytest.mark.integration
def test_a_judge_that_goes_away_costs_its_figures_only(
    evaluate: Eval, models: None, data: Path, tmp_path: Path, weights: Weights
) -> None:
    """The tables of the runs are put out, the exit status says that something is missing, the next call mends it."""
    with server() as judge:
        words = ("--data", data, "--pipelines", "standard", "--out", tmp_path / "runs", *judged_by(judge))
        judge.fault = Fault(kind="status", status=401, skip=1, on=CHATS)
        code, said, told = evaluate(*words)
        assert code == 1
        assert "## Answers" in said
        assert "ended early" in said
        assert "Not everything was judged, and the same command goes on." in told
        judge.fault = None
        code, said, told = evaluate(*words)
    assert code == 0, told
    assert "ended early" not in said
