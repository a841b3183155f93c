"""A run as a file in any format: what the page, the endpoints and the command line call.

The formats of `tracing/export/` know nothing of the page; the one that looks like it is added here.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from specrag.events import Event
from specrag.tracing.export.formats import WRITERS, ExportFormat, Writer, export
from specrag.tracing.trace import Trace
from specrag.ui.standalone import standalone

_ALL: Final[Mapping[ExportFormat, Writer]] = {
    **WRITERS,
    "html": lambda trace, events: standalone(trace, events).encode("utf-8", "replace"),
}


def export_run(
    trace: Trace,
    events: Sequence[Event],
    format: ExportFormat,  # noqa: A002 - the word that people use for it
    *,
    texts: bool = True,
) -> bytes:
    """The run as a file; without `texts` it holds figures and no word of what was asked, read or written."""
    return export(trace, events, format, texts=texts, writers=_ALL)
