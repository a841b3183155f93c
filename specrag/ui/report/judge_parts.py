"""Who judged the answers, and whether to trust it: a judged figure alone would be taken for a counted one."""

from collections.abc import Iterator, Mapping
from typing import Any

from specrag.evaluation.cells import number
from specrag.evaluation.judge.words import (
    COUNTS,
    FAITHFULNESS,
    NOTES,
    RAGAS,
    VERDICTS,
    about,
    kappa_words,
    trust_words,
)
from specrag.ui.report.parts import Cell, Part, Table, minus, prose


def judged(found: Mapping[str, Any] | None) -> Iterator[Part]:
    """Nothing if nobody judged."""
    if found is None:
        return
    faithful = FAITHFULNESS in found["marks"]
    tables = (_verdicts(found), _by_file(found), *((_faithfulness(found),) if faithful else ()))
    yield Part(
        title=f"The judge: {found['model']}",
        words=tuple(_words(found)),
        tables=tuple(table for table in tables if table.rows),
        notes=(
            *(f"{line[:1].upper()}{line[1:]}." for line in about(found)),
            prose(NOTES),
            *((prose(RAGAS),) if faithful else ()),
        ),
    )


def _words(found: Mapping[str, Any]) -> Iterator[str]:
    if found["agreement"] is not None:
        yield trust_words(found["agreement"])
    if found["problem"]:
        yield f"It ended early: {found['problem']}"


def _verdicts(found: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            Cell(name),
            *_counts(one["marks"].get("judged", {})),
            *(_count(one["verdicts"].get(word)) for word in VERDICTS),
            *_agreement(one["agreement"]),
        )
        for name, one in found["pipelines"].items()
    )
    heads = ("pipeline", *COUNTS.values(), *VERDICTS, "agreement with score", "kappa")
    return Table(caption="Verdicts of the judge", heads=heads, rows=rows)


def _by_file(found: Mapping[str, Any]) -> Table:
    """Of one file the verdicts are all."""
    files = found["datasets"] if len(found["datasets"]) > 1 else {}
    rows = tuple(
        (Cell(name), _count(one["agreement"]["n"]), *_agreement(one["agreement"]))
        for name, one in files.items()
    )
    heads = ("file", "judged", "agreement with score", "kappa")
    return Table(caption="Agreement of judge and score by file", heads=heads, rows=rows)


def _faithfulness(found: Mapping[str, Any]) -> Table:
    rows = tuple(
        (Cell(name), *_counts(one["marks"].get(FAITHFULNESS, {}))) for name, one in found["pipelines"].items()
    )
    return Table(caption="Answers asked for faithfulness", heads=("pipeline", *COUNTS.values()), rows=rows)


def _agreement(one: Mapping[str, Any] | None) -> tuple[Cell, Cell]:
    if one is None:
        return Cell(""), Cell("")
    kappa = Cell(*map(minus, kappa_words(one["kappa"]))) if one["kappa"] else Cell("")
    return Cell(number(one["share"])), kappa


def _counts(one: Mapping[str, int]) -> Iterator[Cell]:
    yield from (_count(one.get(name)) for name in COUNTS)


def _count(value: int | None) -> Cell:
    return Cell("" if value is None else f"{value:,}")
