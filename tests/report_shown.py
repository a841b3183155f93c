"""What a report shows, as the tests of its parts look at it."""

import json
from typing import Any

from specrag.evaluation.reading import checked
from specrag.ui.report.bench_parts import bench_figures
from specrag.ui.report.eval_parts import eval_figures
from specrag.ui.report.parts import Part


def parts(report: dict[str, Any]) -> dict[str, Part]:
    """Parts of a report by their titles."""
    made = eval_figures if report["schema"] == "specrag.eval/1" else bench_figures
    return {part.title.partition(" (")[0]: part for part in made(checked(report))}


def data(part: Part) -> list[dict[str, Any]]:
    """The series of a figure, as a browser gets them."""
    assert part.figure is not None
    told: list[dict[str, Any]] = json.loads(part.figure.to_json())["data"]
    return told


def layout(part: Part) -> Any:
    """How a figure is laid out."""
    assert part.figure is not None
    return part.figure.layout


def row(part: Part, name: str, table: int = 0) -> list[str]:
    """Texts of the cells of a row."""
    return next([cell.text for cell in one] for one in part.tables[table].rows if one[0].text == name)
