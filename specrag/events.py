"""A run is a stream of these small frozen events, and everything a person sees is a fold over them.

`tracing/trace.py` folds them into a `Trace`; the live page renders that same trace while it grows. `at_ms`
counts from the start of the run. An event carries only what is new.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from specrag.types import (
    Answer,
    Decision,
    Draft,
    ErrorInfo,
    Exchange,
    Hop,
    Parent,
    Part,
    Passage,
    PipelineName,
    Prompt,
    Role,
    Spot,
    Subset,
    Verdict,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    at_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(_Event):
    """Always first."""

    run_id: str
    pipeline: PipelineName
    question: str
    created_at: str
    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    parent: Parent | None = None
    """The run that this one was forked from."""
    earlier: tuple[Exchange, ...] = ()
    """The conversation before it, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRewritten(_Event):
    """A follow-up became a question that stands alone; everything after it works with that one."""

    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSent(_Event):
    """A model was sent something; a draft's own prompt is told by `DraftStarted`."""

    prompt: Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued(_Event):
    """The run waits for its turn; sent again when its place changes, and with 0 when it begins."""

    ahead: int
    """Runs that have to end before it begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanStarted(_Event):
    """A step began."""

    span_id: str
    parent_id: str | None
    name: str
    attributes: dict[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEnded(_Event):
    """A step ended; `attributes` join those of its start."""

    span_id: str
    attributes: dict[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagesRetrieved(_Event):
    """All passages found so far, in the order found: best first, and a later hop's after an earlier one's."""

    passages: tuple[Passage, ...]
    note: str | None = None
    """What a person should know of the retrieval (hardly anything matches, near-duplicates were left out)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetsFormed(_Event):
    """The partition; `note` says what a person should know of it (fewer subsets than asked, ...)."""

    subsets: tuple[Subset, ...]
    note: str | None = None
    singletons: tuple[str, ...] = ()
    """Ids of the passages that are a cluster of their own, and so in every subset."""
    spots: tuple[Spot, ...] = ()
    """The perspective map; empty where there are too few passages for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftStarted(_Event):
    """The drafter begins to read a subset."""

    subset_id: str
    prompt: str
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftToken(_Event):
    """One decoded token of a draft."""

    subset_id: str
    part: Part
    text: str
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFinished(_Event):
    """A draft is complete, failed ones included (`finish_reason` is then "error")."""

    draft: Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftsVerified(_Event):
    """What the verifier said: of all usable drafts after its one pass, or of one that it read eagerly."""

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HopStarted(_Event):
    """Multi-hop RAG looks for something."""

    number: int
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HopToken(_Event):
    """One decoded token of a hop's note or of the next query."""

    number: int
    part: Part
    text: str
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HopFinished(_Event):
    """A hop is complete."""

    hop: Hop


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(_Event):
    """The decision."""

    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerToken(_Event):
    """A token of an answer that one model writes itself (fallback, synthesis, the baselines)."""

    text: str
    logprob: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(_Event):
    """The answer."""

    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCounted(_Event):
    """Tokens read and written by a role since its last count."""

    role: Role
    prompt_tokens: int = 0
    completion_tokens: int = 0
    forward_passes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(_Event):
    """Last event of a run that gave an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed(_Event):
    """Last event of a run that could not."""

    error: ErrorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled(_Event):
    """Last event of a run that was stopped, by a person or by its deadline."""

    reason: str


Event: TypeAlias = (
    RunStarted
    | QuestionRewritten
    | PromptSent
    | Queued
    | SpanStarted
    | SpanEnded
    | PassagesRetrieved
    | SubsetsFormed
    | DraftStarted
    | DraftToken
    | DraftFinished
    | DraftsVerified
    | HopStarted
    | HopToken
    | HopFinished
    | Decided
    | AnswerToken
    | Answered
    | UsageCounted
    | RunFinished
    | RunFailed
    | RunCancelled
)
