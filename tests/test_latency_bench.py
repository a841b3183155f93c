"""The benchmark as a person meets it: the command, its document and tables, servers, and the curve."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from specrag.cli import app
from specrag.config import Settings, load_settings
from specrag.errors import UsageError
from specrag.evaluation.latency.bench import Bench, over_servers
from specrag.evaluation.latency.document import document
from specrag.evaluation.latency.interleave import Plan
from specrag.evaluation.latency.markdown import markdown
from specrag.evaluation.latency.shapes import shape_of
from specrag.evaluation.latency.spread import Ratio
from specrag.evaluation.latency.sweep import Point, break_even, sweep
from specrag.evaluation.latency.texts import Lengths
from specrag.evaluation.reading import checked
from specrag.evaluation.shelf import Shelf
from specrag.models.loading import load_tokenizer
from specrag.prices import EXAMPLE, EXAMPLE_MACHINE
from tests.fake_server.rig import write
from tests.fake_server.server import FakeServer

DRAFTER = "llama:hidden=64,layers=2,heads=2"
VERIFIER = "llama:hidden=128,layers=2,heads=2"
SHORT = ["--passages", "4", "--passage-tokens", "10", "--drafts", "2", "--tokens", "6", "--repeats", "2"]
PLAN = Plan(
    lengths=Lengths(passages=4, passage_tokens=10, drafts=2, tokens=6, rationale=3), repeats=2, warmups=0
)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings(threads=1)


@pytest.fixture(scope="module")
def bench(settings: Settings, model_path: Path) -> Iterator[Bench]:
    tokenizer = load_tokenizer(model_path, name="tokenizer")
    made = Bench(settings, tell=lambda _: None, tokenizer=tokenizer)
    yield made
    made.close()


@pytest.fixture(scope="module")
def found(bench: Bench, settings: Settings) -> dict[str, Any]:
    """The document of one small benchmark with its curve."""
    small, large = shape_of(DRAFTER), shape_of(VERIFIER)
    result = bench.run(small, large, PLAN)
    curve = sweep(bench, small, (1, 2), PLAN, settings=settings, tell=lambda _: None)
    return document(result, prices=(EXAMPLE, EXAMPLE_MACHINE), curve=curve, threads=1)


def test_the_document_has_what_its_readers_rely_on(found: dict[str, Any]) -> None:
    assert found["schema"] == "specrag.bench/1"
    assert (found["drafter"], found["verifier"]) == (DRAFTER, VERIFIER)
    assert "say nothing about quality" in found["label"]
    for way in ("standard", "speculative"):
        assert found[way]["ttft_ms"] > 0
        assert found[way]["total_ms"] >= found[way]["ttft_ms"]
        assert len(found[way]["runs"]) == 2
    for name in ("ttft", "total"):
        medians = [found[way][f"{name}_ms"] for way in ("standard", "speculative")]
        assert found["ratio"][name] == pytest.approx(medians[0] / medians[1], rel=0.02)
        low, high = found["ratio"][f"{name}_interval"]
        assert low <= found["ratio"][name] <= high
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_what_a_benchmark_writes_is_read_whole(found: dict[str, Any]) -> None:
    """A form that lags behind its writer would refuse every report of the next version."""
    read = checked(json.loads(json.dumps(found)))
    assert {key: read["ratio"][key] for key in ("ttft", "total")} == {
        key: found["ratio"][key] for key in ("ttft", "total")
    }
    assert read["floor"]["machine"] == found["floor"]["machine"]
    assert [one["ms"] for one in read["standard"]["phases"]] == [
        one["ms"] for one in found["standard"]["phases"]
    ]
    assert len(read["costs"]) == len(found["costs"])


def test_every_model_phase_stands_beside_its_floor(found: dict[str, Any]) -> None:
    """The figures of this program stood alone, and nobody could say how far from the possible they were."""
    for way in ("standard", "speculative"):
        for phase in found[way]["phases"]:
            if phase["role"] is None:
                assert phase["floor_ms"] is None
            else:
                assert phase["floor_ms"] > 0
                assert phase["times_floor"] == pytest.approx(phase["ms"] / phase["floor_ms"], rel=0.6)
    assert found["floor"]["ratio"]["total"] > 0
    assert found["floor"]["machine"]["matrix_gflops"] > 1


def test_the_tables_say_the_figures_and_their_conditions(found: dict[str, Any]) -> None:
    text = markdown(found)
    assert f"# Latency: {DRAFTER} drafts, {VERIFIER} verifies" in text
    assert "say nothing about quality" in text
    assert "2 repetitions in turn after 0 to warm up" in text
    assert "Time to first token" in text
    assert f"**{found['ratio']['total']:.2f}**" in text
    assert "seconds are the floor, not measured" in text.lower()
    assert "## Where it begins to pay" in text
    assert "fp32 matrix product" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_a_lost_comparison_is_said(found: dict[str, Any]) -> None:
    """A report that only knows how to win is an advertisement."""

    def told(total: Sequence[float], first: Sequence[float]) -> str:
        ratio = {**found["ratio"], "total_interval": total, "ttft_interval": first}
        return markdown({**found, "ratio": ratio})

    text = told([0.4, 0.6], [0.8, 1.3])
    assert "to the whole answer speculative RAG is slower: it does not pay" in text
    assert "to its first token neither is shown to be faster" in text
    text = told([2.1, 2.9], [0.4, 0.6])
    assert "to the whole answer speculative RAG is faster" in text
    assert "to its first token speculative RAG is slower: it does not pay" in text


def test_a_verifier_that_does_not_fit_is_left_out_of_the_curve_and_named(
    bench: Bench, settings: Settings
) -> None:
    """One verifier too many threw away the points that had been measured."""
    told: list[str] = []
    small = shape_of(DRAFTER)
    free = iter([10**10, 10**10, 10])
    curve = sweep(bench, small, (1, 4), PLAN, settings=settings, tell=told.append, free=lambda: next(free))
    assert [one.sizes for one in curve.points] == [1.0]
    assert len(curve.left_out) == 1
    assert "are free" in curve.left_out[0]
    assert told == ["verifier of 1.00 times the drafter's size"]


def point(sizes: float, value: float) -> Point:
    scattered = Ratio(value=value, low=value, high=value)
    return Point(verifier="v", parameters=1, sizes=sizes, ttft=scattered, total=scattered, floor=1.0)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([(1, 0.5), (4, 2.0)], 2.0),  # halfway on both logarithmic axes
        ([(4, 2.0), (1, 0.5)], 2.0),
        ([(1, 0.25), (2, 0.5), (8, 2.0), (16, 4.0)], 4.0),
        ([(1, 0.5), (3, 1.0)], 3.0),
        ([(1, 0.5), (2, 0.9)], None),
        ([(2, 1.5), (4, 3.0)], None),
        ([], None),
    ],
)
def test_the_break_even_by_hand(curve: Sequence[tuple[float, float]], expected: float | None) -> None:
    found = break_even([point(*one) for one in curve], "total")
    assert found == (None if expected is None else pytest.approx(expected))


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
        (["--drafter", DRAFTER, "--verifier", VERIFIER, "--tokens", "1"], 2, "rationale is 0"),
        (["--drafter", DRAFTER, "--verifier", VERIFIER, "--json", "/no/where.json"], 2, "cannot be written"),
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


def test_served_models_are_measured_with_exact_lengths_and_have_no_floor() -> None:
    with FakeServer(write) as drafter, FakeServer(write) as verifier:
        settings = load_settings({}, drafter_url=drafter.url, verifier_url=verifier.url)
        result = over_servers(settings, PLAN, tell=lambda _: None)
        bodies = [seen.body for seen in (*drafter.seen, *verifier.seen) if seen.body.get("stream")]
    assert {body["min_tokens"] for body in bodies} == {3, 6}
    assert all(run.usage.verifier.completion_tokens == 6 for run in result.measured.standard)
    assert all(run.usage.drafter.completion_tokens == 12 for run in result.measured.speculative)
    found = document(result, prices=(EXAMPLE,))
    assert found["floor"] == {}
    assert found["models"]["size_ratio"] is None
    assert found["label"].startswith("Models behind servers")
    assert "there is no floor" in markdown(found)


def test_a_role_without_a_server_is_told() -> None:
    with pytest.raises(UsageError, match="The drafter has no server"):
        over_servers(load_settings({}), PLAN, tell=lambda _: None)
