"""Both ways in turn, in one process: a slow moment of the machine must meet both of them.

The order turns round with every repetition (A B, B A, A B, ...), so that neither way is always the one that
finds the caches warm. Repetitions before the first counted one pay for what is allocated once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from specrag.evaluation.latency.energy import Meter
from specrag.evaluation.latency.texts import Lengths, work_of
from specrag.evaluation.latency.ways import Pair, Run, Way, run

WAYS: tuple[Way, Way] = ("standard", "speculative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How often what is run."""

    lengths: Lengths
    repeats: int = 5
    warmups: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The counted runs of both ways; those at the same place belong to the same repetition."""

    standard: tuple[Run, ...]
    speculative: tuple[Run, ...]


def order(plan: Plan) -> Iterator[tuple[int, Way]]:
    """Which way is run in which repetition; those below 0 are not counted."""
    for repetition in range(-plan.warmups, plan.repeats):
        for way in WAYS if repetition % 2 == 0 else reversed(WAYS):
            yield repetition, way


async def measure(
    pair: Pair, plan: Plan, *, meter: Meter | None = None, tell: Callable[[str], None] = lambda _: None
) -> Measured:
    """Run everything; `tell` hears a line about each run.

    Raises:
        ModelError: a model fails.
    """
    found: dict[Way, list[Run]] = {way: [] for way in WAYS}
    for repetition, way in order(plan):
        work = work_of(plan.lengths, seed=plan.seed, repetition=repetition)
        before = meter.joules() if meter else None
        once = await run(way, pair, work, plan.lengths)
        after = meter.joules() if meter else None
        if before is not None and after is not None:
            once = replace(once, joules=after - before)
        counted = repetition >= 0
        what = f"{repetition + 1} of {plan.repeats}" if counted else "warm-up"
        tell(f"{what}, {way}: first token after {once.ttft_s:.2f} s, all after {once.total_s:.2f} s")
        if counted:
            found[way].append(once)
    return Measured(standard=tuple(found["standard"]), speculative=tuple(found["speculative"]))
