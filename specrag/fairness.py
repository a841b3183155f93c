"""What makes a comparison fair on one machine: passages that are found once, warm models, and an order.

Models in this process share its cores, so two runs at once would each be slower by what the other computes,
and not equally. So they run one after the other, and what they have in common is done before the first, in
the line of the models and under the deadline as if it were a run.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final, get_args

from specrag.errors import SpecragError, TransientError, UsageError
from specrag.events import PassagesRetrieved
from specrag.models.base import Conversation, LanguageModel, Line, Segment, Turn
from specrag.pipelines.base import Given, Request, Tools
from specrag.pipelines.steps import Retrieval
from specrag.timeline import Timeline
from specrag.types import ModelInfo, PipelineName

FEWEST: Final = 2
COLUMNS: Final[tuple[PipelineName, ...]] = ("standard", "drafter", "multihop", "speculative")
"""The pipelines in the order of their columns."""
_HERE: Final = frozenset({"cpu", "cuda", "mps", "none"})
"""Where a model computes that is in this process; behind a server, its device says which."""
_WARM_UP: Final = Conversation(
    turns=(Turn(role="user", segments=(Segment(text="Say one word, so that the weights are in memory."),)),)
)
_WARM_UP_TOKENS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be compared; nothing is checked yet."""

    question: str
    collection: str
    documents: tuple[str, ...] = ()
    pipelines: Sequence[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What all runs of a comparison begin with."""

    given: Given
    took_ms: float


def lineup(chosen: Sequence[object]) -> tuple[PipelineName, ...]:
    """The chosen pipelines in the order of their columns.

    Raises:
        UsageError: there are fewer than two, or one is unknown.
    """
    known = get_args(PipelineName)  # a tuple: what was sent may be anything, also what has no hash
    unknown = next((name for name in chosen if name not in known), None)
    if unknown is not None:
        raise UsageError(
            f"There is no pipeline “{str(unknown)[:40]}”; choose among {', '.join(get_args(PipelineName))}."
        )
    names = tuple(name for name in COLUMNS if name in chosen)
    if len(names) < FEWEST:
        raise UsageError("Choose at least two pipelines to compare.")
    return names


def order_note(drafter: ModelInfo, verifier: ModelInfo) -> str:
    """Why the runs go one after the other."""
    if _is_here(drafter) or _is_here(verifier):
        return "the models compute in one process, and two runs at once would slow each other down"
    return (
        "runs at once would share the servers' batches and slow each other down; where servers keep prompts "
        "that they have read, a later run may read the same passages faster"
    )


@asynccontextmanager
async def turn(tools: Tools) -> AsyncGenerator[None]:
    """A place in the line of the models, once it is there, for no longer than a run may take.

    Raises:
        TransientError: what is done within takes longer; the wait for the place does not count.
    """
    limit_s = tools.settings.deadline_s
    async with AsyncExitStack() as held:
        if tools.turnstile is not None:
            place = await held.enter_async_context(tools.turnstile.place())
            async for _ in await held.enter_async_context(aclosing(place.wait())):
                continue
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise TransientError(
                f"Warming the models up and finding the passages took longer than {limit_s:g} s and was "
                "stopped (SPECRAG_DEADLINE_S); compare again."
            ) from None


async def warm_up(tools: Tools) -> None:
    """Let both models write a word, so that the first run does not pay for cold weights or connections."""
    for model in {id(model): model for model in (tools.drafter, tools.verifier)}.values():
        try:
            await _write(model)
        except SpecragError:
            continue  # a model that cannot write tells so in its run, where the sentence is shown


async def find_passages(tools: Tools, request: Request) -> Found:
    """The passages that every run takes over, with the time that it took to find them.

    Raises:
        SpecragError: nothing can be found.
    """
    timeline = Timeline(tools.clock)
    root = timeline.start("compare")
    given = Given(passages=())
    async with aclosing(Retrieval(tools, timeline, request).events(request.question, root)) as events:
        async for event in events:
            if isinstance(event, PassagesRetrieved):
                given = Given(passages=event.passages, note=event.note)
    return Found(given=given, took_ms=timeline.now())


def _is_here(model: ModelInfo) -> bool:
    return model.device.partition(":")[0] in _HERE


async def _write(model: LanguageModel) -> None:
    lines = (Line(part="answer", max_tokens=_WARM_UP_TOKENS),)
    async with aclosing(model.generate([_WARM_UP], lines)) as outputs:
        async for _ in outputs:
            pass
