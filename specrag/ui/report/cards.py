"""The HTML around the figures of a report."""

from collections.abc import Mapping, Sequence
from typing import Any

from specrag.ui.markup import render
from specrag.ui.report.parts import Part
from specrag.ui.report.summary import command_of, facts_of, title_of


def head(report: Mapping[str, Any], *, focus: str = "") -> str:
    """Title and conditions; `focus` asks for the focus of the keyboard, once."""
    return render(
        "report_head",
        title=title_of(report),
        facts=facts_of(report),
        command=command_of(report),
        focus=focus,
    )


def words(part: Part) -> str:
    """What stands above a figure."""
    return render("report_words", part=part)


def tables(part: Part) -> str:
    """What stands beneath it; nothing where there is no table."""
    return render("report_tables", part=part) if part.tables or part.notes else ""


def rest(parts: Sequence[Part]) -> str:
    """Parts without a figure, one after the other."""
    shown = (f'<section class="sr-report-part">{words(part)}{tables(part)}</section>' for part in parts)
    return f'<div class="sr-report">{"".join(shown)}</div>' if parts else ""
