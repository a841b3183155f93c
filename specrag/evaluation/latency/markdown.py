"""The document of a benchmark as tables to read: nothing is computed here that the document does not hold."""

from collections.abc import Mapping, Sequence
from typing import Any

from specrag.evaluation.cells import table
from specrag.evaluation.latency import words
from specrag.prices import cost_text


def markdown(found: Mapping[str, Any]) -> str:
    """All tables, with the conditions and assumptions beside them."""
    parts = [
        f"# Latency: {found['drafter']} drafts, {found['verifier']} verifies",
        found["label"],
        words.conditions(found),
        _ways(found),
        found["ttft_means"],
        words.verdict(found),
        "## Phases",
        _phases(found),
        words.floor_words(found["floor"]),
        words.energy_words(found["energy"]),
        "## Cost of 1,000 questions",
        _costs(found["costs"]),
        *_sweep(found["sweep"], few=words.is_few(found)),
        words.place_words(found["environment"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _ways(found: Mapping[str, Any]) -> str:
    """Standard beside speculative, with their ratio."""
    ratio = found["ratio"]
    rows = []
    for key, title in (("ttft", "first token"), ("total", "whole answer")):
        cells = [words.ms_spread(found[way]["spread"][f"{key}_ms"]) for way in ("standard", "speculative")]
        rows.append([title, *cells, f"**{ratio[key]:.2f}**{_interval(ratio[f'{key}_interval'])}"])
    return table(["median (least to greatest)", "standard", "speculative", words.RATIO], rows)


def _interval(found: Sequence[float] | None) -> str:
    return "" if found is None else f" ({words.interval_words(found)})"


def _phases(found: Mapping[str, Any]) -> str:
    rows = [
        [
            way,
            phase["name"],
            phase["role"] or "",
            words.ms_spread(phase["spread"]),
            "" if phase["floor_ms"] is None else words.ms(phase["floor_ms"]),
            "" if phase["times_floor"] is None else f"{phase['times_floor']:.1f}",
        ]
        for way in ("standard", "speculative")
        for phase in found[way]["phases"]
    ]
    return table(["", "phase", "by", "median (least to greatest)", "floor", "times the floor"], rows)


def _costs(costs: Sequence[Mapping[str, Any]]) -> str:
    """The dollars in a table, each with the number of what it assumes, which follows."""
    lines = words.assumed(costs)
    rows = [
        [
            one["what"].replace("|", "\\|"),  # names of models come from servers
            cost_text(one["standard_dollars"]),
            cost_text(one["speculative_dollars"]),
            words.saved_words(one),
            words.numbers_of(one, lines),
        ]
        for one in costs
    ]
    heads = ["", "standard", "speculative", "saved", "assumes"]
    return "\n".join([table(heads, rows), "", *words.assumption_words(lines)])


def _sweep(sweep: Mapping[str, Any] | None, *, few: bool) -> list[str]:
    if sweep is None:
        return []
    rows = [
        [
            f"{point['size_ratio']:.1f}",
            words.size_words(point["parameters"]),
            *(f"{point[key]:.2f}{_interval(point[f'{key}_interval'])}" for key in ("ttft", "total")),
            "" if point["floor"] is None else f"{point['floor']:.2f}",
        ]
        for point in sweep["points"]
    ]
    heads = ["verifier / drafter", "verifier", "ratio, first token", "ratio, whole answer", "by the floor"]
    even = sweep["break_even"]
    said = [words.even_words(even), words.method_words(even), words.HINT if few else ""]
    return [
        "## Where it begins to pay",
        table(heads, rows),
        " ".join(filter(None, said)),
        *(f"Left out: {line}" for line in sweep["left_out"]),
    ]
