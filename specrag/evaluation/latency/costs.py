"""What a thousand questions cost in both ways, under prices that are assumptions and are said beside them.

Two ways of paying, as everywhere in this program (`prices.py`): for tokens, counted in the measured runs; or
for a machine by the hour, for the seconds that were measured. For pairs of models that do not run here the
tokens are the same, and the seconds are the floor on a GPU of stated figures: arithmetic, which no real
server reaches, and called so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from specrag.evaluation.latency.floor import Machine, floors, total
from specrag.evaluation.latency.passes import Counted
from specrag.evaluation.latency.shapes import PRESETS, Shape
from specrag.evaluation.latency.ways import Way
from specrag.prices import EXAMPLE, MachinePrice, Prices, TokenPrices, cost
from specrag.tracing.trace import Usage
from specrag.types import Role

PAIRINGS: Final[tuple[tuple[str, str], ...]] = (
    ("llama3.2-1b", "llama3.1-70b"),
    ("llama3.2-3b", "llama3.1-70b"),
    ("llama3.1-8b", "llama3.1-70b"),
    ("qwen2.5-1.5b", "qwen2.5-72b"),
    ("llama3.1-8b", "qwen2.5-72b"),
)
"""Drafter and verifier, as they are commonly named together for Speculative RAG."""
GPU: Final = Machine(
    name="one GPU of 1,000 TFLOP/s, 4,800 GB/s and 141 GB, which holds both models in 8 bits",
    gflops=1_000_000.0,
    gb_s=4800.0,
    weight_bytes=1.0,
    cache_bytes=2.0,
)
"""About what the data sheet of an H200 says."""
GPU_HOUR: Final = MachinePrice(per_hour=3.5)
"""Dollars for an hour of such a GPU: an assumption."""
_MS: Final = 1000
_LEAST: Final = 1e-6
"""Dollars for a thousand questions; nothing can be saved of less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Dollars for a thousand questions, in both ways, and what that rests on."""

    what: str
    standard: float
    speculative: float
    assumes: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Share of the cost of standard RAG that is not spent; negative where speculative RAG costs more."""
        return 1 - self.speculative / self.standard if self.standard >= _LEAST else 0.0


def measured_cost(
    prices: Prices, usages: Mapping[Way, Usage], seconds: Mapping[Way, float], *, what: str
) -> Cost:
    """The cost of the runs that were measured.

    Args:
        prices: for tokens or for the machine.
        usages: tokens of one run of each way.
        seconds: of one run of each way.
        what: a name for the table, which gets the way of paying behind it.
    """
    paid = "by tokens" if isinstance(prices, TokenPrices) else "by the hour"
    found = {way: cost(prices, usages[way], seconds[way] * _MS) for way in usages}
    return Cost(
        what=f"{what}, {paid}",
        standard=found["standard"],
        speculative=found["speculative"],
        assumes=_assumed(prices),
    )


def pairing_costs(
    usages: Mapping[Way, Usage], phases: Sequence[Counted], *, machine: Machine = GPU
) -> tuple[Cost, ...]:
    """For each of `PAIRINGS`: by tokens at prices in proportion to the sizes, and by the hour of a GPU."""
    found: list[Cost] = []
    for drafter, verifier in ((PRESETS[one], PRESETS[other]) for one, other in PAIRINGS):
        name = f"{drafter.name} + {verifier.name}"
        prices = proportional(drafter, verifier)
        by_tokens = measured_cost(prices, usages, dict.fromkeys(usages, 0.0), what=name)
        least = _least(drafter, verifier, phases, machine)
        by_hour = measured_cost(GPU_HOUR, usages, least, what=name)
        found += [by_tokens, _on(by_hour, machine)]
    return tuple(found)


def proportional(drafter: Shape, verifier: Shape) -> TokenPrices:
    """Prices of tokens in proportion to the parameters, at the example price for the verifier."""
    share = drafter.parameters / verifier.parameters
    return TokenPrices(
        drafter_read=EXAMPLE.verifier_read * share,
        drafter_written=EXAMPLE.verifier_written * share,
        verifier_read=EXAMPLE.verifier_read,
        verifier_written=EXAMPLE.verifier_written,
    )


def _least(drafter: Shape, verifier: Shape, phases: Sequence[Counted], machine: Machine) -> dict[Way, float]:
    shapes: dict[Role, Shape] = {"drafter": drafter, "verifier": verifier}
    floor = floors(phases, shapes, machine)
    return {"standard": total(floor, "standard"), "speculative": total(floor, "speculative")}


def _on(cost_: Cost, machine: Machine) -> Cost:
    return Cost(
        what=cost_.what,
        standard=cost_.standard,
        speculative=cost_.speculative,
        assumes=(*cost_.assumes, f"seconds are the floor, not measured: {machine.name}"),
    )


def _assumed(prices: Prices) -> tuple[str, ...]:
    match prices:
        case TokenPrices():
            drafter = f"${prices.drafter_read:.3g} and ${prices.drafter_written:.3g}"
            verifier = f"${prices.verifier_read:.3g} and ${prices.verifier_written:.3g}"
            return (
                f"{drafter} for a million tokens read and written by the drafter, {verifier} by the verifier",
                "the provider charges every prompt in full, also where prompts begin alike",
            )
        case MachinePrice():
            return (
                f"${prices.per_hour:g} for an hour of the machine",
                "one question after another; a machine that serves several at once costs less for each",
            )
