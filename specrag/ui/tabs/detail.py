"""One run opened: the board as it was with its replay, its times, scores, what-if, map and prompts.

It lays itself out where it is called and shows the run whose id stands in a box of the caller's. Each part
has a tab of its own, so that a long run stays quick: what is not looked at is not drawn.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gradio as gr

from specrag.startup import Startup
from specrag.ui.detail.terms import COMPONENTS
from specrag.ui.detail.what_if import MOST_WEIGHT
from specrag.ui.live import COLOURS
from specrag.ui.tabs.detail_events import SHOWN, Events
from specrag.ui.theme import CSS_PATH

CSS: Final = CSS_PATH.with_name("detail.css")
ON_LOAD: Final = (Path(__file__).parents[1] / "detail.js").read_text(encoding="utf-8")
_WEIGHT_STEP: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfPanel:
    """What settings are moved with."""

    weights: tuple[gr.Slider, ...]
    """In the order of `COMPONENTS`."""
    threshold: gr.Slider
    drafts: gr.Slider
    pool: gr.Checkbox
    default: gr.Button
    paper: gr.Button
    reset: gr.Button
    card: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        """The settings, in the order of `detail_events`."""
        return [*self.weights, self.threshold, self.drafts, self.pool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """The components of an opened run."""

    head: gr.HTML
    replay: gr.HTML
    load: gr.Button
    """What the player presses when it needs its pictures."""
    film: gr.HTML
    colour: gr.Radio
    answer: gr.HTML
    passages: gr.HTML
    board: gr.HTML
    stage: gr.HTML
    timeline: gr.HTML
    plot: gr.Plot
    spans: gr.HTML
    scores: gr.HTML
    map: gr.HTML
    prompts: gr.HTML
    what_if: WhatIfPanel

    @property
    def shown(self) -> list[Any]:
        """What a run is written to, in the order of `SHOWN` and then of the what-if."""
        return [*(getattr(self, name) for name in SHOWN), *self.what_if.inputs, self.what_if.card]


def build(startup: Startup) -> Detail:  # noqa: ARG001 - the same for all parts of the page
    """Lay it out; nothing is shown until a run is."""
    with gr.Column(elem_id="sr-detail"):
        head = _html("head")
        with gr.Tabs(elem_id="sr-detail-tabs"):
            with gr.Tab("Board", id="detail-board"):
                replay, film = _html("replay"), _html("film")
                load = gr.Button("Prepare the replay", visible="hidden", elem_id="sr-detail-load")
                answer, passages = _html("answer"), _html("passages")
                colour = gr.Radio(
                    choices=list(COLOURS),
                    value="none",
                    label="Colour the tokens by",
                    elem_id="sr-detail-colour",
                )
                board, stage, timeline = _html("board"), _html("stage"), _html("timeline")
            with gr.Tab("Time", id="detail-time"):
                plot = gr.Plot(elem_id="sr-detail-plot", label="Waterfall of all steps", show_label=False)
                spans = _html("spans")
            with gr.Tab("Scores", id="detail-scores"):
                scores = _html("scores")
            with gr.Tab("What if", id="detail-what-if"):
                what_if = _what_if()
            with gr.Tab("Map", id="detail-map"):
                places = _html("map")
            with gr.Tab("Prompts", id="detail-prompts"):
                prompts = _html("prompts")
    return Detail(
        head=head,
        replay=replay,
        load=load,
        film=film,
        colour=colour,
        answer=answer,
        passages=passages,
        board=board,
        stage=stage,
        timeline=timeline,
        plot=plot,
        spans=spans,
        scores=scores,
        map=places,
        prompts=prompts,
        what_if=what_if,
    )


def wire(page: gr.Blocks, detail: Detail, startup: Startup, run_id: gr.Textbox) -> Events:
    """Connect the events; whoever writes another id into the box fills the parts too, by `Events.shown`.

    Args:
        page: the whole page.
        detail: what `build` made.
        startup: prepares the parts.
        run_id: holds the id of the run to show; empty for none.
    """
    events, panel = Events(startup), detail.what_if
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    page.load(None, None, None, js=ON_LOAD, api_visibility="private")
    detail.load.click(events.film, run_id, detail.film, **quiet)
    detail.colour.input(
        events.recolour,
        [run_id, detail.colour],
        [detail.answer, detail.board],
        trigger_mode="always_last",
        **quiet,
    )
    asked = [run_id, *panel.inputs]
    for component in panel.inputs:
        component.input(events.decide, asked, panel.card, trigger_mode="always_last", **quiet)
    settings = [*panel.inputs, panel.card]
    panel.default.click(events.default, asked, settings, **quiet)
    panel.paper.click(events.paper, asked, settings, **quiet)
    panel.reset.click(events.reset, run_id, settings, **quiet)
    return events


def _what_if() -> WhatIfPanel:
    with gr.Column(elem_id="sr-what-if"):
        with gr.Column(elem_id="sr-what-if-controls"):
            with gr.Row(elem_classes="sr-what-if-row"):
                weights = tuple(
                    gr.Slider(
                        0,
                        MOST_WEIGHT,
                        value=0,
                        step=_WEIGHT_STEP,
                        label=f"Weight of {label}",
                        elem_id=f"sr-what-if-{name.replace('_', '-')}",
                        min_width=200,
                        buttons=[],  # its own reset knows nothing of the run
                    )
                    for name, label in COMPONENTS.items()
                )
            with gr.Row(elem_classes="sr-what-if-row"):
                threshold = gr.Slider(
                    0,
                    1,
                    value=0,
                    step=0.01,
                    label="Threshold",
                    elem_id="sr-what-if-threshold",
                    min_width=200,
                    buttons=[],
                )
                drafts = gr.Slider(
                    1,
                    2,
                    value=1,
                    step=1,
                    label="Drafts",
                    elem_id="sr-what-if-drafts",
                    min_width=200,
                    buttons=[],
                )
                pool = gr.Checkbox(
                    value=True, label="Equal answers add up", elem_id="sr-what-if-pool", min_width=200
                )
            with gr.Row(elem_id="sr-what-if-buttons"):
                default = gr.Button("Default weights", size="sm", elem_id="sr-what-if-default")
                paper = gr.Button("Paper's weights", size="sm", elem_id="sr-what-if-paper")
                reset = gr.Button("As in the run", size="sm", elem_id="sr-what-if-reset")
        card = _html("what-if")
    return WhatIfPanel(
        weights=weights,
        threshold=threshold,
        drafts=drafts,
        pool=pool,
        default=default,
        paper=paper,
        reset=reset,
        card=card,
    )


def _html(name: str) -> gr.HTML:
    return gr.HTML(elem_id=f"sr-detail-{name}", apply_default_css=False)
