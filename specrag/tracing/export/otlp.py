"""Spans as OTLP says them: as JSON for a file, and as protobuf for a collector.

Both are the same message. Its JSON form differs from protobuf's own in one thing, that ids are hexadecimal.
"""

import base64
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from specrag import __version__
from specrag.tracing.codec import json_text
from specrag.tracing.export.openinference import Attribute, OtelSpan

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROJECT: Final = "specrag"
_INTERNAL: Final = 1
"""Kind of a span that no other service called."""
_OK, _ERROR = 1, 2


def to_json(spans: Iterable[OtelSpan]) -> bytes:
    """The spans as a file in OTLP's JSON form."""
    return json_text(_document(spans, bytes.hex), indent=1).encode()


def to_request(spans: Iterable[OtelSpan]) -> "ExportTraceServiceRequest":
    """The spans as the message that a collector takes."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    json_format = import_module("google.protobuf.json_format")  # the package has no types
    json_format.ParseDict(_document(spans, _base64), request)
    return request


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _document(spans: Iterable[OtelSpan], written: Callable[[bytes], str]) -> dict[str, Any]:
    about: dict[str, Attribute] = {
        "service.name": PROJECT,
        "service.version": __version__,
        "openinference.project.name": PROJECT,
    }
    scope = {"name": PROJECT, "version": __version__}
    rows = [_span(span, written) for span in spans]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(about)},
                "scopeSpans": [{"scope": scope, "spans": rows}],
            }
        ]
    }


def _span(span: OtelSpan, written: Callable[[bytes], str]) -> dict[str, Any]:
    above = {} if span.parent_id is None else {"parentSpanId": written(span.parent_id)}
    status: dict[str, Any] = {"code": _OK} if span.complete else {}
    if span.error is not None:
        status = {"code": _ERROR, "message": _readable(span.error)}
    return {
        "traceId": written(span.trace_id),
        "spanId": written(span.span_id),
        **above,
        "name": _readable(span.name),
        "kind": _INTERNAL,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
        "status": status,
    }


def _attributes(attributes: dict[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": _readable(name), "value": _value(value)} for name, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"stringValue": _readable(value)}


def _readable(text: str) -> str:
    """Text without halves of code units, which protobuf refuses."""
    return text.encode("utf-8", "replace").decode()
