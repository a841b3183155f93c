"""The fallback: no draft is good enough, so the verifier answers afresh from all passages.

A verifier that cannot write does not sink a run that has an answer, however weak: the best draft stands, and
the reason says why.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from specrag.decide import Ruling, decide, in_contest
from specrag.errors import ModelError
from specrag.events import Answered, Decided, Event, SpanStarted
from specrag.pipelines.base import Tools
from specrag.pipelines.steps import answer_from_all
from specrag.timeline import Timeline
from specrag.types import Passage


async def fall_back(
    tools: Tools,
    timeline: Timeline,
    ruling: Ruling,
    *,
    question: str,
    passages: Sequence[Passage],
    parent: SpanStarted,
) -> AsyncGenerator[Event]:
    """Stream the verifier's own answer after a "fallback" `ruling`; the last event is `Answered`.

    Raises:
        ModelError: the verifier cannot write it, and no draft holds an answer.
    """
    answering = answer_from_all(tools, timeline, question, passages, parent, decision=ruling.decision)
    try:
        async with aclosing(answering):
            async for event in answering:
                yield event
    except ModelError as error:
        if not in_contest(ruling.drafts):
            raise
        stands = best_stands(ruling, passages, tools=tools, error=str(error))
        yield Decided(at_ms=timeline.now(), decision=stands.decision)
        if stands.answer is not None:
            yield Answered(at_ms=timeline.now(), answer=stands.answer)


def best_stands(ruling: Ruling, passages: Sequence[Passage], *, tools: Tools, error: str) -> Ruling:
    """The ruling without a threshold, after `error` kept the verifier from answering."""
    settings = tools.settings
    best = decide(
        ruling.drafts,
        weights=settings.weights,
        threshold=0.0,
        pool=settings.pool,
        passages=passages,
        newer_within=settings.newer_within,
    )
    reason = (
        f"{ruling.decision.reason} It could not ({error.rstrip('.')}), so the best draft stands. "
        f"{best.decision.reason}"
    )
    return replace(best, decision=replace(best.decision, reason=reason))
