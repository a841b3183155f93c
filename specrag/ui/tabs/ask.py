"""The Ask tab: a question, the draft board that fills while it is answered, and the answer.

The run itself lives on the server (`runs.py`); this tab starts one, follows it by its id, and can follow it
again after a reload, since the id is part of the address (`?run=`).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.events import api

from specrag.errors import SpecragError
from specrag.library import OWN, SAMPLE, documents_of
from specrag.pipelines.base import Request
from specrag.sample import questions
from specrag.startup import Startup
from specrag.tracing.codec import to_dict
from specrag.tracing.trace import Trace
from specrag.ui import cards
from specrag.ui.figures import waterfall

TICK_S = 0.25
"""How often a page that follows a run is told what is new."""
REMEMBER_RUN = """(id) => {
  if (!id) return;
  const url = new URL(window.location);
  url.searchParams.set("run", id);
  window.history.replaceState(null, "", url);
}"""

Updates = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTab:
    """The components that events read and write."""

    question: gr.Textbox
    collection: gr.Dropdown
    ask: gr.Button
    stop: gr.Button
    examples: gr.Column
    example_buttons: tuple[gr.Button, ...]
    run_id: gr.Textbox
    status: gr.HTML
    answer: gr.HTML
    passages: gr.HTML
    colour: gr.Radio
    board: gr.HTML
    timeline: gr.HTML
    plot: gr.Plot

    @property
    def live(self) -> list[Any]:
        """What a run writes to, in the order of `_Show.updates`."""
        return [
            self.run_id,
            self.ask,
            self.stop,
            self.status,
            self.answer,
            self.passages,
            self.colour,
            self.board,
            self.timeline,
            self.plot,
        ]


def build(startup: Startup) -> AskTab:
    """Lay the tab out."""
    settings = startup.settings
    with gr.Row(elem_id="sr-question-row"):
        question = gr.Textbox(
            placeholder="Ask a question about the documents",
            label="Question",
            show_label=False,
            lines=1,
            max_lines=6,
            max_length=settings.max_question_characters + 1,
            elem_id="sr-question",
            scale=6,
            autofocus=True,
        )
        stop = gr.Button("Stop", elem_id="sr-stop", interactive=False, scale=0, min_width=88)
        ask = gr.Button("Ask", variant="primary", elem_id="sr-ask", scale=0, min_width=88)
    with gr.Row(elem_id="sr-scope-row"):
        collection = gr.Dropdown(
            choices=[("Sample: Larkspur 3 cargo bike", SAMPLE), ("Your documents", OWN)],
            value=SAMPLE,
            label="Collection",
            elem_id="sr-collection",
            scale=0,
            min_width=260,
        )
        with gr.Column(elem_id="sr-examples", scale=1) as examples:
            buttons = tuple(
                gr.Button(item.question, size="sm", elem_classes="sr-example") for item in questions()
            )
    run_id = gr.Textbox(visible="hidden", elem_id="sr-run-id", label="Run")
    status = gr.HTML(cards.status_line(None, idle="Starting."), elem_id="sr-status", apply_default_css=False)
    answer = gr.HTML(elem_id="sr-answer", apply_default_css=False)
    passages = gr.HTML(elem_id="sr-passages", apply_default_css=False)
    colour = gr.Radio(
        choices=[
            ("No colours", "none"),
            ("Drafter's probability", "drafter"),
            ("Verifier's probability", "verifier"),
        ],
        value="none",
        label="Colour the tokens by",
        elem_id="sr-colour",
        visible=False,
    )
    board = gr.HTML(elem_id="sr-board", apply_default_css=False)
    timeline = gr.HTML(elem_id="sr-timeline", apply_default_css=False)
    plot = gr.Plot(visible=False, elem_id="sr-plot", label="Waterfall", show_label=False)
    return AskTab(
        question=question,
        collection=collection,
        ask=ask,
        stop=stop,
        examples=examples,
        example_buttons=buttons,
        run_id=run_id,
        status=status,
        answer=answer,
        passages=passages,
        colour=colour,
        board=board,
        timeline=timeline,
        plot=plot,
    )


def wire(page: gr.Blocks, tab: AskTab, startup: Startup, top: gr.HTML) -> None:
    """Connect the tab's events."""

    async def on_ask(question: str, collection: str, colour: str) -> AsyncGenerator[Updates]:
        show = _Show(colour)
        if not startup.state.ready:
            yield show.notice(startup.state.message)
            return
        request = Request(question=question, collection=collection)
        run_id = startup.parts.runs.start(startup.parts.speculative, request)
        async with aclosing(_follow(startup, run_id, show)) as updates:
            async for update in updates:
                yield update

    async def on_load(request: gr.Request) -> AsyncGenerator[Updates]:
        show = _Show("none")
        async with aclosing(_startup_progress(startup, show)) as updates:
            async for update in updates:
                yield update
        run_id = str(request.query_params.get("run", ""))[:40]
        if run_id and startup.state.ready:
            async with aclosing(_follow(startup, run_id, show)) as updates:
                async for update in updates:
                    yield update

    async def on_stop(run_id: str) -> None:
        if startup.state.ready:
            await startup.parts.runs.stop(run_id)

    async def on_colour(run_id: str, colour: str) -> Any:
        if not run_id or not startup.state.ready:
            return gr.skip()
        async with aclosing(startup.parts.runs.follow(run_id, every_s=TICK_S)) as traces:
            async for trace in traces:
                return cards.board(trace, colour=_colour(colour))
        return gr.skip()

    def on_collection(collection: str) -> tuple[Any, str]:
        return gr.update(visible=collection == SAMPLE), header(startup, collection)

    asking: dict[str, Any] = {
        "fn": on_ask,
        "inputs": [tab.question, tab.collection, tab.colour],
        "outputs": tab.live,
        "show_progress": "hidden",
        "api_visibility": "private",
    }
    tab.ask.click(**asking)
    tab.question.submit(**asking)
    for button in tab.example_buttons:
        button.click(
            lambda text: text, button, tab.question, show_progress="hidden", api_visibility="private"
        ).then(**asking)
    tab.stop.click(on_stop, tab.run_id, None, show_progress="hidden", api_visibility="private")
    tab.run_id.change(None, tab.run_id, None, js=REMEMBER_RUN, api_visibility="private")
    tab.colour.input(
        on_colour, [tab.run_id, tab.colour], tab.board, show_progress="hidden", api_visibility="private"
    )
    tab.collection.change(
        on_collection,
        tab.collection,
        [tab.examples, top],
        show_progress="hidden",
        api_visibility="private",
    )
    page.load(on_load, None, tab.live, show_progress="hidden", api_visibility="private").then(
        on_collection,
        tab.collection,
        [tab.examples, top],
        show_progress="hidden",
        api_visibility="private",
    )


def wire_api(startup: Startup) -> None:
    """Named endpoints for programs."""

    async def api_ask(question: str, collection: str = SAMPLE) -> dict[str, Any]:
        """Ask a collection; returns the finished `specrag.trace/1` document."""
        if not startup.state.ready:
            raise gr.Error(startup.state.message)
        request = Request(question=question, collection=collection)
        run_id = startup.parts.runs.start(startup.parts.speculative, request)
        trace: Trace | None = None
        async with aclosing(startup.parts.runs.follow(run_id, every_s=TICK_S)) as traces:
            async for trace in traces:
                pass
        return {} if trace is None else to_dict(trace)

    api(api_ask, api_name="ask")


def header(startup: Startup, collection: str) -> str:
    """The top of the page; who drafts and who verifies joins the name once the models are loaded."""
    models = ""
    if startup.state.ready:
        parts = startup.parts
        known = documents_of(parts.store, collection)
        chunks = sum(item.chunks for item in known)
        models = cards.models_line(parts.drafter.info, parts.verifier.info, collection, len(known), chunks)
    brand = '<h1 class="sr-brand">spec<span>rag</span></h1>'
    return f'<header class="sr sr-header">{brand}{models}</header>'


class _Show:
    """Turns traces into updates of `AskTab.live`, sending only what has changed."""

    def __init__(self, colour: str) -> None:
        self._colour = _colour(colour)
        self._sent: dict[str, object] = {}

    def trace(self, trace: Trace) -> Updates:
        running = trace.status == "running"
        return self._updates(
            run_id=trace.run_id,
            ask=("interactive", not running),
            stop=("interactive", running),
            status=cards.status_line(trace),
            answer=cards.answer_card(trace),
            passages=cards.passages_strip(trace) if trace.passages else "",
            colour=("visible", not running and bool(trace.drafts)),
            board=cards.board(trace, colour="none" if running else self._colour),
            timeline=cards.timeline(trace),
            plot=None if running or not trace.spans else trace,
        )

    def loading(self, fraction: float | None, message: str) -> Updates:
        return self._updates(
            status=cards.status_line(None, idle=message),
            answer=cards.loading(fraction, message),
            ask=("interactive", False),
        )

    def failed(self, message: str) -> Updates:
        return self._updates(status=cards.status_line(None, idle=""), answer=cards.notice("error", message))

    def notice(self, message: str) -> Updates:
        return self._updates(status=cards.status_line(None, idle=message))

    def idle(self) -> Updates:
        empty = cards.empty_state(
            "Watch it think",
            "Ask a question about the documents: four drafts are written side by side from different passages, "
            "a verifier reads them in one pass, and the best one is the answer.",
        )
        return self._updates(
            status=cards.status_line(None),
            answer=empty,
            ask=("interactive", True),
            stop=("interactive", False),
        )

    def _updates(self, **values: object) -> Updates:
        names = (
            "run_id",
            "ask",
            "stop",
            "status",
            "answer",
            "passages",
            "colour",
            "board",
            "timeline",
            "plot",
        )
        return tuple(self._update(name, values[name]) if name in values else gr.skip() for name in names)

    def _update(self, name: str, value: object) -> Any:
        if name in self._sent and self._sent[name] == value:
            return gr.skip()
        self._sent[name] = value
        match value:
            case ("interactive", bool() as setting):
                return gr.update(interactive=setting)
            case ("visible", bool() as setting):
                return gr.update(visible=setting)
            case Trace():
                return gr.update(value=waterfall(value), visible=True)
            case None:
                return gr.update(value=None, visible=False)
            case _:
                return value


async def _follow(startup: Startup, run_id: str, show: _Show) -> AsyncGenerator[Updates]:
    try:
        async with aclosing(startup.parts.runs.follow(run_id, every_s=TICK_S)) as traces:
            async for trace in traces:
                yield show.trace(trace)
    except SpecragError as error:
        yield show.failed(str(error))


async def _startup_progress(startup: Startup, show: _Show) -> AsyncGenerator[Updates]:
    while not (state := startup.state).ready:
        if state.failed:
            yield show.failed(state.message)
            return
        yield show.loading(state.fraction, state.message)
        await asyncio.to_thread(startup.wait, TICK_S)
    yield show.idle()


def _colour(value: str) -> cards.Colour:
    return "drafter" if value == "drafter" else "verifier" if value == "verifier" else "none"
