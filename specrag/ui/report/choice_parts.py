"""What a pipeline chose from its drafts, what else it could have chosen, and whether its scores know it."""

from collections.abc import Iterator, Mapping
from typing import Any

from specrag.evaluation.cells import number
from specrag.evaluation.words import choice_words
from specrag.ui.report import eval_figures as figures
from specrag.ui.report.parts import Cell, Part, Table, cells, estimate_cell, signed_cell


def chosen(pipelines: Mapping[str, Any]) -> Iterator[Part]:
    """Of one pipeline, with figures: one without settings of its own, where there is one."""
    for name in _drawn(pipelines):
        one = pipelines[name]
        yield _choice(name, one["choices"])
        if one["calibration"]["bins"]:
            yield _calibration(name, one["calibration"])


def also_chosen(pipelines: Mapping[str, Any]) -> Iterator[Part]:
    """Of all others, as tables that open on demand."""
    for name, one in pipelines.items():
        if one["choices"] is not None and name not in _drawn(pipelines):
            yield _in_tables(name, one)


def _drawn(pipelines: Mapping[str, Any]) -> list[str]:
    """The one that is drawn, if any has drafts: a plain one if there is one."""
    plain = [name for name, one in figures.main(pipelines) if one["choices"] is not None]
    return (plain or [name for name, one in pipelines.items() if one["choices"] is not None])[:1]


def _choice(name: str, found: Mapping[str, Any]) -> Part:
    tables = (_worth(found), _auc(found))
    return Part(
        title=_title(name, found),
        words=_words(found),
        figure=figures.choosing(found),
        said="Score of what was selected beside other ways of choosing from the same drafts, with intervals.",
        tables=tuple(table for table in tables if table.rows),
        notes=_no_draft(found["by_no_draft"]),
    )


def _in_tables(name: str, one: Mapping[str, Any]) -> Part:
    found = one["choices"]
    tables = (_worth(found), _auc(found, folded=True), _bins(one["calibration"]))
    return Part(
        title=_title(name, found),
        words=_words(found),
        tables=tuple(table for table in tables if table.rows),
        notes=_no_draft(found["by_no_draft"]),
    )


def _title(name: str, found: Mapping[str, Any]) -> str:
    return f"What {name} chose from its drafts (n = {found['n']:,})"


def _words(found: Mapping[str, Any]) -> tuple[str, ...]:
    return (choice_words(found),) if _whole(found) else ()


def _worth(found: Mapping[str, Any]) -> Table:
    order = sorted(
        found["worth"], key=lambda choice: (choice != "selected", -(found["worth"][choice] or 0.0))
    )
    rows = tuple(
        (
            Cell(choice.replace("_", "-")),
            estimate_cell(found, choice, "worth"),
            signed_cell(found["selected_minus"].get(choice)),
        )
        for choice in order
    )
    heads = ("choice", "score", "selected minus this")
    return Table(caption="Ways of choosing", heads=heads, rows=rows, folded=True)


def _auc(found: Mapping[str, Any], *, folded: bool = False) -> Table:
    rows = tuple(
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
    heads = ("score", "AUC within a question", "AUC pooled", "questions with both", "drafts")
    caption = "Whether the scores tell right drafts from wrong ones"
    return Table(caption=caption, heads=heads, rows=rows, folded=folded)


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
    return Part(
        title=f"Confidence of {name} beside the truth{_error(found)}",
        words=("On the line a run is right as often as it says; below it, it promises too much.",),
        figure=figures.calibration(found["bins"]),
        said="Share of right answers over the confidence that the runs had in them.",
        tables=(_bins(found),),
    )


def _bins(found: Mapping[str, Any]) -> Table:
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
    heads = ("confidence", "n", "mean confidence", "share right")
    return Table(caption=f"Confidence beside the truth{_error(found)}", heads=heads, rows=rows, folded=True)


def _error(found: Mapping[str, Any]) -> str:
    return "" if found["error"] is None else f" (expected calibration error {found['error']:.3f})"
