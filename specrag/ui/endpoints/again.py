"""Endpoints that take a run further: decide it again, run it again from a step, compare pipelines."""

import asyncio
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Final

from specrag.build import Parts
from specrag.config import Settings
from specrag.errors import TraceError
from specrag.fairness import Wanted
from specrag.forking import fork as forked
from specrag.forking import settings_of
from specrag.library.library import SAMPLE
from specrag.library.visitors import Visitor
from specrag.overrides import for_one_run
from specrag.race import Race
from specrag.redecide import decide_again
from specrag.tracing.codec import to_dict
from specrag.tracing.trace import Trace
from specrag.types import PipelineName, StepName
from specrag.ui.endpoints.asking import finished, scope
from specrag.ui.endpoints.leaving import LEFT, has_left
from specrag.ui.live import TICK_S
from specrag.ui.scope import fork_scope


def what_if(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    run_id: str,
    weights: dict[str, float] | None = None,
    threshold: float | None = None,
    pool: bool | None = None,
    drafts: int | None = None,
) -> dict[str, Any]:
    """A run as it would have been decided under other settings; no model runs, and nothing is kept.

    Example: `Client(url).predict("1c0ffee15bad", {"relevance": 0.0}, api_name="/what_if")["decision"]`.

    `weights` of draft, self_containment, self_reflection, grounded and relevance; those that are left out are
    as in the run. `threshold`: 0 to 1. `pool`: whether equal answers add up. `drafts`: the first so many.
    """
    trace = parts.history.trace(who, run_id)
    return to_dict(
        decide_again(
            trace,
            weights=None if weights is None else _settings(parts, trace, {"weights": weights}).weights,
            threshold=threshold,
            pool=pool,
            drafts=drafts,
        )
    )


async def fork(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    run_id: str,
    step: StepName,
    question: str | None = None,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Run again from a step on, with what came before it taken over; returns the trace of the new run.

    Example: `Client(url).predict("1c0ffee15bad", "partition", settings={"drafts": 2}, api_name="/fork")`.

    `step`: retrieve, partition, draft, verify or decide. `question`: another one, from retrieve on only.
    `settings`: those that differ from the first run, as partition, drafts, passages_per_draft, seed,
    decision, preset, weights or threshold. A program that closes its connection stops the run.
    """
    trace = await asyncio.to_thread(parts.history.trace, who, run_id)
    request = forked(trace, step, question=question)
    request = await asyncio.to_thread(fork_scope, parts, who, request, trace.pipeline)
    pipeline = parts.pipeline(trace.pipeline, _settings(parts, trace, settings or {}))
    return to_dict(await finished(parts, who, pipeline, request))


async def compare(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    question: str,
    pipelines: list[PipelineName],
    collection: str = SAMPLE,
    documents: list[str] | None = None,
) -> dict[str, Any]:
    """Answer a question with two to four pipelines on the same passages, one after the other.

    Example: `Client(url).predict("Who founded it?", ["standard", "speculative"], api_name="/compare")`.

    Returns the comparison, whose `id` opens it on the page, and its `runs` as traces in the same order as its
    `pipelines`; a run that was not begun is null. A program that closes its connection stops the comparison,
    which is kept as far as it came.
    """
    where, only = await asyncio.to_thread(scope, parts, who, collection, documents or [])
    wanted = Wanted(question=question, collection=where, documents=only, pipelines=pipelines)
    identity = await parts.comparisons.start(who, wanted, parts.settings)
    last: Race | None = None
    try:
        async with aclosing(parts.comparisons.follow(who, identity, every_s=TICK_S)) as races:
            async for race in races:
                last = race
                if await has_left():
                    await parts.comparisons.stop(who, identity, reason=LEFT)
    except asyncio.CancelledError:
        parts.comparisons.give_up(who, identity, reason=LEFT)
        raise
    return _compared(last)


async def comparison(parts: Parts, who: Visitor, comparison_id: str) -> dict[str, Any]:
    """A comparison as it is now, as `/compare` returns it.

    Example: `Client(url).predict("1c0ffee15bad", api_name="/comparison")["status"]`.
    """
    async with aclosing(parts.comparisons.follow(who, comparison_id, every_s=TICK_S)) as races:
        return _compared(await anext(races, None))


async def delete_comparison(parts: Parts, who: Visitor, comparison_id: str) -> None:
    """Forget a comparison, and stop it if it is under way; its runs stay.

    Example: `Client(url).predict("1c0ffee15bad", api_name="/delete_comparison")`.
    """
    await parts.comparisons.delete(who, comparison_id)


ENDPOINTS: Final = (what_if, fork, compare, comparison, delete_comparison)


def _compared(race: Race | None) -> dict[str, Any]:
    """A comparison with its runs; whose it is stays here."""
    if race is None:
        raise TraceError("The comparison was stopped before it began; compare again.")
    told = {name: value for name, value in asdict(race.comparison).items() if name != "owner"}
    return {**told, "runs": [trace and to_dict(trace) for trace in race.traces]}


def _settings(parts: Parts, trace: Trace, given: dict[str, Any]) -> Settings:
    """The settings of a run with some replaced. Weights may be given in part; a preset brings all of them.

    Raises:
        UsageError: a name is unknown, or a value is out of range.
    """
    before = settings_of(trace)
    if "preset" in given:
        before.pop("weights", None)
    elif isinstance(given.get("weights"), dict):
        given = {**given, "weights": {**before.get("weights", {}), **given["weights"]}}
    return for_one_run(parts.settings, {**before, **given})
