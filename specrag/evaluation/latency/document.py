"""The benchmark as a document, `specrag.bench/1`: medians, ratio = standard / speculative, and their spread.

Times are in milliseconds, memory speed in 10^9 bytes a second, energy in joules. What is not known is null,
and a sentence says why.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from specrag.evaluation.bootstrap import DRAWS, LEVEL
from specrag.evaluation.latency.bench import Result
from specrag.evaluation.latency.costs import Cost, measured_cost, pairing_costs
from specrag.evaluation.latency.environment import environment
from specrag.evaluation.latency.floor import Floors, total, ttft
from specrag.evaluation.latency.spread import Ratio, Spread, ratio, spread
from specrag.evaluation.latency.sweep import METHOD, Curve, break_even
from specrag.evaluation.latency.ways import Phase, Run, Way
from specrag.prices import Prices
from specrag.types import ModelInfo, Role

SCHEMA: Final = "specrag.bench/1"
RANDOM: Final = (
    "Real model shapes with random weights, run by this program's own engine: the figures are about speed "
    "and say nothing about quality."
)
SERVED: Final = (
    "Models behind servers, reading and writing texts of drawn words: the figures are about speed and say "
    "nothing about quality."
)
TTFT: Final = (
    "Time to first token: of standard RAG its first token; of speculative RAG the moment when the verified "
    "answer is emitted, all of it at once."
)
INTERVAL: Final = (
    f"{LEVEL * 100:g} % of {DRAWS:,} draws of the repetitions with replacement, both ways of a repetition "
    "together; the ratio is that of the medians."
)
NO_INTERVAL: Final = "One repetition does not tell how far others scatter, so there is no interval."
_NO_ENERGY: Final = "This system does not tell how much energy its processor takes."
_SERVED_ENERGY: Final = "How much the machines of the servers take is not known here."
_MS: Final = 1000


def document(
    result: Result, *, prices: Sequence[Prices], curve: Curve | None = None, threads: int | None = None
) -> dict[str, Any]:
    """Everything about one benchmark; `threads` is left out behind servers."""
    runs: dict[Way, tuple[Run, ...]] = {
        "standard": result.measured.standard,
        "speculative": result.measured.speculative,
    }
    plan = result.plan
    return {
        "schema": SCHEMA,
        "label": SERVED if result.shapes is None else RANDOM,
        "ttft_means": TTFT,
        "drafter": result.drafter.name,
        "verifier": result.verifier.name,
        "models": _models(result),
        "lengths": asdict(plan.lengths),
        "repeats": plan.repeats,
        "warmups": plan.warmups,
        "seed": plan.seed,
        **{way: _way(runs[way], result.floors) for way in runs},
        "ratio": _ratios(runs),
        "floor": _floor(result),
        "energy": _energy(result, runs),
        "costs": [_cost(one) for one in _costs(result, runs, prices)],
        "sweep": None if curve is None else _curve(curve),
        "environment": environment(threads, servers=_servers(result)),
    }


def _servers(result: Result) -> dict[Role, str] | None:
    """What computes where this process does not."""
    if result.shapes is not None:
        return None
    return {"drafter": result.drafter.device, "verifier": result.verifier.device}


def _models(result: Result) -> dict[str, Any]:
    shapes = result.shapes or {}
    found: dict[str, Any] = {
        role: _model(info) | ({"shape": asdict(shapes[role])} if role in shapes else {})
        for role, info in (("drafter", result.drafter), ("verifier", result.verifier))
    }
    small, large = result.drafter.parameters, result.verifier.parameters
    return {**found, "size_ratio": round(large / small, 3) if small and large else None}


def _model(info: ModelInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "parameters": info.parameters or None,
        "dtype": info.dtype or None,
        "device": info.device,
        "notes": list(info.notes),
    }


def _way(runs: Sequence[Run], floors: Floors | None) -> dict[str, Any]:
    first, whole = ([getattr(run, name) * _MS for run in runs] for name in ("ttft_s", "total_s"))
    drafts = [run.first_draft_s * _MS for run in runs if run.first_draft_s is not None]
    return {
        "ttft_ms": round(spread(first).median, 1),
        "total_ms": round(spread(whole).median, 1),
        "first_draft_ms": round(spread(drafts).median, 1) if drafts else None,
        "spread": {"ttft_ms": _spread(spread(first)), "total_ms": _spread(spread(whole))},
        "runs": [
            {"ttft_ms": round(one, 1), "total_ms": round(other, 1)}
            for one, other in zip(first, whole, strict=True)
        ],
        "phases": [_phase(runs, place, floors) for place in range(len(runs[0].phases))],
        "usage": asdict(runs[0].usage),
    }


def _phase(runs: Sequence[Run], place: int, floors: Floors | None) -> dict[str, Any]:
    """One phase over all runs, beside the least time that it can take."""
    phase: Phase = runs[0].phases[place]
    taken = spread([run.phases[place].seconds * _MS for run in runs])
    floor = None if floors is None or phase.name not in floors else floors[phase.name] * _MS
    return {
        "name": phase.name,
        "role": phase.role,
        "ms": round(taken.median, 1),
        "spread": _spread(taken),
        "floor_ms": None if floor is None else round(floor, 1),
        "times_floor": None if not floor else round(taken.median / floor, 2),
    }


def _spread(found: Spread) -> dict[str, Any]:
    return {name: value if name == "n" else round(value, 1) for name, value in asdict(found).items()}


def _ratios(runs: Mapping[Way, Sequence[Run]]) -> dict[str, Any]:
    found = {
        name: ratio(*([getattr(run, f"{name}_s") for run in runs[way]] for way in runs))
        for name in ("ttft", "total")
    }
    return {
        **{name: round(one.value, 3) for name, one in found.items()},
        **{f"{name}_interval": _interval(one) for name, one in found.items()},
        "interval": INTERVAL if found["total"].interval else NO_INTERVAL,
    }


def _interval(found: Ratio) -> list[float] | None:
    return None if found.interval is None else [round(end, 3) for end in found.interval]


def _floor(result: Result) -> dict[str, Any]:
    """What this machine could do at best; nothing is known of a server's."""
    if result.floors is None or result.machine is None:
        return {}
    floors = result.floors
    ways: dict[str, Any] = {
        way: {"ttft_ms": round(ttft(floors, way) * _MS, 1), "total_ms": round(total(floors, way) * _MS, 1)}
        for way in ("standard", "speculative")
    }
    return {
        "machine": {
            "matrix_gflops": round(result.machine.matrix_gflops, 1),
            "memory_gb_s": round(result.machine.memory_gb_s, 1),
        },
        **ways,
        "ratio": {
            name: round(ways["standard"][f"{name}_ms"] / ways["speculative"][f"{name}_ms"], 3)
            if ways["speculative"][f"{name}_ms"]
            else None
            for name in ("ttft", "total")
        },
    }


def _energy(result: Result, runs: Mapping[Way, Sequence[Run]]) -> dict[str, Any]:
    taken = {way: [run.joules for run in found if run.joules is not None] for way, found in runs.items()}
    if result.shapes is None or not result.energy_told or not all(taken.values()):
        note = _NO_ENERGY if result.shapes else _SERVED_ENERGY
        return {"standard_j": None, "speculative_j": None, "ratio": None, "note": note}
    medians = {way: spread(found).median for way, found in taken.items()}
    saved = medians["standard"] / medians["speculative"] if medians["speculative"] else None
    return {
        "standard_j": round(medians["standard"], 1),
        "speculative_j": round(medians["speculative"], 1),
        "ratio": None if saved is None else round(saved, 3),
        "note": "The processor's packages, with everything else that ran on them.",
    }


def _costs(result: Result, runs: Mapping[Way, Sequence[Run]], prices: Sequence[Prices]) -> tuple[Cost, ...]:
    usages = {way: found[0].usage for way, found in runs.items()}
    seconds = {way: spread([run.total_s for run in found]).median for way, found in runs.items()}
    where = "measured here" if result.shapes else "measured behind servers"
    what = f"{result.drafter.name} + {result.verifier.name}, {where}"
    here = tuple(measured_cost(one, usages, seconds, what=what) for one in prices)
    return here + (pairing_costs(usages, result.phases) if result.phases else ())


def _cost(one: Cost) -> dict[str, Any]:
    return {
        "what": one.what,
        "standard_dollars": round(one.standard, 6),
        "speculative_dollars": round(one.speculative, 6),
        "saved": round(one.saved, 4),
        "assumes": list(one.assumes),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "points": [
            {
                "verifier": one.verifier,
                "parameters": one.parameters,
                "size_ratio": round(one.sizes, 3),
                "ttft": round(one.ttft.value, 3),
                "ttft_interval": _interval(one.ttft),
                "total": round(one.total.value, 3),
                "total_interval": _interval(one.total),
                "floor": None if math.isnan(one.floor) else round(one.floor, 3),
            }
            for one in curve.points
        ],
        "break_even": {
            "ttft": _rounded(break_even(curve.points, "ttft")),
            "total": _rounded(break_even(curve.points, "total")),
            "method": METHOD,
        },
        "left_out": list(curve.left_out),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
