"""What becomes of a finished report besides its own files: a copy for the page, and the page in a file."""

from collections.abc import Mapping
from typing import Any

from specrag.config import Settings
from specrag.errors import SpecragError
from specrag.terminal import say


def keep_report(settings: Settings, report: Mapping[str, Any]) -> None:
    """Put a copy where the Evaluate tab looks; a home that cannot be written costs only that."""
    from specrag.evaluation.shelf import Shelf

    try:
        Shelf(settings.home).keep(report)
    except SpecragError as error:
        say(f"Note: {error} The Evaluate tab does not show it.")


def html_of(report: Mapping[str, Any]) -> str:
    """The report as one HTML file."""
    from specrag.ui.report.page import report_page

    return report_page(report)
