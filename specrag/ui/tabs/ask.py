"""The Ask tab: a question, the draft board that fills while it is answered, and the answer.

The run itself lives on the server (`runs.py`); this tab starts one, follows it by its id, and can follow it
again after a reload, since the id is part of the address (`?run=`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gradio as gr

from specrag.library.library import OWN, SAMPLE
from specrag.library.shelves import OWN_TITLE, SAMPLE_TITLE
from specrag.sample import questions
from specrag.startup import Startup
from specrag.ui import cards
from specrag.ui.choice import Choice
from specrag.ui.live import COLOURS, NAMES
from specrag.ui.memory import REMEMBER_COLOUR, REMEMBER_RUN, with_memory
from specrag.ui.tabs import how
from specrag.ui.tabs.ask_after import AfterEvents
from specrag.ui.tabs.ask_events import AskEvents

ON_LOAD: Final = (Path(__file__).parents[1] / "ask.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTab:
    """The components that events read and write."""

    question: gr.Textbox
    collection: Choice
    only: Choice
    follow_up: gr.Checkbox
    fresh: gr.Button
    ask: gr.Button
    stop: gr.Button
    examples: gr.Column
    example_buttons: tuple[gr.Button, ...]
    how: how.HowPanel
    run_id: gr.Textbox
    own_run: gr.State
    memory: gr.Textbox
    """What the browser's tab remembers; filled by the page's own script whenever it is read."""
    show: gr.Textbox
    """The run that is to be shown, as `ask.js` writes it."""
    status: gr.HTML
    answer: gr.HTML
    feedback: gr.HTML
    passages: gr.HTML
    colour: gr.Radio
    board: gr.HTML
    timeline: gr.HTML
    waterfall: gr.Accordion
    plot: gr.Plot
    history: gr.HTML

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
    with gr.Row(elem_id="sr-conversation"):  # layout.css shows it once there is an answer
        follow_up = gr.Checkbox(
            value=False,
            label="Follow-up to the answer below",
            elem_id="sr-follow-up",
            container=False,
            scale=0,
        )
        fresh = gr.Button("New conversation", size="sm", elem_id="sr-fresh", scale=0)
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
    memory = gr.Textbox(visible="hidden", elem_id="sr-memory", label="Memory")
    show = gr.Textbox(visible="hidden", elem_id="sr-show", label="Show")
    status = gr.HTML(cards.status_line(None, idle="Starting."), elem_id="sr-status", apply_default_css=False)
    answer = gr.HTML(elem_id="sr-answer", apply_default_css=False)
    feedback = gr.HTML(elem_id="sr-feedback", apply_default_css=False)
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
    history = gr.HTML(elem_id="sr-history", apply_default_css=False)
    return AskTab(
        question=question,
        collection=collection,
        only=only,
        follow_up=follow_up,
        fresh=fresh,
        ask=ask,
        stop=stop,
        examples=examples,
        example_buttons=buttons,
        how=panel,
        run_id=run_id,
        own_run=own_run,
        memory=memory,
        show=show,
        status=status,
        answer=answer,
        feedback=feedback,
        passages=passages,
        colour=colour,
        board=board,
        timeline=timeline,
        waterfall=waterfall,
        plot=plot,
        history=history,
    )


def wire(page: gr.Blocks, tab: AskTab, startup: Startup, top: gr.HTML, act: gr.Textbox) -> None:
    """Connect the tab's events; `act` is its box of `acts.channel`."""
    events = AskEvents(startup)
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    page.load(None, None, None, js=ON_LOAD, api_visibility="private")
    loading = page.load(events.load, tab.memory, tab.live, js=with_memory(), **quiet)
    # a run that the page no longer shows no longer writes to it
    showing = tab.show.input(
        events.show, [tab.show, tab.colour], tab.live, cancels=loading, trigger_mode="multiple", **quiet
    )
    asked = _wire_asking(tab, events, [loading, showing], quiet)
    tab.show.input(None, None, None, cancels=asked, trigger_mode="multiple", api_visibility="private")
    tab.fresh.click(
        events.fresh, tab.colour, [*tab.live, tab.follow_up], cancels=[loading, showing, *asked], **quiet
    )
    tab.stop.click(events.stop, tab.run_id, None, **quiet)
    tab.run_id.change(None, tab.run_id, None, js=REMEMBER_RUN, api_visibility="private")
    tab.colour.input(
        events.recolour, [tab.run_id, tab.colour], [tab.answer, tab.board], js=REMEMBER_COLOUR, **quiet
    )
    how.wire(tab.how)
    scope: dict[str, Any] = {
        "fn": events.choose,
        "inputs": tab.collection,
        "outputs": [tab.examples, top, tab.only],
        **quiet,
    }
    tab.collection.change(**scope)
    loading.then(**scope)
    _wire_after(tab, AfterEvents(startup), [loading, showing, *asked], act, quiet)


def _wire_asking(tab: AskTab, events: AskEvents, others: list[Any], quiet: dict[str, Any]) -> list[Any]:
    """Everything that asks: the button, Enter, and the examples."""
    asking: dict[str, Any] = {
        "fn": events.ask,
        "inputs": [
            *(tab.question, tab.collection, tab.only, tab.colour, tab.own_run, tab.follow_up, tab.run_id),
            *tab.how.inputs,
        ],
        "outputs": tab.live,
        "cancels": others,
        "trigger_mode": "multiple",  # a new question replaces the one that is being answered
        **quiet,
    }
    chosen = [
        button.click(lambda text: (text, False), button, [tab.question, tab.follow_up], **quiet)
        for button in tab.example_buttons
    ]
    return [
        tab.ask.click(**asking),
        tab.question.submit(**asking),
        *(click.then(**asking) for click in chosen),
    ]


def _wire_after(
    tab: AskTab, after: AfterEvents, runs: list[Any], act: gr.Textbox, quiet: dict[str, Any]
) -> None:
    """What is shown of a run once it has ended."""
    outputs = [tab.feedback, tab.history]
    shown: dict[str, Any] = {
        "fn": after.show,
        "inputs": [tab.run_id, tab.memory],
        "outputs": outputs,
        "js": with_memory("id"),
        **quiet,
    }
    for run in runs:
        run.then(**shown)
    act.input(
        after.act,
        [act, tab.run_id, tab.memory],
        outputs,
        js=with_memory("message", "id"),
        trigger_mode="multiple",
        **quiet,
    )
