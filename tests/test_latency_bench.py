"""The benchmark as a person meets it: its document and tables, the curve, and what does not fit."""

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specrag.config import Settings, load_settings
from specrag.doctor import processor_name
from specrag.errors import ModelError
from specrag.evaluation.latency.bench import Bench, Result, needs
from specrag.evaluation.latency.document import document
from specrag.evaluation.latency.floor import seconds, this_machine
from specrag.evaluation.latency.interleave import Plan
from specrag.evaluation.latency.markdown import markdown
from specrag.evaluation.latency.shapes import shape_of
from specrag.evaluation.latency.spread import Ratio
from specrag.evaluation.latency.sweep import Point, break_even, larger, sweep
from specrag.evaluation.latency.texts import Lengths
from specrag.evaluation.reading import checked
from specrag.models.loading import load_tokenizer
from specrag.prices import EXAMPLE, EXAMPLE_MACHINE

DRAFTER = "llama:hidden=64,layers=2,heads=2"
VERIFIER = "llama:hidden=128,layers=2,heads=2"
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
def result(bench: Bench) -> Result:
    return bench.run(shape_of(DRAFTER), shape_of(VERIFIER), PLAN)


@pytest.fixture(scope="module")
def found(bench: Bench, settings: Settings, result: Result) -> dict[str, Any]:
    """The document of one small benchmark with its curve."""
    small = shape_of(DRAFTER)
    curve = sweep(bench, small, larger(small, (2, 1)), PLAN, settings=settings, tell=lambda _: None)
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


def test_floors_are_those_of_the_models_and_the_machine_that_were_measured(
    settings: Settings, result: Result, found: dict[str, Any]
) -> None:
    """The drafter's phases had the verifier's floor, ten times as high, and nothing looked wrong."""
    assert result.machine is not None
    machine = this_machine(
        gflops=result.machine.matrix_gflops,
        gb_s=result.machine.memory_gb_s,
        precision=settings.precision,
    )
    shapes = {"drafter": shape_of(DRAFTER), "verifier": shape_of(VERIFIER)}
    expected = {one.name: seconds(shapes[one.role], one.passes, machine) for one in result.phases}
    assert result.floors == pytest.approx(expected)
    assert len(expected) == 5
    for way in ("standard", "speculative"):
        for phase in found[way]["phases"][: -1 if way == "speculative" else None]:
            assert phase["floor_ms"] == pytest.approx(expected[phase["name"]] * 1000, abs=0.05)


def test_medians_are_of_all_runs(result: Result, found: dict[str, Any]) -> None:
    """The phases were those of the first run, which pays for what comes once."""
    for way, runs in (("standard", result.measured.standard), ("speculative", result.measured.speculative)):
        for place, phase in enumerate(found[way]["phases"]):
            taken = [run.phases[place].seconds * 1000 for run in runs]
            assert phase["ms"] == pytest.approx(statistics.median(taken), abs=0.05)
            if phase["floor_ms"]:
                assert phase["times_floor"] == pytest.approx(
                    statistics.median(taken) / (result.floors or {})[phase["name"]] / 1000, abs=0.005
                )


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
    assert f"Measured on {os.cpu_count()} cores of {processor_name()}, 1 thread; specrag " in text
    assert "torch" in text
    assert "asked from" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_a_lost_comparison_is_said(found: dict[str, Any]) -> None:
    """A report that only knows how to win is an advertisement."""

    def told(total: Sequence[float], first: Sequence[float]) -> str:
        ratio = {**found["ratio"], "total_interval": total, "ttft_interval": first}
        return markdown({**found, "ratio": ratio, "repeats": 5})

    text = told([0.4, 0.6], [0.8, 1.3])
    assert "to the whole answer speculative RAG is slower: it does not pay" in text
    assert "to its first token neither is shown to be faster" in text
    text = told([2.1, 2.9], [0.4, 0.6])
    assert "to the whole answer speculative RAG is faster" in text
    assert "to its first token speculative RAG is slower: it does not pay" in text


@pytest.mark.parametrize("repeats", [1, 2, 4])
def test_too_few_repetitions_give_no_verdict(found: dict[str, Any], repeats: int) -> None:
    """Two runs that fell on one side by luck were called faster."""
    clear = {**found["ratio"], "total_interval": [2.1, 2.9], "ttft_interval": [0.4, 0.6]}
    text = markdown({**found, "ratio": clear, "repeats": repeats})
    assert f"too few repetitions to say which way is faster: {repeats}, and it takes 5 at least" in text
    assert "RAG is faster" not in text
    assert "RAG is slower" not in text
    assert "a hint and not a finding" in text
    assert "a hint and not a finding" not in markdown({**found, "ratio": clear, "repeats": 5})


def test_one_repetition_has_no_interval(bench: Bench, settings: Settings) -> None:
    """“2.00 (2.00 to 2.00)” looked like the surest of all figures."""
    small, large = shape_of(DRAFTER), shape_of(VERIFIER)
    once = replace(PLAN, repeats=1)
    curve = sweep(bench, small, larger(small, (1,)), once, settings=settings, tell=lambda _: None)
    found = document(bench.run(small, large, once), prices=(), curve=curve)
    assert found["ratio"]["total_interval"] is found["ratio"]["ttft_interval"] is None
    assert "no interval" in found["ratio"]["interval"]
    assert found["sweep"]["points"][0]["total_interval"] is None
    text = markdown(found)
    rows = [line for line in text.splitlines() if line.startswith(("| whole answer", "| standard | read"))]
    assert len(rows) == 2
    assert not any(" to " in row for row in rows)
    assert f"**{found['ratio']['total']:.2f}** |" in rows[0]


def test_the_interval_is_told_as_it_is_drawn(found: dict[str, Any]) -> None:
    assert found["ratio"]["interval"].startswith("95 % of 10,000 draws of the repetitions")
    assert "standard / speculative (95 %)" in markdown(found)


def test_a_verifier_that_does_not_fit_is_left_out_of_the_curve_and_named(
    bench: Bench, settings: Settings
) -> None:
    """One verifier too many threw away the points that had been measured."""
    told: list[str] = []
    small = shape_of(DRAFTER)
    free = iter([10**10, 10**10, 10])
    verifiers = larger(small, (1, 4))
    curve = sweep(bench, small, verifiers, PLAN, settings=settings, tell=told.append, free=lambda: next(free))
    assert [one.sizes for one in curve.points] == [1.0]
    assert len(curve.left_out) == 1
    assert "are free" in curve.left_out[0]
    assert told == ["verifier of 1.00 times the drafter's size"]
    with pytest.raises(ModelError, match=f"are free: {DRAFTER} "):
        sweep(bench, small, verifiers, PLAN, settings=settings, tell=told.append, free=lambda: 10)


def test_models_that_do_not_fit_together_are_refused_before_any_is_built(
    settings: Settings, model_path: Path
) -> None:
    """The machine swapped, or killed the process: each model fitted, both did not."""
    told: list[str] = []
    small, large = shape_of(DRAFTER), shape_of(VERIFIER)
    tokenizer = load_tokenizer(model_path, name="tokenizer")
    made = Bench(settings, tell=told.append, tokenizer=tokenizer, free=lambda: 1_100_000_000)
    each = [need.total for need in needs(small, large, made.counted(PLAN), settings)]
    assert max(each) < 100_000_000 < sum(each)
    with pytest.raises(ModelError, match=r"1\.1 GB are free: llama:hidden=64.* llama:hidden=128"):
        made.run(small, large, PLAN)
    assert told == []
    made.close()


def point(sizes: float, value: float) -> Point:
    total, never = (Ratio(value=one, low=one, high=one, n=5) for one in (value, 0.1))
    return Point(verifier="v", parameters=1, sizes=sizes, ttft=never, total=total, floor=1.0)


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
    points = [point(*one) for one in curve]
    assert break_even(points, "total") == (None if expected is None else pytest.approx(expected))
    assert break_even(points, "ttft") is None
