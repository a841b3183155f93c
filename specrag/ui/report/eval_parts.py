"""An evaluation as parts to show: the tables of its Markdown, each with a figure where one says more."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from specrag.evaluation.words import METRICS, MOST_FAILURES, NOTES, TIMES, difference_words
from specrag.ui.report import eval_figures as figures
from specrag.ui.report.choice_parts import also_chosen, chosen
from specrag.ui.report.judge_parts import judged
from specrag.ui.report.parts import (
    Cell,
    Part,
    Table,
    cells,
    estimate_cell,
    prose,
    signed_cell,
)

_ROLES: Final = ("drafter", "verifier")
_DOTS: Final = (
    "A filled dot is a difference: its interval leaves 0 out, and its signs are no luck. An open one shows "
    "none, whatever its mean looks like."
)


def eval_figures(report: Mapping[str, Any]) -> tuple[Part, ...]:
    """All parts, in the order in which they are read."""
    pipelines = report["pipelines"]
    return (
        _answers(pipelines),
        *judged(report["judge"]),
        *_compared(report["differences"]),
        *_files(report["datasets"], pipelines),
        *chosen(pipelines),
        _times(pipelines),
        *also_chosen(pipelines),
        *_failures(pipelines),
    )


def _answers(pipelines: Mapping[str, Any]) -> Part:
    there = _metrics(pipelines)
    rows = tuple(
        (
            Cell(name),
            Cell(f"{one['n']:,}"),
            *(estimate_cell(one, metric) for metric in there),
            Cell(f"{len(one['failed']):,}"),
        )
        for name, one in pipelines.items()
    )
    heads = ("pipeline", "n", *map(_called, there), "failed")
    return Part(
        title="Answers",
        figure=figures.accuracy(pipelines),
        said="Score of each pipeline with its interval, over the median time of its runs.",
        tables=(Table(caption="Answers of each pipeline", heads=heads, rows=rows),),
        notes=(prose(NOTES),),
    )


def _metrics(pipelines: Mapping[str, Any]) -> list[str]:
    """Those that are known here in their order, then those of whoever knows more."""
    given = dict.fromkeys(name for one in pipelines.values() for name in one["metrics"])
    return [*(name for name in METRICS if name in given), *(name for name in given if name not in METRICS)]


def _called(metric: str) -> str:
    return METRICS.get(metric, metric.replace("_", " "))


def _compared(found: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    if not found:
        return
    rows = tuple(
        (
            Cell(one["pipeline"]),
            Cell(one["against"]),
            Cell(_called(one["metric"])),
            signed_cell(one),
            Cell(f"{one['n']:,}"),
            _in_words(one),
        )
        for one in found
    )
    heads = ("pipeline", "against", "metric", "difference", "n", "in words")
    yield Part(
        title="Differences on the same questions",
        words=(_DOTS,),
        figure=figures.differences(found),
        said="Difference in score of each pipeline to the one that it is set against, with its interval.",
        tables=(
            Table(caption="Differences", heads=heads, rows=rows, texts=frozenset({1, 2, 5}), folded=True),
        ),
    )


def _in_words(one: Mapping[str, Any]) -> Cell:
    if one["mean"] is None:
        return Cell("")
    return Cell(difference_words(one), "" if one["p"] is None else f"p = {one['p']:.3f}")


def _files(datasets: Mapping[str, Any], pipelines: Mapping[str, Any]) -> Iterator[Part]:
    if len(datasets) < 2:  # noqa: PLR2004 - of one file the table above is all
        return
    rows = tuple(
        (
            Cell(name),
            *(
                estimate_cell(one["pipelines"][name], "score", n=one["n"])
                if name in one["pipelines"]
                else Cell("")
                for one in datasets.values()
            ),
        )
        for name in pipelines
    )
    heads = ("pipeline", *(f"{name} (n = {one['n']:,})" for name, one in datasets.items()))
    yield Part(
        title="Score by file",
        figure=figures.by_file(datasets, pipelines),
        said="Score of each pipeline in each file, with its interval.",
        tables=(Table(caption="Score by file", heads=heads, rows=rows),),
    )


def _times(pipelines: Mapping[str, Any]) -> Part:
    heads = (
        "pipeline",
        *(f"{name}, s (p95)" for name in TIMES.values()),
        *(f"{role} read / wrote" for role in _ROLES),
    )
    rows = tuple(
        (
            Cell(name),
            *(_seconds(one["latency"], time) for time in TIMES),
            *(_tokens(one["usage"].get(role)) for role in _ROLES),
        )
        for name, one in pipelines.items()
    )
    return Part(
        title="Time and tokens",
        tables=(Table(caption="Median time and tokens of a run", heads=heads, rows=rows),),
    )


def _seconds(latency: Mapping[str, Any], name: str) -> Cell:
    value, tail = latency.get(name), latency.get("p95")
    if not isinstance(value, int | float):
        return Cell("")
    late = tail.get(name) if isinstance(tail, Mapping) else None
    return Cell(f"{value / 1000:.2f}", f"({late / 1000:.2f})" if late is not None else "")


def _tokens(spent: Mapping[str, Any] | None) -> Cell:
    counts = [(spent or {}).get(kind) for kind in ("prompt_tokens", "completion_tokens")]
    known = [f"{count:,.0f}" for count in counts if isinstance(count, int | float)]
    return Cell(" / ".join(known) if len(known) == len(counts) else "")


def _failures(pipelines: Mapping[str, Any]) -> Iterator[Part]:
    failed = [(name, one) for name, system in pipelines.items() for one in system["failed"]]
    if not failed:
        return
    rows = tuple(cells((name, one["question"], one["error"])) for name, one in failed[:MOST_FAILURES])
    more = len(failed) - len(rows)
    yield Part(
        title="Failed",
        tables=(
            Table(
                caption="Runs that failed",
                heads=("pipeline", "question", "why"),
                rows=rows,
                texts=frozenset({1, 2}),
            ),
        ),
        notes=(f"And {more:,} more.",) if more else (),
    )
