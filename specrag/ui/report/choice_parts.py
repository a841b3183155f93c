"""What a pipeline chose from its drafts, what else it could have chosen, and whether its scores know it."""

from collections.abc import Iterator, Mapping
from typing import Any

from specrag.evaluation.words import choice_words
from specrag.ui.report import eval_figures as figures
from specrag.ui.report.parts import Cell, Part, Table, cells, estimate_cell, number, signed_cell


def chosen(pipelines: Mapping[str, Any]) -> Iterator[Part]:
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
            estimate_cell(found, choice, "worth"),
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
        notes=_no_draft(found["by_no_draft"]),
    )


def _no_draft(count: int | None) -> tuple[str, ...]:
    """A report of an earlier version does not tell."""
    if count is None:
        return ()
    return (f"Answered by no draft: {count:,} (not among the n, since nothing was chosen).",)


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
