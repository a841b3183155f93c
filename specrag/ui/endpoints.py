"""What a program can call: `/ask`, with the choices of the page and under the same checks."""

import asyncio
from contextlib import aclosing
from typing import Any

import gradio as gr
from gradio.events import api

from specrag.errors import SpecragError, UsageError
from specrag.library.library import SAMPLE, Library
from specrag.library.visitors import Visitor
from specrag.pipelines.base import Request
from specrag.startup import Startup
from specrag.tracing.codec import to_dict
from specrag.tracing.trace import Trace
from specrag.ui.live import TICK_S
from specrag.ui.options import Options, options_of, run_settings
from specrag.ui.who import visitor_of


def wire(startup: Startup) -> None:
    """Named endpoints for programs."""
    usual = options_of(startup.settings)

    async def api_ask(  # noqa: PLR0917 - gradio passes what a program names
        request: gr.Request,
        question: str,
        collection: str = SAMPLE,
        pipeline: str = usual.pipeline,
        decision: str = usual.decision,
        partition: str = usual.partition,
        drafts: int = usual.drafts,
        preset: str = usual.preset,
        focus: bool = usual.focus,
        grounded: bool = usual.grounded,
    ) -> dict[str, Any]:
        """Ask a collection, by its name or title; returns the finished `specrag.trace/1` document.

        Example: `Client(url).predict("Who founded Larkspur Works?", pipeline="standard", api_name="/ask")`.

        `pipeline`: speculative, standard, drafter or multihop; the rest is for speculative runs.
        `decision`: select or synthesise. `partition`: multi-perspective, semantic, disjoint, contiguous or
        random. `drafts`: 1 to 16. `preset` of the score weights: default or paper. `focus`: a draft reads
        only the sentences nearest to the question. `grounded`: the verifier also reads each draft with its
        passages.
        """
        if not startup.state.ready:
            raise gr.Error(startup.state.message, print_exception=False)
        options = Options(
            pipeline=pipeline,
            decision=decision,
            partition=partition,
            drafts=drafts,
            preset=preset,
            focus=focus,
            grounded=grounded,
        )
        try:
            who = visitor_of(request, startup.settings)
            return to_dict(await _finished(startup, who, question, collection, options))
        except SpecragError as error:
            raise gr.Error(str(error), print_exception=False) from error

    api(api_ask, api_name="ask")


async def _finished(
    startup: Startup, who: Visitor, question: object, collection: object, options: Options
) -> Trace:
    """The trace of a run that a program asked for, once it has ended.

    Raises:
        UsageError: what was asked for cannot be a run.
        StoreError: they see no such collection.
    """
    if not isinstance(question, str) or not isinstance(collection, str):
        raise UsageError("The question and the collection are texts.")
    parts = startup.parts
    name, settings = run_settings(parts.settings, options)
    where = await asyncio.to_thread(_readable, parts.library, who, collection)
    request = Request(question=question, collection=where)
    run_id = parts.runs.start(parts.pipeline(name, settings), request)
    trace: Trace | None = None
    async with aclosing(parts.runs.follow(run_id, every_s=TICK_S)) as traces:
        async for newest in traces:
            trace = newest
    if trace is None:
        raise UsageError("The run was stopped before it began.")
    return trace


def _readable(library: Library, who: Visitor, text: str) -> str:
    """The name of a collection that is about to be asked."""
    name = library.find(who, text)
    library.touch(who, name)
    return name
