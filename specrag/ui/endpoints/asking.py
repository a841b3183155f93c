"""Endpoints that ask a collection: `/ask` for an answer with its trace, `/search` for passages alone."""

import asyncio
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Final

from specrag.build import Parts
from specrag.errors import StoreError, TraceError, UsageError
from specrag.library.library import SAMPLE, documents_of
from specrag.library.visitors import Visitor
from specrag.pipelines.base import Pipeline, Request, check_question
from specrag.tracing.codec import to_dict
from specrag.tracing.trace import Trace
from specrag.types import (
    DecisionMode,
    Exchange,
    PartitionName,
    PipelineName,
    PresetName,
)
from specrag.ui.endpoints.leaving import LEFT, has_left
from specrag.ui.live import TICK_S
from specrag.ui.options import Options, options_of, run_settings

MOST_PASSAGES: Final = 50


async def ask(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    question: str,
    collection: str = SAMPLE,
    pipeline: PipelineName = "speculative",
    decision: DecisionMode | None = None,
    partition: PartitionName | None = None,
    drafts: int | None = None,
    preset: PresetName | None = None,
    focus: bool | None = None,
    grounded: bool | None = None,
    documents: list[str] | None = None,
    earlier: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """Ask a collection, by its name or title; returns the finished `specrag.trace/1` document.

    Example: `Client(url).predict("Who founded Larkspur Works?", pipeline="standard", api_name="/ask")`.

    `pipeline`: speculative, standard, drafter or multihop; the rest is for speculative runs, and what is left
    out is as the server was started. `decision`: select or synthesise. `partition`: multi-perspective,
    semantic, disjoint, contiguous or random. `drafts`: 1 to 16. `preset` of the score weights: default or
    paper. `focus`: a draft reads only the sentences nearest to the question. `grounded`: the verifier also
    reads each draft with its passages. `documents`: ids of the documents to look in; all without it.
    `earlier`: the conversation before it, oldest first, as `[{"question": ..., "answer": ...}]`. A program
    that closes its connection stops the run, which is kept as far as it came.
    """
    usual = options_of(parts.settings)
    options = Options(
        pipeline=pipeline,
        decision=usual.decision if decision is None else decision,
        partition=usual.partition if partition is None else partition,
        drafts=usual.drafts if drafts is None else drafts,
        preset=usual.preset if preset is None else preset,
        focus=usual.focus if focus is None else focus,
        grounded=usual.grounded if grounded is None else grounded,
    )
    name, settings = run_settings(parts.settings, options)
    where, only = await asyncio.to_thread(scope, parts, who, collection, documents or [])
    request = Request(
        question=question, collection=where, documents=only, earlier=_exchanges(earlier or [], parts)
    )
    return to_dict(await finished(parts, who, parts.pipeline(name, settings), request))


def search(  # noqa: PLR0917 - gradio passes what a program names
    parts: Parts,
    who: Visitor,
    question: str,
    collection: str = SAMPLE,
    limit: int = 8,
    documents: list[str] | None = None,
) -> dict[str, Any]:
    """Find the passages that match a question best; no model writes anything.

    Example: `Client(url).predict("Who founded Larkspur Works?", limit=3, api_name="/search")["passages"]`.

    Returns `passages`, best first, each with `text`, `title`, `source`, `page`, `published_at` and `score`,
    and a `note` on how well they match, if there is something to say. `limit`: 1 to 50.
    """
    if not 1 <= limit <= MOST_PASSAGES:
        raise UsageError(f"The limit lies between 1 and {MOST_PASSAGES}, and {limit} does not.")
    where, only = scope(parts, who, collection, documents or [])
    asked = check_question(question, limit=parts.settings.max_question_characters)
    if not parts.retriever.holds(where):
        return {"passages": [], "note": "The collection has no documents yet."}
    found = parts.retriever.retrieve(asked, where, limit, documents=only or None)
    return {"passages": [asdict(passage) for passage in found.passages], "note": found.note}


ENDPOINTS: Final = (ask, search)


def scope(parts: Parts, who: Visitor, collection: str, documents: list[str]) -> tuple[str, tuple[str, ...]]:
    """The name of a collection that is about to be asked, and those documents of it that are there.

    Raises:
        StoreError: they see no such collection, or nothing is left of the documents.
    """
    name = parts.library.find(who, collection)
    parts.library.touch(who, name)
    there = {item.id for item in documents_of(parts.store, name)} if documents else set()
    only = tuple(identity for identity in dict.fromkeys(documents) if identity in there)
    if documents and not only:
        raise StoreError("There are no such documents in this collection; /documents lists those there are.")
    return name, only


async def finished(parts: Parts, who: Visitor, pipeline: Pipeline, request: Request) -> Trace:
    """The trace of a run that a program asked for, once it has ended; if the program leaves, it is stopped.

    Raises:
        TraceError: the run was stopped before it began.
    """
    run_id = parts.runs.start(pipeline, request, owner=who.owner or "")
    trace: Trace | None = None
    try:
        async with aclosing(parts.runs.follow(run_id, every_s=TICK_S)) as traces:
            async for newest in traces:
                trace = newest
                if await has_left():
                    await parts.runs.stop(run_id, reason=LEFT)
    except asyncio.CancelledError:
        parts.runs.give_up(run_id, reason=LEFT)
        raise
    if trace is None:
        raise TraceError("The run was stopped before it began; ask again.")
    return trace


def _exchanges(earlier: list[dict[str, str]], parts: Parts) -> tuple[Exchange, ...]:
    """The conversation before a question.

    Raises:
        UsageError: an exchange is not a question and an answer, or too long.
    """
    longest = parts.settings.max_question_characters
    for exchange in earlier:
        if exchange.keys() != {"question", "answer"} or max(map(len, exchange.values())) > longest:
            raise UsageError(
                f"Each exchange of earlier has a question and an answer of at most {longest:,} characters."
            )
    return tuple(Exchange(**exchange) for exchange in earlier[-_EARLIER:])


_EARLIER: Final = 3
"""Exchanges that a follow-up is understood with."""
