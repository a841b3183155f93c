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

from specrag.errors import SpecragError
from specrag.library.library import OWN, SAMPLE, documents_of
from specrag.library.shelves import OWN_TITLE, SAMPLE_TITLE
from specrag.library.visitors import Visitor
from specrag.pipelines.base import Request, check_question
from specrag.runs import REPLACED
from specrag.sample import questions
from specrag.startup import Startup
from specrag.ui import cards
from specrag.ui.choice import Choice
from specrag.ui.live import COLOURS, NAMES, TICK_S, Show, Updates, colour_of, follow, header, startup_progress
from specrag.ui.options import run_settings
from specrag.ui.scope import document_choices, scope_of
from specrag.ui.tabs import how
from specrag.ui.who import visitor_of

REMEMBER_RUN = """(id) => {
  if (!id) return;
  const url = new URL(window.location);
  url.searchParams.set("run", id);
  window.history.replaceState(null, "", url);
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTab:
    """The components that events read and write."""

    question: gr.Textbox
    collection: Choice
    only: Choice
    ask: gr.Button
    stop: gr.Button
    examples: gr.Column
    example_buttons: tuple[gr.Button, ...]
    how: how.HowPanel
    run_id: gr.Textbox
    own_run: gr.State
    status: gr.HTML
    answer: gr.HTML
    passages: gr.HTML
    colour: gr.Radio
    board: gr.HTML
    timeline: gr.HTML
    waterfall: gr.Accordion
    plot: gr.Plot

    @property
    def live(self) -> list[Any]:
        """What a run writes to, in the order of `live.NAMES`."""
        return [getattr(self, name) for name in NAMES]


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
        collection = Choice(
            choices=[(SAMPLE_TITLE, SAMPLE), (OWN_TITLE, OWN)],
            value=SAMPLE,
            label="Collection",
            elem_id="sr-collection",
            scale=0,
            min_width=260,
        )
        only = Choice(
            choices=[],
            value=[],
            multiselect=True,
            label="Only these documents (none: all)",
            elem_id="sr-only",
            scale=0,
            min_width=260,
        )
        with gr.Column(elem_id="sr-examples", scale=1) as examples:
            buttons = tuple(
                gr.Button(item.question, size="sm", elem_classes="sr-example") for item in questions()
            )
    panel = how.build(settings)
    run_id = gr.Textbox(visible="hidden", elem_id="sr-run-id", label="Run")
    own_run = gr.State("")
    status = gr.HTML(cards.status_line(None, idle="Starting."), elem_id="sr-status", apply_default_css=False)
    answer = gr.HTML(elem_id="sr-answer", apply_default_css=False)
    passages = gr.HTML(elem_id="sr-passages", apply_default_css=False)
    colour = gr.Radio(
        choices=list(COLOURS),
        value="none",
        label="Colour the tokens by",
        elem_id="sr-colour",
        visible=False,
    )
    board = gr.HTML(elem_id="sr-board", apply_default_css=False)
    timeline = gr.HTML(elem_id="sr-timeline", apply_default_css=False)
    with gr.Accordion(
        "Waterfall: every span, to hover and zoom", visible=False, elem_id="sr-waterfall"
    ) as waterfall:
        plot = gr.Plot(elem_id="sr-plot", label="Waterfall", show_label=False)
    return AskTab(
        question=question,
        collection=collection,
        only=only,
        ask=ask,
        stop=stop,
        examples=examples,
        example_buttons=buttons,
        how=panel,
        run_id=run_id,
        own_run=own_run,
        status=status,
        answer=answer,
        passages=passages,
        colour=colour,
        board=board,
        timeline=timeline,
        waterfall=waterfall,
        plot=plot,
    )


def wire(page: gr.Blocks, tab: AskTab, startup: Startup, top: gr.HTML) -> None:
    """Connect the tab's events."""
    events = _Events(startup)
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    loading = page.load(events.load, None, tab.live, **quiet)
    asking: dict[str, Any] = {
        "fn": events.ask,
        "inputs": [tab.question, tab.collection, tab.only, tab.colour, tab.own_run, *tab.how.inputs],
        "outputs": tab.live,
        "cancels": loading,  # a run that the page followed by its link no longer writes to it
        "trigger_mode": "multiple",  # a new question replaces the one that is being answered
        **quiet,
    }
    scope: dict[str, Any] = {
        "fn": events.choose,
        "inputs": tab.collection,
        "outputs": [tab.examples, top, tab.only],
        **quiet,
    }
    tab.ask.click(**asking)
    tab.question.submit(**asking)
    for button in tab.example_buttons:
        button.click(lambda text: text, button, tab.question, **quiet).then(**asking)
    tab.stop.click(events.stop, tab.run_id, None, **quiet)
    tab.run_id.change(None, tab.run_id, None, js=REMEMBER_RUN, api_visibility="private")
    tab.colour.input(events.recolour, [tab.run_id, tab.colour], [tab.answer, tab.board], **quiet)
    how.wire(tab.how)
    tab.collection.change(**scope)
    loading.then(**scope)


class _Events:
    """What happens when a visitor does something; all of them go through the run's id."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup

    async def ask(  # noqa: PLR0917 - gradio passes the inputs in their order
        self,
        request: gr.Request,
        question: str,
        collection: object,
        only: object,
        colour: str,
        own_run: str,
        *chosen: Any,
    ) -> AsyncGenerator[Updates]:
        """Start a run and follow it; a run of this page that still goes on is stopped first."""
        show = Show(colour)
        if not self._startup.state.ready:
            yield show.notice(self._startup.state.message)
            return
        parts = self._startup.parts
        try:
            who = visitor_of(request, parts.settings)
            where, documents = await asyncio.to_thread(scope_of, parts, who, collection, only)
            check_question(question or "", limit=parts.settings.max_question_characters)
            name, settings = run_settings(parts.settings, how.options_from(chosen))
        except SpecragError as error:
            yield show.failed(str(error))
            return
        await parts.runs.stop(own_run, reason=REPLACED)
        asked = Request(question=question, collection=where, documents=documents)
        run_id = parts.runs.start(parts.pipeline(name, settings), asked)
        async with aclosing(follow(self._startup, run_id, show)) as updates:
            async for update in updates:
                yield update

    async def load(self, request: gr.Request) -> AsyncGenerator[Updates]:
        show = Show("none")
        if self._startup.state.failed:
            self._startup.begin()  # a visitor who comes again tries again
        async with aclosing(startup_progress(self._startup, show)) as updates:
            async for update in updates:
                yield update
        run_id = str(request.query_params.get("run", ""))[:40]
        if run_id and self._startup.state.ready:
            show = Show("none", opened=True)
            async with aclosing(follow(self._startup, run_id, show)) as updates:
                async for update in updates:
                    yield update

    async def stop(self, run_id: str) -> None:
        if self._startup.state.ready:
            await self._startup.parts.runs.stop(run_id)

    async def recolour(self, run_id: str, colour: str) -> tuple[Any, Any]:
        if run_id and self._startup.state.ready:
            async with aclosing(self._startup.parts.runs.follow(run_id, every_s=TICK_S)) as traces:
                async for trace in traces:
                    chosen = colour_of(colour)
                    return cards.answer_card(trace, colour=chosen), cards.board(trace, colour=chosen)
        return gr.skip(), gr.skip()

    def choose(self, chosen: object, request: gr.Request) -> tuple[Any, str, Any]:
        collection = chosen if isinstance(chosen, str) else ""
        who = visitor_of(request, self._startup.settings)
        examples = gr.update(visible=collection == SAMPLE)
        return examples, header(self._startup, collection, who), self._only(who, collection)

    def _only(self, who: Visitor, collection: str) -> Any:
        """The documents of a collection, to choose from; nothing is chosen of another one."""
        if not self._startup.state.ready:
            return gr.skip()
        parts = self._startup.parts
        try:
            parts.library.check_readable(who, collection)
            known = documents_of(parts.store, collection)
        except SpecragError:
            known = []
        return gr.update(choices=document_choices(known), value=[])
