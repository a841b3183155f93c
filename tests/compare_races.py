"""Comparisons in every state that the page can show, over the runs of `ui_runs.py`. Test data: nothing ran."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specrag import events as e
from specrag.race import Race, Stage
from specrag.tracing.comparisons import Comparison
from specrag.tracing.trace import Trace
from specrag.types import PipelineName
from tests.ui_runs import DRAFTER, HOSTILE_HOPS, MULTIHOP, STANDARD, STANDARD_WRITING, Script
from tests.ui_traces import DRAFTING, HOSTILE, HOSTILE_TRACE, LONG_WORD, PASSAGES, SELECTED

ALL: tuple[PipelineName, ...] = ("standard", "drafter", "multihop", "speculative")


def comparison(pipelines: Sequence[PipelineName] = ALL, **values: Any) -> Comparison:
    """A comparison of these pipelines that is done, unless `values` say otherwise."""
    given: dict[str, Any] = {
        "id": "c0ffee",
        "created_at": "2026-01-01T10:00:00.000+00:00",
        "question": "How long may a visiting boat stay?",
        "collection": "documents",
        "pipelines": tuple(pipelines),
        "run_ids": tuple(f"run-{name}" for name in pipelines),
        "order_note": "the models compute in one process",
        "status": "done",
        "begun": len(pipelines),
        "retrieve_ms": 120.0,
        "passages": len(PASSAGES),
    }
    return Comparison(**(given | values))


def race(made: Comparison, *traces: Trace | None, stage: Stage = "ended") -> Race:
    return Race(comparison=made, stage=stage, traces=traces)


def written(pipeline: PipelineName, text: str, role: str = "verifier", *, waits: bool = False) -> Script:
    """A run that one model writes by itself; every event takes 100 ms. The usage is 900 and 6 tokens."""
    script = Script(pipeline)
    if waits:
        script.queue(2, 1, 0)
    script.retrieve()
    script.decide("direct", f"The {role} answers.")
    key = script.write(text, role=role)
    told: Any = role
    script.tell(e.UsageCounted(at_ms=script.now, role=told, prompt_tokens=900, completion_tokens=6))
    script.answer(key, text)
    return script


DONE = race(comparison(), STANDARD, DRAFTER, MULTIHOP, SELECTED)
RUNNING = race(
    comparison(status="running", begun=2, turn=0),
    STANDARD,
    replace(STANDARD_WRITING),
    None,
    None,
    stage="running",
)
DRAFTS = race(
    comparison(("standard", "speculative"), status="running", begun=2), STANDARD, DRAFTING, stage="running"
)
STOPPED = race(
    comparison(status="cancelled", begun=1, error="The comparison was stopped."), STANDARD, None, None, None
)
FAILED = race(
    comparison(status="failed", begun=0, retrieve_ms=None, error="The collection is empty."),
    None,
    None,
    None,
    None,
)
DELETED = race(comparison(("standard", "speculative")), None, SELECTED)
WAITING = race(
    comparison(status="running", begun=0, retrieve_ms=None), None, None, None, None, stage="waiting"
)
HOSTILE_RACE = race(
    comparison(("multihop", "speculative"), question=HOSTILE, order_note=HOSTILE, error=HOSTILE),
    HOSTILE_HOPS,
    HOSTILE_TRACE,
)
LONG = race(comparison(("standard", "speculative"), question=LONG_WORD), STANDARD, SELECTED)
STATES = {
    "done": DONE,
    "running": RUNNING,
    "drafts": DRAFTS,
    "stopped": STOPPED,
    "failed": FAILED,
    "deleted": DELETED,
    "waiting": WAITING,
    "hostile": HOSTILE_RACE,
    "long": LONG,
}
