"""A finished run as the tables need it: its marks, its times and what it spent, without its texts.

Thousands of traces do not fit the memory; what is averaged of them does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from specrag.evaluation.choices import Judgement, by_no_draft, choices, judgements
from specrag.evaluation.folder import Folder, Line
from specrag.evaluation.judging import Marks, claimed, marks
from specrag.evaluation.plan import Plan
from specrag.evaluation.questions import Question
from specrag.evaluation.ranking import Judged
from specrag.evaluation.systems import System
from specrag.tracing.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run gave."""

    dataset: str
    question: str
    system: str
    marks: Marks
    error: str = ""
    """Why it failed; empty if it did not."""
    times: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds: total_ms, ttft_ms (when the answer begins to show), retrieve_ms, and each phase."""
    tokens: Mapping[str, float] = field(default_factory=dict)
    """What each role read and wrote, as role.field."""
    claimed: Judged | None = None
    choices: Mapping[str, float] = field(default_factory=dict)
    drafts: tuple[Judgement, ...] = ()
    by_no_draft: bool = False
    """It had drafts, and its answer is that of none."""


def outcomes(plan: Plan, folder: Folder) -> Iterator[Outcome]:
    """The outcomes of the plan's runs as far as they are finished."""
    for dataset, question in plan.questions:
        for system in plan.systems:
            line = folder.finished.get((dataset.name, question.id, system.name))
            if line is not None:
                yield outcome(question, system, line, folder.trace(line))


def outcome(question: Question, system: System, line: Line, trace: Trace | None) -> Outcome:
    """The outcome of one run."""
    if line.status == "failed" or trace is None:
        return Outcome(
            dataset=line.dataset,
            question=line.question,
            system=line.system,
            marks=marks(question, None, reads=system.reads),
            error=line.error or "The trace of the run is gone.",
        )
    return Outcome(
        dataset=line.dataset,
        question=line.question,
        system=line.system,
        marks=marks(question, trace),
        times=_phases(trace) if system.fork else _times(trace, line.retrieve_ms),
        tokens={} if system.fork else _tokens(trace),
        claimed=claimed(question, trace),
        choices=choices(question, trace),
        drafts=judgements(question, trace),
        by_no_draft=by_no_draft(trace),
    )


def _times(trace: Trace, retrieve_ms: float | None) -> dict[str, float]:
    """Of the run itself; what finding the passages took once for all systems stands beside it."""
    shown = next((token.at_ms for token in trace.answer_tokens if token.at_ms is not None), trace.elapsed_ms)
    found = {} if retrieve_ms is None else {"retrieve_ms": retrieve_ms}
    return {"total_ms": trace.elapsed_ms, "ttft_ms": shown, **found, **_phases(trace)}


def _phases(trace: Trace) -> dict[str, float]:
    """Of the steps that the run did itself, not of those that it took over."""
    roots = {span.id for span in trace.spans if span.parent_id is None}
    phases: dict[str, float] = {}
    for span in trace.spans:
        if span.parent_id in roots and span.end_ms is not None and not span.attributes.get("given"):
            name = f"phase.{span.name}"
            phases[name] = phases.get(name, 0.0) + span.end_ms - span.start_ms
    return phases


def _tokens(trace: Trace) -> dict[str, float]:
    return {
        f"{name}.{kind}": float(getattr(usage, kind))
        for name, usage in (("drafter", trace.usage.drafter), ("verifier", trace.usage.verifier))
        for kind in ("prompt_tokens", "completion_tokens", "forward_passes")
        if (name, kind) != ("drafter", "forward_passes")
    }
