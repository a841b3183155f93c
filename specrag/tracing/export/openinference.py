"""A run as OpenInference spans: what Phoenix, Langfuse and other tools for language models understand.

Every span of the run becomes one span under the same root. What kind it is, what went in and what came out
are said by OpenInference's attributes; what only this program knows (scores, decision, settings) goes under
`metadata` and `specrag.*`. Ids follow from the run's id, so a run that is sent twice is the same trace.
"""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from specrag.tracing.export.said import said_of
from specrag.tracing.export.tracks import slices_of
from specrag.tracing.trace import Trace
from specrag.types import Span

Attribute: TypeAlias = str | int | float | bool

_NS: Final = 1_000_000_000
_KINDS: Final = {
    "retrieve": "RETRIEVER",
    "embed": "EMBEDDING",
    "rerank": "RERANKER",
    "verify": "LLM",
    "answer": "LLM",
    "fallback": "LLM",
    "synthesise": "LLM",
    "note": "LLM",
    "rewrite": "LLM",
}
"""All others are steps of a chain; a draft is a model's only where it is one draft and not all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelSpan:
    """A span as OpenTelemetry has it."""

    trace_id: bytes
    """16 bytes."""
    span_id: bytes
    """8 bytes."""
    parent_id: bytes | None
    name: str
    start_ns: int
    """Since 1970."""
    end_ns: int
    attributes: dict[str, Attribute] = field(default_factory=dict)
    error: str | None = None
    """Why it failed; None if it did not."""
    complete: bool = True
    """Whether it came to its end by itself."""


def spans_of(trace: Trace) -> list[OtelSpan]:
    """The run's spans, its root first."""
    zero = _since_1970(trace.created_at)
    root = next((span for span in trace.spans if span.name == "run" and span.parent_id is None), None)
    known = {span.id for span in trace.spans}
    made = [] if root else [_root(trace, zero)]
    root_id = span_id_of(trace, root.id if root else "")
    for slice_ in slices_of(trace):
        span = slice_.span
        above = span.parent_id if span.parent_id in known and span.parent_id != span.id else None
        parent = root_id if above is None else span_id_of(trace, above)
        made.append(
            OtelSpan(
                trace_id=trace_id_of(trace),
                span_id=span_id_of(trace, span.id),
                parent_id=None if span is root else parent,
                name=_named(trace, span),
                start_ns=zero + slice_.start_ns,
                end_ns=zero + slice_.end_ns,
                attributes=_attributes(trace, span, of_root=span is root),
                error=_error(trace, span, of_root=span is root),
                complete=_is_complete(trace, span, of_root=span is root),
            )
        )
    return sorted(made, key=lambda one: one.parent_id is not None)


def trace_id_of(trace: Trace) -> bytes:
    """16 bytes that follow from the run's id."""
    return hashlib.sha256(f"specrag/{trace.run_id}".encode("utf-8", "replace")).digest()[:16]


def span_id_of(trace: Trace, span_id: str) -> bytes:
    """8 bytes that follow from the ids of run and span."""
    text = f"specrag/{trace.run_id}/{span_id}"
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8]


def _root(trace: Trace, zero: int) -> OtelSpan:
    """For a run that failed before its first step, or a trace that came without a root."""
    span = Span(id="", parent_id=None, name="run", start_ms=0.0, end_ms=trace.elapsed_ms)
    return OtelSpan(
        trace_id=trace_id_of(trace),
        span_id=span_id_of(trace, ""),
        parent_id=None,
        name=_named(trace, span),
        start_ns=zero,
        end_ns=zero + round(trace.elapsed_ms * 1_000_000),
        attributes=_attributes(trace, span, of_root=True),
        error=_error(trace, span, of_root=True),
        complete=trace.status == "done",
    )


def _since_1970(created_at: str) -> int:
    """Nanoseconds; a trace from outside may hold no date, and is then of 1970."""
    try:
        when = datetime.fromisoformat(created_at)
    except ValueError:
        return 0
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0, round(when.timestamp() * 1000) * (_NS // 1000))


def _named(trace: Trace, span: Span) -> str:
    if span.name == "run":
        return f"specrag {trace.pipeline}"
    subset = span.attributes.get("subset_id")
    numbers = {draft.subset_id: number for number, draft in enumerate(trace.drafts, 1)}
    number = numbers.get(str(subset)) if span.name == "draft" else None
    return f"draft {number}" if number else span.name or "step"


def _error(trace: Trace, span: Span, *, of_root: bool) -> str | None:
    if of_root:
        return trace.error.message or trace.error.type if trace.status == "failed" and trace.error else None
    subset = span.attributes.get("subset_id") if span.name == "draft" else None
    return next((draft.error for draft in trace.drafts if draft.subset_id == subset and draft.error), None)


def _is_complete(trace: Trace, span: Span, *, of_root: bool) -> bool:
    if of_root:
        return trace.status == "done"
    return span.end_ms is not None and span.attributes.get("unfinished") is not True


def kind_of(span: Span) -> str:
    """OpenInference's kind of a span."""
    if span.name == "draft" and "subset_id" in span.attributes:
        return "LLM"
    return _KINDS.get(span.name, "CHAIN")


def _attributes(trace: Trace, span: Span, *, of_root: bool) -> dict[str, Attribute]:
    parent = trace.parent.run_id if trace.parent else trace.run_id
    made: dict[str, Any] = {
        "openinference.span.kind": kind_of(span),
        "session.id": parent,
        **{f"specrag.{name}": value for name, value in span.attributes.items()},
        **(_of_run(trace) if of_root else said_of(trace, span)),
    }
    return {name: value for name, value in made.items() if _is_told(value)}


def _is_told(value: Any) -> bool:
    """Unknown values, empty texts and what is no number are left out."""
    if isinstance(value, float):
        return value - value == 0  # neither infinite nor undefined
    return value is not None and value != ""


def _of_run(trace: Trace) -> dict[str, Any]:
    decision = trace.decision
    metadata = {
        "run_id": trace.run_id,
        "pipeline": trace.pipeline,
        "status": trace.status,
        "config": trace.config,
        "environment": trace.environment,
        "decision": None if decision is None else decision.kind,
        "usage": {
            role: {
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "forward_passes": usage.forward_passes,
            }
            for role, usage in (("drafter", trace.usage.drafter), ("verifier", trace.usage.verifier))
        },
        **({"forked_from": trace.parent.run_id, "from_step": trace.parent.step} if trace.parent else {}),
    }
    return {
        "input.value": trace.question,
        "input.mime_type": "text/plain",
        "output.value": trace.answer.text if trace.answer else None,
        "output.mime_type": "text/plain" if trace.answer else None,
        "metadata": json.dumps(metadata, ensure_ascii=False),
        "specrag.run_id": trace.run_id,
        "specrag.pipeline": trace.pipeline,
        "specrag.status": trace.status,
        "specrag.asked": trace.rewritten,
        "specrag.decision.kind": decision.kind if decision else None,
        "specrag.decision.reason": decision.reason if decision else None,
        "specrag.decision.margin": decision.margin if decision else None,
        "specrag.decision.agreement": decision.agreement if decision else None,
        "specrag.decision.conflict": decision.conflict if decision else None,
        "specrag.answer.confidence": trace.answer.confidence if trace.answer else None,
    }
