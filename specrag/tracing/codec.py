"""Traces and events as JSON and back.

Reading is strict about what it knows: a file from outside is checked field by field before anything looks at
it. Fields that this version does not know are left out, so that a newer trace can still be opened.
"""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, get_args

from pydantic import TypeAdapter, ValidationError

from specrag import events as e
from specrag.errors import TraceError
from specrag.tracing.trace import SCHEMA, Trace


def to_dict(trace: Trace) -> dict[str, Any]:
    """The public `specrag.trace/1` document as plain values."""
    document: dict[str, Any] = _adapter().dump_python(trace, mode="json")
    return document


def to_json(trace: Trace, *, indent: int | None = None) -> str:
    """The same as text."""
    return json.dumps(to_dict(trace), ensure_ascii=False, indent=indent)


def from_json(text: str) -> Trace:
    """A trace from its JSON text.

    Raises:
        TraceError: the text is not a `specrag.trace/1` document, with the first field that is wrong.
    """
    try:
        trace = _adapter().validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise TraceError(f"This is not a {SCHEMA} trace: {where}: {first['msg']}.") from error
    if trace.schema != SCHEMA:
        raise TraceError(f"This trace has the schema “{trace.schema[:40]}”; {SCHEMA} can be read.")
    return trace


def events_to_json(events: Iterable[e.Event]) -> str:
    """Events as a JSON list, each under its name: [["RunStarted", {...}], ...]."""
    named = ((type(event).__name__, event) for event in events)
    rows = [[name, _event_adapter(name).dump_python(event, mode="json")] for name, event in named]
    return json.dumps(rows, ensure_ascii=False)


def events_from_json(text: str) -> list[e.Event]:
    """The events again; folding them gives the trace that they were stored with.

    Raises:
        TraceError: the text is not a list of known events.
    """
    try:
        return [_event_adapter(name).validate_python(fields) for name, fields in json.loads(text)]
    except (ValidationError, KeyError, ValueError, TypeError) as error:
        raise TraceError(f"The stored events of this run cannot be read: {error}") from error


_KINDS: Final[dict[str, Any]] = {kind.__name__: kind for kind in get_args(e.Event)}


@cache
def _adapter() -> TypeAdapter[Trace]:
    return TypeAdapter(Trace)


@cache
def _event_adapter(name: str) -> TypeAdapter[e.Event]:
    return TypeAdapter(_KINDS[name])
