"""Both ways over the real engine with tiny random models: lengths, phases and what a run tells of itself."""

import math
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from specrag.errors import ContextTooLong, ModelError
from specrag.evaluation.latency.energy import Meter
from specrag.evaluation.latency.interleave import Plan, measure, order
from specrag.evaluation.latency.random_weights import made
from specrag.evaluation.latency.shapes import shape_of
from specrag.evaluation.latency.texts import Lengths, work_of
from specrag.evaluation.latency.ways import Pair, Run, run
from specrag.models.base import Conversation, LanguageModel, Line, Output, ScoreRequest, TokenScores
from specrag.models.loading import load_tokenizer
from specrag.models.local import LocalModel
from specrag.models.scripted import ScriptedModel
from specrag.models.worker import Worker
from specrag.types import ModelInfo
from tests.toys import counting_clock

DRAFTER = shape_of("llama:hidden=64,layers=2,heads=2,kv=1,intermediate=128")
VERIFIER = shape_of("qwen2:hidden=128,layers=2,heads=4,kv=2,intermediate=256,vocab=60000,tied=no")
LENGTHS = Lengths(passages=4, passage_tokens=20, drafts=3, per_draft=2, tokens=12, rationale=7)


@pytest.fixture(scope="module")
def tokenizer(model_path: Path) -> Any:
    return load_tokenizer(model_path, name="tokenizer")


@pytest.fixture(scope="module")
def pair(tokenizer: Any) -> Iterator[Pair]:
    worker = Worker()

    def model(shape: Any) -> LocalModel:
        return LocalModel(
            lambda: made(shape, tokenizer=tokenizer, precision="float32", seed=1),
            name=shape.name,
            worker=worker,
            threads=1,
        )

    yield Pair(drafter=model(DRAFTER), verifier=model(VERIFIER))
    worker.close()


def phases(one: Run) -> dict[str, float]:
    return {phase.name: phase.seconds for phase in one.phases}


def test_a_random_model_has_its_shape_and_says_what_it_is(pair: Pair) -> None:
    """Its figures must never be taken for those of a trained model."""
    for model, shape in ((pair.drafter, DRAFTER), (pair.verifier, VERIFIER)):
        assert model.info.parameters == shape.parameters
        assert "random" in model.info.notes[0]
        assert "nothing about quality" in model.info.notes[0]


async def test_both_ways_write_exactly_what_was_asked_for(pair: Pair, tokenizer: Any) -> None:
    """An end token among random ones cut some runs short, and those were the fast ones."""
    work = work_of(LENGTHS, seed=0, repetition=0)
    standard = await run("standard", pair, work, LENGTHS)
    speculative = await run("speculative", pair, work, LENGTHS)
    assert standard.usage.verifier.completion_tokens == LENGTHS.tokens
    assert standard.usage.drafter.completion_tokens == 0
    assert speculative.usage.drafter.completion_tokens == LENGTHS.drafts * LENGTHS.tokens
    assert speculative.usage.verifier.completion_tokens == 0
    assert speculative.usage.verifier.forward_passes == 1
    # four passages once, and two for each of three drafts, with a few tokens of prompt around them
    assert 80 < standard.usage.verifier.prompt_tokens < 80 + 100
    assert 120 < speculative.usage.drafter.prompt_tokens < 120 + 3 * 100


async def test_phases_add_up_to_the_total_and_the_first_token_is_where_it_can_be_seen(pair: Pair) -> None:
    work = work_of(LENGTHS, seed=0, repetition=0)
    standard = await run("standard", pair, work, LENGTHS)
    speculative = await run("speculative", pair, work, LENGTHS)
    for one in (standard, speculative):
        assert math.isclose(sum(phases(one).values()), one.total_s, rel_tol=1e-9)
        assert all(seconds >= 0 for seconds in phases(one).values())
    assert list(phases(standard)) == ["read", "write"]
    assert list(phases(speculative)) == ["draft read", "draft write", "verify", "decide"]
    assert phases(standard)["read"] <= standard.ttft_s < standard.total_s
    assert speculative.ttft_s == speculative.total_s, "nobody sees the answer before the verdict"
    assert speculative.first_draft_s is not None
    assert speculative.first_draft_s < speculative.ttft_s


@pytest.mark.parametrize("count", [1, 11])
async def test_a_model_that_writes_less_is_refused(count: int) -> None:
    """A scripted model ends when it has said what it has to say, as a server does that ignores our wishes."""
    model = ScriptedModel(lambda text: {"answer": " watt" * count})
    work = work_of(LENGTHS, seed=0, repetition=0)
    pair = Pair(drafter=model, verifier=model, clock=counting_clock())
    with pytest.raises(ModelError, match=f"wrote {count} tokens where 12 were asked for"):
        await run("standard", pair, work, LENGTHS)


async def test_drafts_that_were_not_verified_are_no_run() -> None:
    """A verifier that gave up at once was the fastest of all."""

    def judge(_: str) -> float:
        raise ContextTooLong("The prompt is too long.")

    drafter = ScriptedModel(lambda _: {"rationale": " watt" * 7, "answer": " hours" * 5})
    verifier = ScriptedModel(lambda _: {}, judge=judge)
    work = work_of(LENGTHS, seed=0, repetition=0)
    with pytest.raises(ModelError, match="The prompt is too long"):
        await run("speculative", Pair(drafter=drafter, verifier=verifier), work, LENGTHS)


def test_ways_take_turns_at_being_first() -> None:
    """The second way always found the weights in the processor's cache."""
    turns = list(order(Plan(lengths=LENGTHS, repeats=2, warmups=1)))
    assert turns == [
        (-1, "speculative"),
        (-1, "standard"),
        (0, "standard"),
        (0, "speculative"),
        (1, "speculative"),
        (1, "standard"),
    ]


async def test_warm_up_runs_are_told_and_not_counted(pair: Pair, tmp_path: Path) -> None:
    told: list[str] = []
    plan = Plan(lengths=LENGTHS, repeats=2, warmups=1)
    measured = await measure(pair, plan, meter=Meter(tmp_path), tell=told.append)
    assert (len(measured.standard), len(measured.speculative), len(told)) == (2, 2, 6)
    assert told[0].startswith("warm-up, speculative: first token after")
    assert measured.standard[0].joules is None, "this folder tells no energy"


class Heard:
    """A model that tells what it is asked to write about, and is otherwise the one it has."""

    def __init__(self, model: LanguageModel, listen: Callable[[str], None]) -> None:
        self._model = model
        self._listen = listen

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        turns = (turn for one in conversations for turn in one.turns)
        self._listen(" ".join(segment.text for turn in turns for segment in turn.segments))
        async with aclosing(self._model.generate(conversations, lines)) as outputs:
            async for output in outputs:
                yield output

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        return await self._model.score(requests)


async def test_ways_are_run_in_turn_and_read_the_same_new_texts_in_each_repetition(pair: Pair) -> None:
    """One way after the other met other moments of the machine; texts that came again were in a cache."""
    plan = Plan(lengths=LENGTHS, repeats=3, warmups=1)
    texts = {
        number: [one.text for one in work_of(LENGTHS, seed=0, repetition=number).passages]
        for number in (-1, 0, 1, 2)
    }
    found: list[tuple[str, list[int]]] = []

    def heard(name: str, model: LanguageModel) -> Heard:
        return Heard(
            model,
            lambda said: found.append(
                (name, [number for number, passages in texts.items() if all(one in said for one in passages)])
            ),
        )

    await measure(Pair(drafter=heard("drafts", pair.drafter), verifier=heard("answers", pair.verifier)), plan)
    assert found == [
        ("drafts", [-1]),
        ("answers", [-1]),
        ("answers", [0]),
        ("drafts", [0]),
        ("drafts", [1]),
        ("answers", [1]),
        ("answers", [2]),
        ("drafts", [2]),
    ]


async def test_a_run_has_the_energy_that_was_taken_while_it_ran(pair: Pair, tmp_path: Path) -> None:
    """Every run had all the energy since the first one."""
    zone, taken = tmp_path / "intel-rapl:0", [0]
    zone.mkdir()
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("1000000000\n")

    def take(joules: int) -> None:
        taken[0] += joules
        (zone / "energy_uj").write_text(f"{taken[0]}000000\n")

    take(0)
    heard = Pair(
        drafter=Heard(pair.drafter, lambda _: take(3)), verifier=Heard(pair.verifier, lambda _: take(7))
    )
    plan = Plan(lengths=LENGTHS, repeats=2, warmups=1)
    measured = await measure(heard, plan, meter=Meter(tmp_path), tell=lambda _: take(100))
    assert [one.joules for one in measured.standard] == pytest.approx([7, 7])
    assert [one.joules for one in measured.speculative] == pytest.approx([3, 3])


def test_energy_is_added_up_and_survives_a_counter_that_begins_anew(tmp_path: Path) -> None:
    """A counter that wraps made a run of negative joules."""

    def zone(number: str, name: str, micro: int) -> None:
        folder = tmp_path / f"intel-rapl:{number}"
        folder.mkdir(exist_ok=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text(f"{micro}\n")
        (folder / "max_energy_range_uj").write_text("10000000\n")

    zone("0", "package-0", 9_000_000)
    zone("0:0", "core", 1)
    meter = Meter(tmp_path)
    zone("0", "package-0", 9_500_000)
    assert meter.joules() == pytest.approx(0.5)
    zone("0", "package-0", 500_000)
    zone("0:0", "core", 9_999_999)
    assert meter.joules() == pytest.approx(1.5), "cores are part of the package"
    assert not Meter(tmp_path / "none").told
