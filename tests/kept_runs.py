"""Small kept runs for tests of the store and the history. Test data: no model wrote any of it."""

from dataclasses import replace
from typing import Any

from specrag.events import Event, RunFinished, RunStarted
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace
from specrag.types import Answer, Decision, DecisionKind


def kept(run_id: str, *, answer: str = "", decision: DecisionKind | None = None, **fields: Any) -> Trace:
    """A run that has ended."""
    trace = Trace(
        run_id=run_id,
        status="done",
        pipeline="speculative",
        question="How long may boats stay?",
        created_at="2026-01-01T10:00:00.000+00:00",
        answer=Answer(text=answer) if answer else None,
        decision=Decision(kind=decision, draft_index=None, reason="") if decision else None,
    )
    return replace(trace, **fields)


def told(trace: Trace) -> list[Event]:
    """The shortest story of a run."""
    started = RunStarted(
        at_ms=0.0,
        run_id=trace.run_id,
        pipeline=trace.pipeline,
        question=trace.question,
        created_at=trace.created_at,
    )
    return [started, RunFinished(at_ms=5.0)]


def keep(store: TraceStore, run_id: str, *, owner: str = "", **fields: Any) -> Trace:
    """Put a run into a store."""
    trace = kept(run_id, **fields)
    store.save(trace, told(trace), owner=owner)
    return trace
