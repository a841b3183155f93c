"""The document of a benchmark as tables to read: nothing is computed here that the document does not hold."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from specrag.evaluation.bootstrap import LEVEL
from specrag.evaluation.cells import table
from specrag.evaluation.latency.spread import FEWEST
from specrag.prices import cost_text

MILLION: Final = 1e6
RATIO: Final = f"standard / speculative ({LEVEL * 100:g} %)"
HINT: Final = "Of so few repetitions it is a hint and not a finding."
_LONG: Final = 10_000
"""Milliseconds from which tenths of a second tell nothing."""


def markdown(found: Mapping[str, Any]) -> str:
    """All tables, with the conditions and assumptions beside them."""
    parts = [
        f"# Latency: {found['drafter']} drafts, {found['verifier']} verifies",
        found["label"],
        conditions(found),
        _ways(found),
        found["ttft_means"],
        verdict(found),
        "## Phases",
        _phases(found),
        *_floor(found["floor"]),
        energy_words(found["energy"]),
        "## Cost of 1,000 questions",
        _costs(found["costs"]),
        *_sweep(found["sweep"], few=is_few(found)),
        place_words(found["environment"]),
    ]
    return "\n\n".join(parts) + "\n"


def conditions(found: Mapping[str, Any]) -> str:
    """What was run, and how often."""
    lengths, models = found["lengths"], found["models"]
    sizes = models["size_ratio"]
    return (
        f"{lengths['passages']} passages of {lengths['passage_tokens']} tokens; {lengths['drafts']} drafts "
        f"of {lengths['per_draft']} passages each. Standard RAG writes {lengths['tokens']} tokens, and so "
        f"does every draft ({lengths['rationale']} of them its rationale). {_repetitions(found)} in "
        f"turn after {found['warmups']} to warm up"
        + (f"; the verifier is {sizes:.1f} times the drafter's size." if sizes else ".")
    )


def _repetitions(found: Mapping[str, Any]) -> str:
    return f"{found['repeats']} repetition{'s' * (found['repeats'] != 1)}"


def _ways(found: Mapping[str, Any]) -> str:
    """Standard beside speculative, with their ratio."""
    ratio = found["ratio"]
    rows = []
    for key, title in (("ttft", "first token"), ("total", "whole answer")):
        cells = [ms_spread(found[way]["spread"][f"{key}_ms"]) for way in ("standard", "speculative")]
        rows.append([title, *cells, f"**{ratio[key]:.2f}**{_interval(ratio[f'{key}_interval'])}"])
    return table(["median (least to greatest)", "standard", "speculative", RATIO], rows)


def _interval(found: Sequence[float] | None) -> str:
    return "" if found is None else f" ({interval_words(found)})"


def interval_words(found: Sequence[float]) -> str:
    """The ends of a ratio's interval."""
    return f"{found[0]:.2f} to {found[1]:.2f}"


def verdict(found: Mapping[str, Any]) -> str:
    """What both ratios say, also where they say that it does not pay."""
    if is_few(found):
        return (
            f"There are too few repetitions to say which way is faster: {found['repeats']}, and it takes "
            f"{FEWEST} at least."
        )
    said = [_faster(found["ratio"][f"{key}_interval"]) for key in ("total", "ttft")]
    return f"At these sizes and lengths, to the whole answer {said[0]}; to its first token {said[1]}."


def is_few(found: Mapping[str, Any]) -> bool:
    """Whether there are too few repetitions for a verdict."""
    return bool(found["repeats"] < FEWEST)


def _faster(interval: Sequence[float] | None) -> str:
    low, high = interval or (1.0, 1.0)  # a report from outside may lack what its repetitions promise
    if low > 1:
        return "speculative RAG is faster"
    return "speculative RAG is slower: it does not pay" if high < 1 else "neither is shown to be faster"


def _phases(found: Mapping[str, Any]) -> str:
    rows = [
        [
            way,
            phase["name"],
            phase["role"] or "",
            ms_spread(phase["spread"]),
            "" if phase["floor_ms"] is None else ms(phase["floor_ms"]),
            "" if phase["times_floor"] is None else f"{phase['times_floor']:.1f}",
        ]
        for way in ("standard", "speculative")
        for phase in found[way]["phases"]
    ]
    return table(["", "phase", "by", "median (least to greatest)", "floor", "times the floor"], rows)


def _floor(floor: Mapping[str, Any]) -> list[str]:
    if not floor:
        return ["What a server computes is its own to know, so there is no floor."]
    machine, ratio = floor["machine"], floor["ratio"]
    said = (
        "The floor is the least time that the operations and bytes of a phase take on this machine, which "
        f"does {machine['matrix_gflops']:.0f} GFLOP/s in an fp32 matrix product and reads "
        f"{machine['memory_gb_s']:.1f} GB/s. By the floor alone the ratio would be {ratio['ttft']:.2f} to "
        f"the first token and {ratio['total']:.2f} in all."
    )
    return [said]


def energy_words(energy: Mapping[str, Any]) -> str:
    """What a question took of the processor, as far as the system tells."""
    if energy["standard_j"] is None:
        return f"Energy: {energy['note']}"
    return (
        f"Energy of one question: {energy['standard_j']:.0f} J standard, {energy['speculative_j']:.0f} J "
        f"speculative. {energy['note']}"
    )


def _costs(costs: Sequence[Mapping[str, Any]]) -> str:
    """The dollars in a table, each with the number of what it assumes, which follows."""
    assumed = list(dict.fromkeys(line for one in costs for line in one["assumes"]))
    rows = [
        [
            one["what"].replace("|", "\\|"),  # names of models come from servers
            cost_text(one["standard_dollars"]),
            cost_text(one["speculative_dollars"]),
            f"{one['saved']:.0%}".replace("-", "\N{MINUS SIGN}"),
            ", ".join(str(assumed.index(line) + 1) for line in one["assumes"]),
        ]
        for one in costs
    ]
    heads = ["", "standard", "speculative", "saved", "assumes"]
    return "\n".join(
        [
            table(heads, rows),
            "",
            *(f"{number}. {line[:1].upper()}{line[1:]}." for number, line in enumerate(assumed, 1)),
        ]
    )


def _sweep(sweep: Mapping[str, Any] | None, *, few: bool) -> list[str]:
    if sweep is None:
        return []
    rows = [
        [
            f"{point['size_ratio']:.1f}",
            f"{point['parameters'] / MILLION:,.0f} million",
            *(f"{point[key]:.2f}{_interval(point[f'{key}_interval'])}" for key in ("ttft", "total")),
            "" if point["floor"] is None else f"{point['floor']:.2f}",
        ]
        for point in sweep["points"]
    ]
    heads = ["verifier / drafter", "verifier", "ratio, first token", "ratio, whole answer", "by the floor"]
    even = sweep["break_even"]
    said = (
        f"Break-even for the whole answer: {even_words(even['total'])}; for the first token: "
        f"{even_words(even['ttft'])}. It is read off {even['method']}."
    )
    return [
        "## Where it begins to pay",
        table(heads, rows),
        f"{said} {HINT}" if few else said,
        *(f"Left out: {line}" for line in sweep["left_out"]),
    ]


def even_words(value: float | None) -> str:
    """Where the curve crosses 1."""
    return "none among these sizes" if value is None else f"{value:.1f} times the drafter's size"


def place_words(environment: Mapping[str, Any]) -> str:
    """The machine that computed; of servers, what they are and what they were asked from."""
    versions = ", ".join(f"{name} {number}" for name, number in environment["versions"].items())
    machine = f"{environment['cores']} cores of {environment['processor']}"
    if environment["servers"]:
        servers = ", ".join(f"{role}: {served}" for role, served in environment["servers"].items())
        return f"Computed by servers ({servers}), asked from {machine}; {versions}."
    count = environment["threads"]
    threads = f", {count} thread{'s' * (count > 1)}" if count else ""
    return f"Measured on {machine}{threads}; {versions}."


def ms_spread(spread: Mapping[str, float]) -> str:
    """A median with its least and greatest, all in one unit; of one run there is no more than the one."""
    if spread["n"] == 1:
        return ms(spread["median"])
    long = spread["high"] >= _LONG
    median, low, high = (ms(spread[name], long=long) for name in ("median", "low", "high"))
    return f"{median} ({low} to {high})"


def ms(milliseconds: float, *, long: bool | None = None) -> str:
    """Milliseconds, or seconds where they are long enough."""
    if long or (long is None and milliseconds >= _LONG):
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:,.0f} ms" if milliseconds >= 1 else f"{milliseconds:.1f} ms"
