"""Traces and events as JSON and back.

Reading is strict about what it knows: a file from outside is checked field by field before anything looks at
it, and the first field that is wrong ends the reading, since millions of errors take longer to write down
than to find. Fields that this version does not know are left out, so that a newer trace can still be opened.
"""

import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, cast, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, SchemaValidator

from specrag import events as e
from specrag.errors import TraceError
from specrag.tracing.trace import SCHEMA, Trace

_IMPOSSIBLE: Final = -9999.0
"""Stands for a log-probability that is no number, which JSON cannot say; model servers cut there too."""


def to_dict(trace: Trace) -> dict[str, Any]:
    """The public `specrag.trace/1` document as plain values."""
    document: dict[str, Any] = _adapter(Trace).dump_python(trace, mode="json")
    return document


def to_json(trace: Trace, *, indent: int | None = None) -> str:
    """The same as text."""
    return json_text(to_dict(trace), indent=indent)


def run_to_json(trace: Trace, events: Sequence[e.Event]) -> str:
    """A run as one file: the trace document with its events beside it, a line for each member and event."""
    lines = [f"{json_text(name)}: {json_text(value)}" for name, value in to_dict(trace).items()]
    rows = ",\n".join(f"  {json_text(row)}" for row in _rows(events))
    return "{" + ",\n ".join([*lines, f'"events": [\n{rows}\n ]']) + "}\n"


def from_json(text: str) -> Trace:
    """A trace from its JSON text.

    Raises:
        TraceError: the text is not a `specrag.trace/1` document, with the first field that is wrong.
    """
    try:
        trace: Trace = _validator(Trace).validate_json(text)
    except ValidationError as error:
        raise TraceError(_not_a_trace(error)) from error
    return _known(trace)


def from_dict(document: dict[str, Any]) -> Trace:
    """A trace from plain values, as they stand in its JSON text.

    Raises:
        TraceError: as `from_json`.
    """
    try:
        trace: Trace = _validator(Trace).validate_python(document)
    except ValidationError as error:
        raise TraceError(_not_a_trace(error)) from error
    return _known(trace)


def events_to_json(events: Iterable[e.Event]) -> str:
    """Events as a JSON list, each under its name: [["RunStarted", {...}], ...]."""
    return json_text(_rows(events))


def events_from_json(text: str) -> list[e.Event]:
    """The events again; folding them gives the trace that they were stored with.

    Raises:
        TraceError: the text is not a list of known events.
    """
    try:
        return [event_of(name, fields) for name, fields in json.loads(text)]
    except (KeyError, ValueError, TypeError) as error:
        raise TraceError(f"The stored events of this run cannot be read: {error}") from error


def event_of(name: str, fields: Any) -> e.Event:
    """One event from its name and its fields.

    Raises:
        KeyError: this version knows no event of that name.
        TraceError: a field is missing or wrong.
    """
    try:
        event: e.Event = _validator(_KINDS[name]).validate_python(fields)
    except ValidationError as error:
        raise TraceError(f"An event of this run is wrong: {name}.{_first(error)}.") from error
    return event


_KINDS: Final[dict[str, Any]] = {kind.__name__: kind for kind in get_args(e.Event)}


def _rows(events: Iterable[e.Event]) -> list[list[Any]]:
    kinds = ((type(event).__name__, event) for event in events)
    return [[name, _adapter(_KINDS[name]).dump_python(event, mode="json")] for name, event in kinds]


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Valid JSON in valid Unicode whatever a model or a visitor has put into it."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of code units, which no file can hold
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _finite(value: Any, name: str = "") -> Any:
    """The value without numbers that JSON does not know: what is not a number is not known."""
    match value:
        case float() if not math.isfinite(value):
            return _IMPOSSIBLE if name == "logprob" else None
        case dict():
            return {key: _finite(part, key) for key, part in value.items()}
        case list():
            return [_finite(part) for part in value]
        case _:
            return value


def _known(trace: Trace) -> Trace:
    if trace.schema != SCHEMA:
        raise TraceError(f"This trace has the schema “{trace.schema[:40]}”; {SCHEMA} can be read.")
    return trace


def _not_a_trace(error: ValidationError) -> str:
    return f"This is not a {SCHEMA} trace: {_first(error)}."


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part)[:40] for part in first["loc"]) or "the file"
    return f"{where}: {first['msg'][:200]}"


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _validator(kind: Any) -> SchemaValidator:
    return SchemaValidator(cast("CoreSchema", _fail_fast(_adapter(kind).core_schema)))


def _fail_fast(schema: Any) -> Any:
    """The schema with every sequence ending at its first wrong item."""
    match schema:
        case dict():
            quick = {"fail_fast": True} if schema.get("type") in ("list", "tuple") else {}
            return {name: _fail_fast(part) for name, part in schema.items()} | quick
        case list():
            return [_fail_fast(part) for part in schema]
        case _:
            return schema
