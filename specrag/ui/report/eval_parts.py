"""An evaluation as parts to show: the tables of its Markdown, each with a figure where one says more."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from specrag.evaluation.markdown import METRICS, MOST_FAILURES, NOTES, TIMES
from specrag.evaluation.words import choice_words, difference_words
from specrag.ui.report import eval_figures as figures
from specrag.ui.report.parts import (
    Cell,
    Part,
    Table,
    cells,
    estimate,
    estimate_cell,
    number,
    signed_cell,
)

_ROLES: Final = ("drafter", "verifier")


def eval_figures(report: Mapping[str, Any]) -> tuple[Part, ...]:
    """All parts, in the order in which they are read."""
    pipelines = report["pipelines"]
    return (
        _answers(pipelines),
        *_compared(report["differences"]),
        *_files(report["datasets"], pipelines),
        *_chosen(pipelines),
        _times(pipelines),
        *_failures(pipelines),
    )


def _answers(pipelines: Mapping[str, Any]) -> Part:
    there = [name for name in METRICS if any(name in one["metrics"] for one in pipelines.values())]
    rows = tuple(
        (
            Cell(name),
            Cell(f"{one['n']:,}"),
            *(_metric(one, metric) for metric in there),
            Cell(f"{len(one['failed']):,}"),
        )
        for name, one in pipelines.items()
    )
    heads = ("pipeline", "n", *(METRICS[name] for name in there), "failed")
    return Part(
        title="Answers",
        figure=figures.accuracy(pipelines),
        said="Score of each pipeline with its interval, over the median time of its runs.",
        tables=(Table(caption="Answers of each pipeline", heads=heads, rows=rows),),
        notes=(" ".join(NOTES.replace("`", "").split()),),
    )


def _metric(one: Mapping[str, Any], metric: str) -> Cell:
    return estimate_cell(estimate(one, metric))


def _compared(found: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    if not found:
        return
    rows = tuple(
        (
            Cell(one["pipeline"]),
            Cell(one["against"]),
            Cell(METRICS.get(one["metric"], one["metric"])),
            signed_cell(one),
            Cell(f"{one['n']:,}"),
            Cell(difference_words(one) if one["mean"] is not None else ""),
        )
        for one in found
    )
    heads = ("pipeline", "against", "metric", "difference", "n", "in words")
    yield Part(
        title="Differences on the same questions",
        words=(
            "Where an interval holds 0, so many questions show no difference, whatever the mean looks like.",
        ),
        figure=figures.differences(found),
        said="Difference in score of each pipeline to the one that it is set against, with its interval.",
        tables=(
            Table(caption="Differences", heads=heads, rows=rows, texts=frozenset({1, 2, 5}), folded=True),
        ),
    )


def _files(datasets: Mapping[str, Any], pipelines: Mapping[str, Any]) -> Iterator[Part]:
    if len(datasets) < 2:  # noqa: PLR2004 - of one file the table above is all
        return
    rows = tuple(
        (
            Cell(name),
            *(
                _metric(one["pipelines"][name], "score") if name in one["pipelines"] else Cell("")
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


def _chosen(pipelines: Mapping[str, Any]) -> Iterator[Part]:
    """Of one pipeline: those with settings of their own are compared by their answers, above."""
    found = [(name, one) for name, one in figures.main(pipelines) if one["choices"] is not None]
    for name, one in found[:1]:
        yield _choice(name, one["choices"])
        if one["calibration"]["bins"]:
            yield _calibration(name, one["calibration"])


def _choice(name: str, found: Mapping[str, Any]) -> Part:
    order = sorted(
        found["worth"], key=lambda choice: (choice != "selected", -(found["worth"][choice] or 0.0))
    )
    worth = tuple(
        (
            Cell(choice.replace("_", "-")),
            estimate_cell(estimate(found, choice, "worth")),
            signed_cell(found["selected_minus"].get(choice)),
        )
        for choice in order
    )
    auc = tuple(
        cells(
            (
                score.replace("_", "-"),
                number(one["within"]),
                number(one["pooled"]),
                f"{one['questions']:,}",
                f"{one['drafts']:,}",
            )
        )
        for score, one in found["auc"].items()
    )
    tables = [
        Table(
            caption="Ways of choosing",
            heads=("choice", "score", "selected minus this"),
            rows=worth,
            folded=True,
        ),
        Table(
            caption="Whether the scores tell right drafts from wrong ones",
            heads=("score", "AUC within a question", "AUC pooled", "questions with both", "drafts"),
            rows=auc,
        ),
    ]
    return Part(
        title=f"What {name} chose from its drafts (n = {found['n']:,})",
        words=(choice_words(found),) if _whole(found) else (),
        figure=figures.choosing(found),
        said="Score of what was selected beside other ways of choosing from the same drafts, with intervals.",
        tables=tuple(table for table in tables if table.rows),
    )


def _whole(found: Mapping[str, Any]) -> bool:
    """Whether all is there that the words are made of; a report from outside may have gaps."""
    known = (found["worth"].get(name) is not None for name in ("oracle", "selected"))
    against = (
        one[end] is not None for one in found["selected_minus"].values() for end in ("mean", "low", "high")
    )
    return all(known) and all(against)


def _calibration(name: str, found: Mapping[str, Any]) -> Part:
    rows = tuple(
        cells(
            (
                f"{one['low']:.1f} to {one['high']:.1f}",
                f"{one['n']:,}",
                number(one["confidence"]),
                number(one["accuracy"]),
            )
        )
        for one in found["bins"]
    )
    error = "" if found["error"] is None else f" (expected calibration error {found['error']:.3f})"
    return Part(
        title=f"Confidence of {name} beside the truth{error}",
        words=("On the line a run is right as often as it says; below it, it promises too much.",),
        figure=figures.calibration(found["bins"]),
        said="Share of right answers over the confidence that the runs had in them.",
        tables=(
            Table(
                caption="Confidence beside the truth",
                heads=("confidence", "n", "mean confidence", "share right"),
                rows=rows,
                folded=True,
            ),
        ),
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
