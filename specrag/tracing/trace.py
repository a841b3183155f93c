"""The trace of a run: the fold of its events, finished or still growing.

`TraceFold` is the only place where events become what a person sees. The live page renders the trace while
it grows and the store keeps the same value when it is done, so they cannot disagree.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import assert_never

from specrag import events as e
from specrag.types import (
    Answer,
    Decision,
    Draft,
    ErrorInfo,
    Passage,
    PipelineName,
    RoleUsage,
    RunStatus,
    Span,
    Subset,
    TokenLogprob,
)

SCHEMA = "specrag.trace/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens by role."""

    drafter: RoleUsage = field(default_factory=RoleUsage)
    verifier: RoleUsage = field(default_factory=RoleUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything about one run. The field names are the public `specrag.trace/1` format."""

    schema: str = SCHEMA
    run_id: str
    status: RunStatus
    pipeline: PipelineName
    question: str
    created_at: str
    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    passages: tuple[Passage, ...] = ()
    subsets: tuple[Subset, ...] = ()
    partition_note: str | None = None
    drafts: tuple[Draft, ...] = ()
    decision: Decision | None = None
    answer: Answer | None = None
    spans: tuple[Span, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: ErrorInfo | None = None
    elapsed_ms: float = 0.0
    """Time of the last event."""

    def passage(self, passage_id: str) -> Passage | None:
        """The passage with this id."""
        return next((passage for passage in self.passages if passage.id == passage_id), None)
