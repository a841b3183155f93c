"""The trace of a run: the fold of its events, finished or still growing.

`TraceFold` is the only place where events become what a person sees. The live page renders the trace while
it grows and the store keeps the same value when it is done, so they cannot disagree.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from specrag import events as e
from specrag.decide import begun
from specrag.text import without_citations
from specrag.tracing.spent import Uncounted
from specrag.types import (
    Answer,
    Decision,
    Draft,
    ErrorInfo,
    Exchange,
    Hop,
    Parent,
    Passage,
    PipelineName,
    Prompt,
    Role,
    RoleUsage,
    RunStatus,
    Span,
    Spot,
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
    """As it was asked; a follow-up is answered as `rewritten`."""
    created_at: str
    parent: Parent | None = None
    """The run that this one was forked from."""
    earlier: tuple[Exchange, ...] = ()
    """The conversation before it, oldest first."""
    rewritten: str | None = None
    """The question that stands alone, where a follow-up was rewritten."""
    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    passages: tuple[Passage, ...] = ()
    retrieval_note: str | None = None
    """What a person should know of the retrieval for the question."""
    subsets: tuple[Subset, ...] = ()
    partition_note: str | None = None
    singletons: tuple[str, ...] = ()
    """Ids of the passages that are a cluster of their own, and so in every subset."""
    spots: tuple[Spot, ...] = ()
    """The perspective map of the passages."""
    drafts: tuple[Draft, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    """What was sent to the models beside the drafts' prompts, in its order."""
    hops: tuple[Hop, ...] = ()
    decision: Decision | None = None
    answer: Answer | None = None
    answer_tokens: tuple[TokenLogprob, ...] = ()
    """Tokens of an answer that one model wrote itself; empty when a draft is the answer, as it is when the
    verifier's text was put aside."""
    spans: tuple[Span, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: ErrorInfo | None = None
    ahead: int = 0
    """Runs that have to end before this one begins, while it waits for its turn."""
    elapsed_ms: float = 0.0
    """Time of the last event."""

    @property
    def asked(self) -> str:
        """The question that the models were asked."""
        return self.rewritten or self.question

    def passage(self, passage_id: str) -> Passage | None:
        """The passage with this id."""
        return next((passage for passage in self.passages if passage.id == passage_id), None)


class TraceFold:
    """Folds the events of one run, in order. `trace` is the state so far."""

    def __init__(self) -> None:
        self._trace: Trace | None = None
        self._uncounted = Uncounted()

    @property
    def trace(self) -> Trace:
        """The run so far.

        Raises:
            ValueError: nothing has happened yet.
        """
        if self._trace is None:
            raise ValueError("a trace begins with RunStarted")
        return self._trace

    def apply(self, event: e.Event) -> Trace:
        """Take one more event and return the trace with it."""
        if isinstance(event, e.RunStarted):
            self._trace = Trace(
                run_id=event.run_id,
                status="running",
                pipeline=event.pipeline,
                question=event.question,
                created_at=event.created_at,
                parent=event.parent,
                earlier=event.earlier,
                config=event.config,
                environment=event.environment,
            )
        self._uncounted.see(event)
        trace = replace(_step(self.trace, event), elapsed_ms=event.at_ms)
        if isinstance(event, e.RunFailed | e.RunCancelled):
            trace = replace(trace, usage=self._spent(trace.usage, event.at_ms))
        self._trace = trace
        return trace

    def _spent(self, usage: Usage, at_ms: float) -> Usage:
        """A run that stops early has decoded what it wrote, though nothing counted it."""
        roles: tuple[Role, ...] = ("drafter", "verifier")
        for role in roles:
            left = self._uncounted.left(role)
            usage = _counted(usage, e.UsageCounted(at_ms=at_ms, role=role, completion_tokens=left))
        return usage


def fold(events: Iterable[e.Event]) -> Trace:
    """The trace of a finished list of events."""
    folding = TraceFold()
    for event in events:
        folding.apply(event)
    return folding.trace


def _step(trace: Trace, event: e.Event) -> Trace:  # noqa: C901, PLR0911, PLR0912 - one case per event
    match event:
        case e.RunStarted():
            return trace
        case e.QuestionRewritten():
            return replace(trace, rewritten=event.question)
        case e.PromptSent():
            return replace(trace, prompts=(*trace.prompts, event.prompt))
        case e.Queued():
            return replace(trace, ahead=event.ahead)
        case e.SpanStarted():
            return replace(trace, spans=(*trace.spans, _span(event)))
        case e.SpanEnded():
            return replace(trace, spans=tuple(_ended(span, event) for span in trace.spans))
        case e.PassagesRetrieved():
            # what a later hop finds is told by its passages; the note is about the question itself
            note = trace.retrieval_note if trace.passages else event.note
            return replace(trace, passages=event.passages, retrieval_note=note)
        case e.SubsetsFormed():
            drafts = tuple(Draft(subset_id=subset.id) for subset in event.subsets)
            return replace(
                trace,
                subsets=event.subsets,
                partition_note=event.note,
                singletons=event.singletons,
                spots=event.spots,
                drafts=drafts,
            )
        case e.DraftStarted():
            return _edit(trace, event.subset_id, prompt=event.prompt, prompt_tokens=event.prompt_tokens)
        case e.DraftToken():
            return _add_token(trace, event)
        case e.DraftFinished():
            return replace(
                trace,
                drafts=tuple(
                    event.draft if draft.subset_id == event.draft.subset_id else draft
                    for draft in trace.drafts
                ),
            )
        case e.DraftsVerified():
            for verdict in event.verdicts:
                trace = _edit(
                    trace,
                    verdict.subset_id,
                    scores=verdict.scores,
                    log_sums=verdict.log_sums,
                    verifier_tokens=verdict.verifier_tokens,
                )
            return trace
        case e.HopStarted():
            return replace(trace, hops=(*trace.hops, Hop(number=event.number, query=event.query)))
        case e.HopToken():
            return replace(trace, hops=tuple(_noted(hop, event) for hop in trace.hops))
        case e.HopFinished():
            return replace(
                trace,
                hops=tuple(event.hop if hop.number == event.hop.number else hop for hop in trace.hops),
            )
        case e.Decided():
            return replace(trace, decision=event.decision)
        case e.AnswerToken():
            return _answering(trace, event)
        case e.Answered():
            return _answered(trace, event.answer)
        case e.UsageCounted():
            return replace(trace, usage=_counted(trace.usage, event))
        case e.RunFinished():
            return replace(trace, status="done")
        case e.RunFailed():
            return replace(_close_spans(trace, event.at_ms), status="failed", error=event.error)
        case e.RunCancelled():
            error = ErrorInfo(type="cancelled", message=event.reason)
            return replace(_close_spans(trace, event.at_ms), status="cancelled", error=error)
        case _:
            assert_never(event)


def _span(event: e.SpanStarted) -> Span:
    return Span(
        id=event.span_id,
        parent_id=event.parent_id,
        name=event.name,
        start_ms=event.at_ms,
        attributes=event.attributes,
    )


def _ended(span: Span, event: e.SpanEnded) -> Span:
    if span.id != event.span_id:
        return span
    return replace(span, end_ms=event.at_ms, attributes={**span.attributes, **event.attributes})


def _close_spans(trace: Trace, at_ms: float) -> Trace:
    """A run that stops early closes what was open, so that spans always nest."""
    spans = tuple(
        replace(span, end_ms=at_ms, attributes={**span.attributes, "unfinished": True})
        if span.end_ms is None
        else span
        for span in trace.spans
    )
    return replace(trace, spans=spans)


def _edit(trace: Trace, subset_id: str, **changes: Any) -> Trace:
    return replace(
        trace,
        drafts=tuple(
            replace(draft, **changes) if draft.subset_id == subset_id else draft for draft in trace.drafts
        ),
    )


def _add_token(trace: Trace, event: e.DraftToken) -> Trace:
    draft = next(draft for draft in trace.drafts if draft.subset_id == event.subset_id)
    token = TokenLogprob(text=event.text, logprob=event.logprob, part=event.part, at_ms=event.at_ms)
    text = getattr(draft, event.part) + event.text
    return _edit(trace, event.subset_id, tokens=(*draft.tokens, token), **{event.part: text.lstrip()})


def _noted(hop: Hop, event: e.HopToken) -> Hop:
    if hop.number != event.number:
        return hop
    if event.part == "query":
        return replace(hop, next_query=((hop.next_query or "") + event.text).lstrip())
    return replace(hop, note=(hop.note + event.text).lstrip())


def _answering(trace: Trace, event: e.AnswerToken) -> Trace:
    text = (trace.answer.text if trace.answer else "") + event.text
    trace = replace(trace, answer=Answer(text=text.lstrip()))
    if event.logprob is None:
        return trace
    token = TokenLogprob(text=event.text, logprob=event.logprob, part="answer", at_ms=event.at_ms)
    return replace(trace, answer_tokens=(*trace.answer_tokens, token))


def _answered(trace: Trace, answer: Answer) -> Trace:
    """The final answer keeps the tokens that it is made of: those of a text that was put aside are dropped.

    Spaces around it, its first letter and the numbers of drafts that a synthesis cites may differ.
    """
    written = begun(without_citations("".join(token.text for token in trace.answer_tokens)))
    kept = trace.answer_tokens if written == begun(without_citations(answer.text)) else ()
    return replace(trace, answer=answer, answer_tokens=kept)


def _counted(usage: Usage, event: e.UsageCounted) -> Usage:
    before = usage.drafter if event.role == "drafter" else usage.verifier
    after = RoleUsage(
        prompt_tokens=before.prompt_tokens + event.prompt_tokens,
        completion_tokens=before.completion_tokens + event.completion_tokens,
        forward_passes=before.forward_passes + event.forward_passes,
    )
    if event.role == "drafter":
        return replace(usage, drafter=after)
    return replace(usage, verifier=after)
