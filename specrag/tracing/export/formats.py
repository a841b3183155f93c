"""In which ways a run can leave: each format has its file, and one writer.

The page as one HTML file is written by `ui/`, which knows how it looks; `ui/exporting.py` has all formats
together and is what the page, the endpoints and the command line call.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from specrag.events import Event
from specrag.tracing.codec import run_to_json
from specrag.tracing.export.openinference import spans_of
from specrag.tracing.export.otlp import to_json as otlp_json
from specrag.tracing.export.perfetto import to_perfetto
from specrag.tracing.export.redact import without_texts
from specrag.tracing.trace import Trace

ExportFormat: TypeAlias = Literal["json", "perfetto", "openinference", "html"]
Writer: TypeAlias = Callable[[Trace, Sequence[Event]], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What a person and a browser should know of a format."""

    suffix: str
    """How its files end."""
    media_type: str
    label: str


EXPORTS: Final[Mapping[ExportFormat, Export]] = {
    "json": Export(suffix=".json", media_type="application/json", label="JSON, to be imported again"),
    "perfetto": Export(
        suffix=".perfetto.json", media_type="application/json", label="Perfetto or Chrome trace"
    ),
    "openinference": Export(
        suffix=".otlp.json", media_type="application/json", label="OpenInference spans (OTLP)"
    ),
    "html": Export(suffix=".html", media_type="text/html", label="Web page in one file"),
}
WRITERS: Final[Mapping[ExportFormat, Writer]] = {
    "json": lambda trace, events: run_to_json(trace, events).encode(),
    "perfetto": lambda trace, _: to_perfetto(trace),
    "openinference": lambda trace, _: otlp_json(spans_of(trace)),
}


def export(
    trace: Trace,
    events: Sequence[Event],
    format: ExportFormat,  # noqa: A002 - the word that people use for it
    *,
    texts: bool = True,
    writers: Mapping[ExportFormat, Writer] = WRITERS,
) -> bytes:
    """The run as a file; without `texts` it holds figures and no word of what was asked, read or written.

    Raises:
        KeyError: no writer for this format is given.
    """
    write = writers[format]
    if not texts:
        trace, events = without_texts(trace, events)
    return write(trace, events)


def file_name(trace: Trace, format: ExportFormat) -> str:  # noqa: A002 - as above
    """A name for the file that every system takes."""
    plain = re.sub(r"[^\w-]+", "-", trace.run_id, flags=re.ASCII).strip("-")[:40]
    return f"specrag-{plain or 'run'}{EXPORTS[format].suffix}"
