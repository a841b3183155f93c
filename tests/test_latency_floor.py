"""Passes, floors, ratios and costs, each against numbers worked out by hand or counted in the real engine."""

from pathlib import Path
from typing import Any

import pytest

from specrag.evaluation.latency.costs import GPU, PAIRINGS, measured_cost, pairing_costs, proportional
from specrag.evaluation.latency.floor import (
    Machine,
    bytes_read,
    floors,
    operations,
    seconds,
    this_machine,
    total,
    ttft,
)
from specrag.evaluation.latency.interleave import WAYS
from specrag.evaluation.latency.passes import Counted, Pass, counted
from specrag.evaluation.latency.random_weights import made
from specrag.evaluation.latency.shapes import PRESETS, Shape, shape_of
from specrag.evaluation.latency.spread import ratio, spread
from specrag.evaluation.latency.texts import Lengths, work_of
from specrag.evaluation.latency.ways import Pair, PhaseName, Way, run
from specrag.models.loading import load_tokenizer
from specrag.models.local import LocalModel
from specrag.models.render import Renderer
from specrag.models.worker import Worker
from specrag.prices import MachinePrice, TokenPrices
from specrag.tracing.trace import Usage
from specrag.types import Role, RoleUsage

TINY = Shape(name="tiny", hidden=8, layers=2, heads=2, kv=1, intermediate=16, vocab=100)
LENGTHS = Lengths(passages=4, passage_tokens=20, drafts=3, per_draft=2, tokens=12, rationale=7)
ROLES: dict[PhaseName, Role] = {
    "read": "verifier",
    "write": "verifier",
    "draft read": "drafter",
    "draft write": "drafter",
    "verify": "verifier",
}
SLOW = Machine(name="slow", gflops=1e-9, gb_s=1e-9, weight_bytes=2, cache_bytes=4)
"""One operation and one byte a second."""


@pytest.fixture(scope="module")
def tokenizer(model_path: Path) -> Any:
    return load_tokenizer(model_path, name="tokenizer")


def test_operations_and_bytes_of_a_pass_by_hand() -> None:
    """The floor was half of what it is when a product counted as one operation."""
    one = Pass(tokens=5, pairs=15, logits=2, cached=7)
    assert operations(TINY, one) == 2 * TINY.matrices * 5 + 2 * 800 * 2 + 4 * 2 * 8 * 15
    assert bytes_read(TINY, one, SLOW) == 2 * (TINY.matrices + 800) + 4 * (2 * 2 * 1 * 4 * 7)


def test_whichever_is_more_bounds_a_pass() -> None:
    reading = Pass(tokens=100, pairs=5050, logits=1)
    writing = Pass(tokens=1, pairs=100, logits=1, cached=100)
    fast_memory = Machine(name="", gflops=1e-9, gb_s=1, weight_bytes=2, cache_bytes=4)
    fast_products = Machine(name="", gflops=1, gb_s=1e-9, weight_bytes=2, cache_bytes=4)
    assert seconds(TINY, [reading], fast_memory) == operations(TINY, reading)
    assert seconds(TINY, [writing, writing], fast_products) == 2 * bytes_read(TINY, writing, fast_products)


def test_floors_of_the_ways_are_those_of_their_phases() -> None:
    phases = [
        Counted(name=name, role=role, passes=(Pass(tokens=1, pairs=1, logits=1),))
        for name, role in ROLES.items()
    ]
    floor = floors(phases, {"drafter": TINY, "verifier": PRESETS["smollm2-135m"]}, SLOW)
    assert total(floor, "standard") == floor["read"] + floor["write"]
    assert total(floor, "speculative") == floor["draft read"] + floor["draft write"] + floor["verify"]
    assert ttft(floor, "standard") == floor["read"]
    assert ttft(floor, "speculative") == total(floor, "speculative")
    assert floor["draft read"] < floor["verify"]


async def test_passes_are_those_that_the_engine_makes(tokenizer: Any) -> None:
    """A floor of other passes than those that were timed bounds nothing; the label was forgotten."""
    worker = Worker()
    shape = shape_of("llama:hidden=64,layers=2,heads=2,kv=1,intermediate=128")
    fed: list[int] = []

    def model() -> LocalModel:
        return LocalModel(
            lambda: made(shape, tokenizer=tokenizer, precision="float32", seed=1),
            name=shape.name,
            worker=worker,
            threads=1,
        )

    pair = Pair(drafter=model(), verifier=model())
    for one in (pair.drafter, pair.verifier):
        assert isinstance(one, LocalModel)
        one._model.register_forward_pre_hook(
            lambda _, __, given: fed.append(given["input_ids"].numel()), with_kwargs=True
        )
    work = work_of(LENGTHS, seed=0, repetition=0)
    expected = {one.name: one for one in counted(work, LENGTHS, Renderer(tokenizer))}
    found: dict[Way, list[int]] = {}
    for way in WAYS:
        fed.clear()
        await run(way, pair, work, LENGTHS)
        found[way] = list(fed)
    worker.close()
    assert found["standard"] == _tokens(expected, "read", "write")
    assert found["speculative"] == _tokens(expected, "draft read", "draft write", "verify")


def _tokens(phases: dict[PhaseName, Counted], *names: PhaseName) -> list[int]:
    return [one.tokens for name in names for one in phases[name].passes]


def test_a_cached_token_is_looked_at_by_the_rows_that_have_it(tokenizer: Any) -> None:
    phases = {one.name: one for one in counted(_work(), LENGTHS, Renderer(tokenizer))}
    read, write = phases["read"].passes[0], phases["write"].passes
    assert read.pairs == read.tokens * (read.tokens + 1) // 2
    assert (write[0].cached, write[-1].cached) == (read.tokens + 1, read.tokens + LENGTHS.tokens - 1)
    # every token of a draft and the choice; the first token of the answers is predicted at one common place
    assert phases["verify"].passes[0].logits == LENGTHS.drafts * (LENGTHS.tokens + 1) - (LENGTHS.drafts - 1)


def test_medians_and_quarters() -> None:
    found = spread([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (found.median, found.low, found.high, found.lower, found.upper, found.n) == (3, 1, 5, 2, 4, 5)


def test_a_ratio_is_that_of_the_medians_and_a_moment_that_met_both_ways_does_not_widen_it() -> None:
    """Draws that took the ways apart gave an interval from 1 to 4 for a ratio that was 2 every time."""
    steady = ratio([2.0, 4.0, 20.0], [1.0, 2.0, 10.0])
    assert (steady.value, steady.low, steady.high) == (2.0, 2.0, 2.0)
    scattered = ratio([2.0, 2.0, 2.0, 6.0], [1.0, 1.0, 1.0, 1.0])
    assert scattered.low == 2.0 < scattered.high
    assert scattered.value == 2.0


def test_the_interval_by_hand() -> None:
    """Of 9 draws from 9 at least 5 are above the 7th in 3.0 % of cases, and above the 8th in 0.1 %.

    An interval of means followed the one run in which the machine did something else.
    """
    found = ratio([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 900.0], [1.0] * 9)
    assert (found.low, found.value, found.high, found.n) == (2.0, 5.0, 8.0, 9)
    assert found.interval == (2.0, 8.0)
    assert ratio([3.0], [2.0]).interval is None


USAGES: dict[Any, Usage] = {
    "standard": Usage(verifier=RoleUsage(prompt_tokens=1000, completion_tokens=100)),
    "speculative": Usage(
        drafter=RoleUsage(prompt_tokens=2000, completion_tokens=500),
        verifier=RoleUsage(prompt_tokens=600, forward_passes=1),
    ),
}


def test_costs_by_tokens_by_hand() -> None:
    prices = TokenPrices(drafter_read=0.1, drafter_written=0.2, verifier_read=1.0, verifier_written=3.0)
    found = measured_cost(prices, USAGES, {"standard": 9, "speculative": 9}, what="x")
    assert found.standard == pytest.approx(1000 * (1000 * 1.0 + 100 * 3.0) / 1e6)
    assert found.speculative == pytest.approx(1000 * (2000 * 0.1 + 500 * 0.2 + 600 * 1.0) / 1e6)
    assert found.saved == pytest.approx(1 - 0.9 / 1.3)
    assert "$0.1 and $0.2 for a million tokens read and written by the drafter" in found.assumes[0]


def test_nothing_is_saved_of_next_to_nothing() -> None:
    """A verifier for nothing and a drafter for something cost infinitely more, which no report can hold."""
    prices = TokenPrices(drafter_read=1e6, drafter_written=0.0, verifier_read=1e-300, verifier_written=0.0)
    assert measured_cost(prices, USAGES, {"standard": 9, "speculative": 9}, what="x").saved == 0


def test_costs_by_the_hour_by_hand() -> None:
    found = measured_cost(MachinePrice(per_hour=3.6), USAGES, {"standard": 4.0, "speculative": 1.0}, what="x")
    assert found.standard == pytest.approx(4.0)
    assert found.speculative == pytest.approx(1.0)
    assert found.saved == pytest.approx(0.75)
    assert "one question after another" in found.assumes[1]


def test_pairings_that_do_not_run_here_are_priced_and_called_arithmetic(tokenizer: Any) -> None:
    """Seconds that nobody measured stood in a table beside measured ones."""
    costs = pairing_costs(USAGES, counted(_work(), LENGTHS, Renderer(tokenizer)))
    assert len(costs) == 2 * len(PAIRINGS)
    for one in costs:
        assert one.assumes
        by_hour = one.what.endswith("by the hour")
        assert by_hour == any("not measured" in line and GPU.name in line for line in one.assumes)
    prices = proportional(PRESETS["llama3.2-1b"], PRESETS["llama3.1-70b"])
    assert prices.drafter_read == pytest.approx(1_235_814_400 / 70_553_706_496)
    assert prices.verifier_read == 1.0


def test_this_machine_has_the_bytes_of_its_layout() -> None:
    machine = this_machine(gflops=98, gb_s=7.6, precision="float16")
    assert (machine.weight_bytes, machine.cache_bytes) == (2, 4)


def _work() -> Any:
    return work_of(LENGTHS, seed=0, repetition=0)
