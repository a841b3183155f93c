"""A report on the Evaluate tab: in its places on the page, out of a file of a visitor, and into one."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from specrag.errors import UsageError
from specrag.evaluation.reading import MOST_BYTES, Report, read_report
from specrag.library.visitors import Visitor
from specrag.ui.report import cards
from specrag.ui.report.page import report_page
from specrag.ui.report.summary import parts_of, title_of
from specrag.ui.tabs.exports import file_name, folder_for

if TYPE_CHECKING:
    from specrag.ui.tabs.evaluate import EvaluateTab

Updates: TypeAlias = dict[Any, Any]
SLOTS: Final = 5
"""Parts with a figure that a report has at most."""


def drawn(tab: "EvaluateTab", report: Report, *, focus: str) -> Updates:
    """A report in its places; places that it does not need are emptied.

    They stay on the page, hidden by evaluate.css: a plot that comes together with its place is lost at times.
    """
    parts = parts_of(report)
    figured = [part for part in parts if part.figure is not None]
    updates: Updates = {
        tab.head: cards.head(report, focus=focus),
        tab.rest: cards.rest([part for part in parts if part.figure is None]),
    }
    for place, slot in enumerate(tab.slots):
        if place < len(figured):
            part = figured[place]
            updates |= {
                slot.words: cards.words(part),
                slot.plot: part.figure,
                slot.tables: cards.tables(part),
            }
        else:
            updates |= {slot.words: "", slot.plot: None, slot.tables: ""}
    return updates


def saved(report: Report, form: str, who: Visitor) -> Path:
    """A report in a file for the browser of a visitor: `json`, or else one page."""
    as_json = form == "json"
    text = json.dumps(report, ensure_ascii=False, indent=1) if as_json else report_page(report)
    name = file_name(f"specrag-{title_of(report)}", "specrag-report")
    path = folder_for(who) / f"{name}.{'json' if as_json else 'html'}"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def read_upload(file: object) -> Report:
    """The report in a file that was sent, which is deleted at once: anybody could fetch it by its address.

    Raises:
        UsageError: no file was sent.
        EvaluationError: it is no report.
    """
    if not isinstance(file, str):
        raise UsageError("Choose the file of a report.")
    path = Path(file)
    try:
        with path.open("rb") as read:
            return read_report(read.read(MOST_BYTES + 1))
    finally:
        path.unlink(missing_ok=True)
