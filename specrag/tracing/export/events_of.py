"""Events for a trace that came without any, so that it too can be replayed.

A trace says when its steps and tokens were, and everything else happened at the end of a step. So the story
can be told again in its order; only what no trace keeps is lost, such as the pace of a note between hops.
Folding the events gives the trace that they were made from.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from specrag import events as e
from specrag.tracing.spent import Uncounted
from specrag.tracing.trace import Trace
from specrag.types import Draft, Role, Scores, Span, TokenLogprob, Verdict

_STOPPED = "unfinished"
"""What the fold says of a span that a run left open."""


def events_of(trace: Trace) -> tuple[e.Event, ...]:
    """The events that would have made this trace, in the order of their times."""
    told = [_started(trace), *_spans(trace)]
    after = _early(trace, told)
    after = _drafts(trace, told, after)
    told += [replace(event, at_ms=max(event.at_ms, after)) for event in _late(trace)]
    ordered = sorted(told, key=lambda event: event.at_ms)  # what happens at one time stays in its order
    return tuple(_until(trace, [*ordered, *_counted(trace, ordered), *_ended(trace)]))


def _started(trace: Trace) -> e.Event:
    return e.RunStarted(
        at_ms=0.0,
        run_id=trace.run_id,
        pipeline=trace.pipeline,
        question=trace.question,
        created_at=trace.created_at,
        config=trace.config,
        environment=trace.environment,
        parent=trace.parent,
        earlier=trace.earlier,
    )


def _spans(trace: Trace) -> Iterator[e.Event]:
    for span in trace.spans:
        left_open = span.attributes.get(_STOPPED) is True and span.end_ms == trace.elapsed_ms
        attributes = {
            name: value for name, value in span.attributes.items() if not (left_open and name == _STOPPED)
        }
        yield e.SpanStarted(
            at_ms=span.start_ms,
            span_id=span.id,
            parent_id=span.parent_id,
            name=span.name,
            attributes=attributes,
        )
        if span.end_ms is not None and not left_open:
            yield e.SpanEnded(at_ms=span.end_ms, span_id=span.id)


def _early(trace: Trace, told: list[e.Event]) -> float:
    """What comes before the drafts; returns when the last of it was."""
    at = 0.0
    if trace.ahead:
        told.append(e.Queued(at_ms=at, ahead=trace.ahead))
    if trace.rewritten is not None:
        at = _end(trace, "rewrite", at)
        told.append(e.QuestionRewritten(at_ms=at, question=trace.rewritten))
    at = _hops(trace, told, at) if trace.hops else _end(trace, "retrieve", at)
    if trace.passages or trace.retrieval_note is not None:
        event = e.PassagesRetrieved(at_ms=at, passages=trace.passages, note=trace.retrieval_note)
        told.append(event)
    if trace.subsets:
        at = _end(trace, "partition", at)
        told.append(
            e.SubsetsFormed(
                at_ms=at,
                subsets=trace.subsets,
                note=trace.partition_note,
                singletons=trace.singletons,
                spots=trace.spots,
            )
        )
    told += _prompts(trace)
    return at


def _prompts(trace: Trace) -> Iterator[e.Event]:
    """Each at the beginning of its step; the second note of a run belongs to its second hop."""
    at, seen = 0.0, Counter[str]()
    for prompt in trace.prompts:
        begins = [span.start_ms for span in trace.spans if span.name == prompt.step]
        if begins:
            at = max(at, begins[min(seen[prompt.step], len(begins) - 1)])
        seen[prompt.step] += 1
        yield e.PromptSent(at_ms=at, prompt=prompt)


def _hops(trace: Trace, told: list[e.Event], at: float) -> float:
    """Each hop with what was found so far; all passages are told once more after the last one."""
    spans = [span for span in trace.spans if span.name == "hop"]
    found: list[str] = []
    for place, hop in enumerate(trace.hops):
        span = spans[place] if place < len(spans) else None
        at = max(at, span.start_ms) if span else at
        told.append(e.HopStarted(at_ms=at, number=hop.number, query=hop.query))
        searched = [part for part in trace.spans if span and part.parent_id == span.id]
        at = max([at, *(part.end_ms or at for part in searched if part.name == "retrieve")])
        found += [one for one in hop.passage_ids if one not in found]
        if found:
            so_far = tuple(passage for one in found if (passage := trace.passage(one)) is not None)
            told.append(e.PassagesRetrieved(at_ms=at, passages=so_far, note=trace.retrieval_note))
        at = max(at, span.end_ms or at) if span else at
        told.append(e.HopFinished(at_ms=at, hop=hop))
    return at


def _drafts(trace: Trace, told: list[e.Event], after: float) -> float:
    """The drafts with their tokens, then what the verifier said; returns when that was."""
    for draft in trace.drafts:
        span = next((one for one in trace.spans if one.attributes.get("subset_id") == draft.subset_id), None)
        told += _draft(draft, span, after)
    written = max([after, *(event.at_ms for event in told if isinstance(event, e.DraftFinished))])
    verdicts = tuple(_verdict(draft) for draft in trace.drafts if _was_verified(draft))
    if not verdicts:
        return written
    at = _end(trace, "verify", written)
    told.append(e.DraftsVerified(at_ms=at, verdicts=verdicts))
    return at


def _draft(draft: Draft, span: Span | None, after: float) -> Iterator[e.Event]:
    at = max(after, span.start_ms if span else after)
    if draft.prompt or draft.prompt_tokens:
        yield e.DraftStarted(
            at_ms=at, subset_id=draft.subset_id, prompt=draft.prompt, prompt_tokens=draft.prompt_tokens
        )
    for token in draft.tokens:
        at = max(at, token.at_ms or at)
        yield e.DraftToken(
            at_ms=at, subset_id=draft.subset_id, part=token.part, text=token.text, logprob=token.logprob
        )
    if draft.finish_reason is not None:
        at = max(at, (span.end_ms if span else None) or at)
        yield e.DraftFinished(at_ms=at, draft=_unverified(draft) if _was_verified(draft) else draft)


def _was_verified(draft: Draft) -> bool:
    return draft.finish_reason is not None and draft != _unverified(draft)


def _unverified(draft: Draft) -> Draft:
    """The draft as it was when it was finished: only the drafter had said something of it."""
    sums = replace(draft.log_sums, self_containment=None, self_containment_tokens=0)
    return replace(draft, scores=Scores(draft=draft.scores.draft), log_sums=sums, verifier_tokens=())


def _verdict(draft: Draft) -> Verdict:
    return Verdict(
        subset_id=draft.subset_id,
        scores=draft.scores,
        log_sums=draft.log_sums,
        verifier_tokens=draft.verifier_tokens,
    )


def _late(trace: Trace) -> Iterator[e.Event]:
    """The decision and the answer."""
    decided = _end(trace, "decide", min(_times(trace.answer_tokens), default=0.0))
    if trace.decision is not None:
        yield e.Decided(at_ms=decided, decision=trace.decision)
    at = decided
    for token in trace.answer_tokens:
        at = max(at, token.at_ms or at)
        yield e.AnswerToken(at_ms=at, text=token.text, logprob=token.logprob)
    if trace.answer is not None:
        steps = ("answer", "fallback", "synthesise")
        yield e.Answered(at_ms=max(_end(trace, step, at) for step in steps), answer=trace.answer)


def _times(tokens: Iterable[TokenLogprob]) -> Iterator[float]:
    return (token.at_ms for token in tokens if token.at_ms is not None)


def _counted(trace: Trace, told: Iterable[e.Event]) -> Iterator[e.Event]:
    """What each role read and wrote; the fold adds by itself what a stopped run had not counted."""
    uncounted = Uncounted()
    for event in told:
        if isinstance(event, e.DraftToken | e.DraftFinished):
            uncounted.see(event)
    stopped = trace.status in ("failed", "cancelled")
    roles: tuple[Role, ...] = ("drafter", "verifier")
    for role in roles:
        usage = trace.usage.drafter if role == "drafter" else trace.usage.verifier
        left = uncounted.left(role) if stopped else 0
        event = e.UsageCounted(
            at_ms=trace.elapsed_ms,
            role=role,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=max(0, usage.completion_tokens - left),
            forward_passes=usage.forward_passes,
        )
        if usage.prompt_tokens or usage.completion_tokens or usage.forward_passes:
            yield event


def _ended(trace: Trace) -> Iterator[e.Event]:
    at = trace.elapsed_ms
    match trace.status:
        case "done":
            yield e.RunFinished(at_ms=at)
        case "failed" if trace.error is not None:
            yield e.RunFailed(at_ms=at, error=trace.error)
        case "cancelled" if trace.error is not None:
            yield e.RunCancelled(at_ms=at, reason=trace.error.message)
        case _:
            pass


def _until(trace: Trace, events: Iterable[e.Event]) -> Iterator[e.Event]:
    """The same with no time after the end."""
    return (replace(event, at_ms=min(event.at_ms, trace.elapsed_ms)) for event in events)


def _end(trace: Trace, name: str, least: float) -> float:
    """When the last span of this name ended, if that was later."""
    ends = (span.end_ms for span in trace.spans if span.name == name and span.end_ms is not None)
    return max([least, *ends])
