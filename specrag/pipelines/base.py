"""What every pipeline has in common: the protocol, what it works with, and how a run begins, waits and ends.

A pipeline is an asynchronous iterator of events. Closing it stops the models; an expected error becomes the
run's last event, so a consumer never has to catch anything.
"""

import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from specrag.config import Settings
from specrag.errors import SpecragError, UsageError
from specrag.events import Event, Queued, RunFailed, RunFinished, RunStarted, SpanStarted
from specrag.follow_up import EXCHANGES
from specrag.models.base import LanguageModel
from specrag.partition import Partitioner, name_of
from specrag.pipelines.rewriting import Rewriting
from specrag.retrieval.evidence import EvidenceScorer
from specrag.retrieval.retriever import Retriever
from specrag.timeline import Clock, Timeline
from specrag.turnstile import Place, Turnstile
from specrag.types import (
    Draft,
    ErrorInfo,
    Exchange,
    Parent,
    Passage,
    PipelineName,
    Spot,
    Subset,
    Verdict,
)

_KEPT_ANSWER = 4_000
"""Characters of an earlier answer that a trace keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a run takes over from another one; whatever is here is not made anew."""

    passages: tuple[Passage, ...]
    note: str | None = None
    """What the other run said of its retrieval."""
    rewritten: str | None = None
    """What the other run made of its follow-up, which may be the same; None makes it anew."""
    subsets: tuple[Subset, ...] = ()
    """Empty divides the passages anew."""
    partition_note: str | None = None
    singletons: tuple[str, ...] = ()
    spots: tuple[Spot, ...] = ()
    map_variance: float | None = None
    drafts: tuple[Draft, ...] = ()
    """Empty writes them anew; they belong to `subsets`, in their order."""
    verdicts: tuple[Verdict, ...] = ()
    """Empty verifies the drafts anew; else one for every usable draft."""
    verdict_note: str | None = None
    """What the other run said of its verification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question to one collection, or to some documents of it; its run has an id before anything happens."""

    question: str
    collection: str
    documents: tuple[str, ...] = ()
    """Ids of the documents to look in; empty looks in all."""
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    earlier: tuple[Exchange, ...] = ()
    """The conversation before the question, oldest first; a follow-up is rewritten with it."""
    parent: Parent | None = None
    """The run that this one was forked from."""
    given: Given | None = None
    """What is taken over from another run and not made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a pipeline works with; all pipelines of a process share them, so they differ in method only."""

    retriever: Retriever
    evidence: EvidenceScorer
    drafter: LanguageModel
    verifier: LanguageModel
    settings: Settings
    environment: Mapping[str, Any]
    """What a trace says about the place where it was made."""
    clock: Clock = time.perf_counter
    partitioner: Partitioner | None = None
    """Replaces the strategy of the settings."""
    turnstile: Turnstile | None = None
    """Runs wait here for their turn; None lets every run begin at once."""

    def config(self) -> dict[str, Any]:
        """What a trace says about the settings and the models that were really used."""
        config = self.settings.public()
        config |= {"drafter": self.drafter.info.name, "verifier": self.verifier.info.name}
        if self.partitioner is not None:
            config["partition"] = name_of(self.partitioner)
        return config


class Pipeline(Protocol):
    """A way from a question to an answer."""

    @property
    def name(self) -> PipelineName:
        """The name in traces and on the command line."""
        ...

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """The run as a stream of events, from `RunStarted` to `RunFinished` or `RunFailed`."""
        ...


Steps = Callable[[Timeline, str, SpanStarted], AsyncGenerator[Event]]
"""A pipeline's own part of a run: from the timeline, the checked question and the root span to events."""


def readable(text: str) -> str:
    """Text without NUL and lone surrogates, which neither tokenizers nor stores take."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


def tidied(question: str) -> str:
    """The question as it is asked and kept: readable, and with single spaces between its words."""
    return " ".join(readable(question).split())


def check_question(question: str, *, limit: int) -> str:
    """The question without needless space.

    Raises:
        UsageError: it is empty or too long.
    """
    text = tidied(question)
    if not text:
        raise UsageError("The question is empty; type a question and ask again.")
    if len(text) > limit:
        raise UsageError(
            f"The question has {len(text):,} characters and at most {limit:,} are read; shorten it "
            "and put long texts into a document."
        )
    return text


async def as_run(
    steps: Steps, *, tools: Tools, request: Request, name: PipelineName
) -> AsyncGenerator[Event]:
    """Put `steps` between the first and the last event of a run, under one root span."""
    t = Timeline(tools.clock)
    limit = tools.settings.max_question_characters
    yield RunStarted(
        at_ms=t.now(),
        run_id=request.run_id,
        pipeline=name,
        question=tidied(request.question)[:limit],
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        config=tools.config() | _where(request),
        environment=dict(tools.environment),
        parent=request.parent,
        earlier=tuple(
            Exchange(question=tidied(one.question)[:limit], answer=readable(one.answer)[:_KEPT_ANSWER])
            for one in request.earlier[-EXCHANGES:]
        ),
    )
    try:
        question = check_question(request.question, limit=limit)
        root = t.start("run")
        yield root
        async with AsyncExitStack() as held:  # the models stop before the place is given back
            if tools.turnstile is not None:
                place = await held.enter_async_context(tools.turnstile.place())
                waiting = await held.enter_async_context(aclosing(_queue(place, t, root)))
                async for event in waiting:
                    yield event
            rewriting = _rewriting(tools, request, question, t)
            async for event in await held.enter_async_context(aclosing(rewriting.events(root))):
                yield event
            events = await held.enter_async_context(aclosing(steps(t, rewriting.question, root)))
            async for event in events:
                yield event
        yield t.end(root)
    except SpecragError as error:
        yield RunFailed(at_ms=t.now(), error=ErrorInfo(type=error.kind, message=str(error)))
    else:
        yield RunFinished(at_ms=t.now())


def _rewriting(tools: Tools, request: Request, question: str, t: Timeline) -> Rewriting:
    """How a follow-up is made to stand alone; one that was rewritten before may come from any file."""
    limit = tools.settings.max_question_characters
    given = None if request.given is None else request.given.rewritten
    return Rewriting(
        tools.verifier,
        question,
        earlier=[
            Exchange(question=tidied(one.question), answer=readable(one.answer)) for one in request.earlier
        ],
        given=None if given is None else check_question(given, limit=limit),
        limit=limit,
        timeline=t,
    )


def _where(request: Request) -> dict[str, Any]:
    """Where the run looks, as its trace says it."""
    chosen = {"documents": list(request.documents)} if request.documents else {}
    return {"collection": request.collection, **chosen}


async def _queue(place: Place, t: Timeline, root: SpanStarted) -> AsyncGenerator[Event]:
    """Say how many runs are ahead, whenever that changes; nothing at all if there is room."""
    span: SpanStarted | None = None
    async with aclosing(place.wait()) as waiting:
        async for ahead in waiting:
            if span is None:
                span = t.start("queue", root)
                yield span
            yield Queued(at_ms=t.now(), ahead=ahead)
    if span is not None:
        yield Queued(at_ms=t.now(), ahead=0)
        yield t.end(span)
