"""A benchmark as parts to show: the tables of its Markdown, each with a figure where one says more."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from specrag.evaluation.latency import words
from specrag.prices import cost_text
from specrag.ui.report import bench_figures as figures
from specrag.ui.report.parts import Cell, Part, Table, cells

_TITLES: Final = {"ttft": "first token", "total": "whole answer"}


def bench_figures(report: Mapping[str, Any]) -> tuple[Part, ...]:
    """All parts, in the order in which they are read."""
    return (
        _ratio(report),
        _phases(report),
        *_sweep(report["sweep"], few=words.is_few(report)),
        *_costs(report["costs"]),
    )


def _ratio(report: Mapping[str, Any]) -> Part:
    rows = []
    for key, title in _TITLES.items():
        taken = (report[way]["spread"][f"{key}_ms"] for way in figures.WAYS)
        rows.append(
            (
                Cell(title),
                *map(_spread, taken),
                _ratio_cell(report["ratio"], key),
            )
        )
    heads = ("median", "standard", "speculative", words.RATIO)
    return Part(
        title="How many times as long standard RAG takes",
        words=(words.verdict(report),),
        figure=figures.ratio(report),
        said="Standard / speculative with its interval; above 1, speculative RAG is faster.",
        tables=(Table(caption="Both ways", heads=heads, rows=tuple(rows)),),
        notes=tuple(line for line in (report["ttft_means"], words.energy_words(report["energy"])) if line),
    )


def _ratio_cell(one: Mapping[str, Any], key: str) -> Cell:
    span = one[f"{key}_interval"]
    return Cell(f"{one[key]:.2f}", "" if span is None else words.interval_words(span))


def _spread(one: Mapping[str, float]) -> Cell:
    median, _, rest = words.ms_spread(one).partition(" (")
    return Cell(median, rest.removesuffix(")"))


def _phases(report: Mapping[str, Any]) -> Part:
    rows = tuple(
        (
            Cell(way),
            Cell(phase["name"]),
            Cell(phase["role"] or ""),
            _spread(phase["spread"]),
            Cell("" if phase["floor_ms"] is None else words.ms(phase["floor_ms"])),
            Cell("" if phase["times_floor"] is None else f"{phase['times_floor']:.1f}"),
        )
        for way in figures.WAYS
        for phase in report[way]["phases"]
    )
    heads = ("way", "phase", "by", "median", "floor", "times the floor")
    return Part(
        title="Phases",
        figure=figures.phases(report),
        said="Each way's phases end to end, beside the least time that they can take on this machine.",
        tables=(Table(caption="Phases", heads=heads, rows=rows, texts=frozenset({1, 2}), folded=True),),
        notes=(words.floor_words(report["floor"]),),
    )


def _sweep(sweep: Mapping[str, Any] | None, *, few: bool) -> Iterator[Part]:
    if sweep is None:
        return
    rows = tuple(
        (
            Cell(f"{one['size_ratio']:.1f}"),
            Cell(words.size_words(one["parameters"])),
            *(_ratio_cell(one, key) for key in _TITLES),
            Cell("" if one["floor"] is None else f"{one['floor']:.2f}"),
        )
        for one in sweep["points"]
    )
    even = sweep["break_even"]
    heads = (
        "verifier / drafter",
        "verifier",
        *(f"ratio, {title}" for title in _TITLES.values()),
        "by the floor",
    )
    yield Part(
        title="Where it begins to pay",
        words=(words.even_words(even), *((words.HINT,) if few else ())) if rows else (),
        figure=figures.curve(sweep["points"], even),
        said="The ratio over how many times larger the verifier is than the drafter.",
        tables=(Table(caption="The ratio by size", heads=heads, rows=rows),) if rows else (),
        notes=(
            *((words.method_words(even),) if rows and even["method"] else ()),
            *(f"Left out: {line}" for line in sweep["left_out"]),
        ),
    )


def _costs(costs: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    if not costs:
        return
    lines = words.assumed(costs)
    rows = tuple(
        cells(
            (
                one["what"],
                cost_text(one["standard_dollars"]),
                cost_text(one["speculative_dollars"]),
                words.saved_words(one),
                words.numbers_of(one, lines),
            )
        )
        for one in costs
    )
    yield Part(
        title="Cost of 1,000 questions",
        tables=(
            Table(
                caption="Dollars by models and way of paying",
                heads=("models", "standard", "speculative", "saved", "assumes"),
                rows=rows,
            ),
        ),
        notes=words.assumption_words(lines),
    )
