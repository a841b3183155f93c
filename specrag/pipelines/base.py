"""What every pipeline has in common: the protocol, the checks of a question, and how a run begins and ends.

A pipeline is an asynchronous iterator of events. Closing it stops the models; an expected error becomes the
run's last event, so a consumer never has to catch anything.
"""

import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from specrag.errors import SpecragError, UsageError
from specrag.events import Event, RunFailed, RunFinished, RunStarted
from specrag.timeline import Clock, Timeline
from specrag.types import ErrorInfo, PipelineName


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question to one collection; its run has an id before anything happens."""

    question: str
    collection: str
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])


class Pipeline(Protocol):
    """A way from a question to an answer."""

    @property
    def name(self) -> PipelineName:
        """The name in traces and on the command line."""
        ...

    def run(self, request: Request) -> AsyncGenerator[Event]:
        """The run as a stream of events, from `RunStarted` to `RunFinished` or `RunFailed`."""
        ...


def readable(text: str) -> str:
    """Text without NUL and lone surrogates, which neither tokenizers nor stores take."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


def check_question(question: str, *, limit: int) -> str:
    """The question without surrounding space.

    Raises:
        UsageError: it is empty or too long.
    """
    text = " ".join(readable(question).split())
    if not text:
        raise UsageError("The question is empty; type a question and ask again.")
    if len(text) > limit:
        raise UsageError(
            f"The question has {len(text):,} characters and at most {limit:,} are read; shorten it "
            "and put long texts into a document."
        )
    return text


async def as_run(
    steps: Callable[[Timeline, str], AsyncGenerator[Event]],
    *,
    request: Request,
    name: PipelineName,
    clock: Clock,
    question_limit: int,
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> AsyncGenerator[Event]:
    """Put `steps` between the first and the last event of a run, under one root span."""
    timeline = Timeline(clock)
    shown = readable(request.question[:question_limit])
    yield RunStarted(
        at_ms=timeline.now(),
        run_id=request.run_id,
        pipeline=name,
        question=shown,
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        config={**config, "collection": request.collection},
        environment=dict(environment),
    )
    try:
        question = check_question(request.question, limit=question_limit)
        async with aclosing(steps(timeline, question)) as events:
            async for event in events:
                yield event
    except SpecragError as error:
        yield RunFailed(at_ms=timeline.now(), error=ErrorInfo(type=error.kind, message=str(error)))
    else:
        yield RunFinished(at_ms=timeline.now())
