"""The first step of a run that goes on a conversation: its follow-up becomes a question that stands alone.

The verifier writes it: everything after works with this one sentence, and the prompt is short. It cannot sink
a run: where its text does not pass, or it cannot write, the follow-up is asked with the key terms of the last
exchange, and the span says how it was done and why.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from specrag.errors import ModelError
from specrag.events import Event, QuestionRewritten, SpanStarted, UsageCounted
from specrag.follow_up import How, bounded, fault, stands_alone, tidied_rewriting, with_terms
from specrag.models.base import Begin, End, LanguageModel, Line, Piece, Read
from specrag.prompts import REWRITE_LABEL, rewrite_conversation
from specrag.sent import read_events
from specrag.timeline import Timeline
from specrag.types import Exchange

TOKENS = 40
"""Enough for a question; one that needs more is not a rewriting."""


class Rewriting:
    """One run's rewriting; `question` is the one to ask once `events` is through."""

    def __init__(
        self,
        model: LanguageModel,
        question: str,
        *,
        earlier: Sequence[Exchange],
        given: str | None,
        limit: int,
        timeline: Timeline,
    ) -> None:
        """A question that is `given` is taken over from another run; `limit` is its length in characters."""
        self._model = model
        self._follow_up = question
        self._earlier = bounded(earlier)
        self._given = given
        self._limit = limit
        self._t = timeline
        self._fault: str | None = None
        self._written = ""
        self.question = question

    async def events(self, parent: SpanStarted) -> AsyncGenerator[Event]:
        """Nothing at all where there is no conversation."""
        if not self._earlier and self._given is None:
            return
        span = self._t.start("rewrite", parent, **({"given": True} if self._given else {}))
        yield span
        how: How = "unchanged"
        if self._given is not None:
            self.question = self._given
        elif not stands_alone(self._follow_up):
            async with aclosing(self._write()) as writing:
                async for event in writing:
                    yield event
            how = self._chosen()
        if self.question != self._follow_up:
            yield QuestionRewritten(at_ms=self._t.now(), question=self.question)
        said = {} if self._given is not None else {"how": how}
        yield self._t.end(span, **said, **({"refused": f"it {self._fault}"} if self._fault else {}))

    def _chosen(self) -> How:
        """The model's text if it passes, the key terms if it does not."""
        text = tidied_rewriting(self._written)
        self._fault = self._fault or fault(text, self._follow_up, self._earlier)
        if self._fault is None and len(text) <= self._limit:
            self.question = text
            return "model"
        named = with_terms(self._follow_up, self._earlier)
        if named == self._follow_up or len(named) > self._limit:
            return "unchanged"
        self.question = named
        return "terms"

    async def _write(self) -> AsyncGenerator[Event]:
        lines = (Line(part="query", max_tokens=TOKENS, label=REWRITE_LABEL, sentences=1),)
        conversation = rewrite_conversation(self._earlier, self._follow_up)
        sent: Begin | None = None
        written = 0
        try:
            async with aclosing(self._model.generate([conversation], lines)) as outputs:
                async for _, output in outputs:
                    match output:
                        case Begin():
                            sent = output
                        case Read() if sent is not None:
                            for event in read_events(sent, self._t, role="verifier", step="rewrite"):
                                yield event
                        case Piece():
                            written += 1
                            self._written += output.text
                        case End():
                            written = output.completion_tokens
                            self._fault = "could not be written" if output.error else None
        except ModelError:
            self._fault = "could not be written"
        if written:
            yield UsageCounted(at_ms=self._t.now(), role="verifier", completion_tokens=written)
