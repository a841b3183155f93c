"""The panel in which a visitor chooses how a question is answered; closed, its line says what holds."""

from dataclasses import dataclass, fields
from typing import Any

import gradio as gr

from specrag.config import Settings
from specrag.ui import options as o


@dataclass(frozen=True, slots=True, kw_only=True)
class HowPanel:
    """The components of the panel."""

    frame: gr.Accordion
    pipeline: gr.Dropdown
    speculative: gr.Column
    """What only a run with drafts has a use for."""
    decision: gr.Dropdown
    partition: gr.Dropdown
    drafts: gr.Slider
    preset: gr.Dropdown
    focus: gr.Checkbox
    grounded: gr.Checkbox

    @property
    def inputs(self) -> list[Any]:
        """The values of the panel, in the order of `options_from`."""
        return [getattr(self, field.name) for field in fields(o.Options)]


def options_from(values: tuple[Any, ...]) -> o.Options:
    """The panel's values, in the order of `HowPanel.inputs`, as options that nobody has checked."""
    names = (field.name for field in fields(o.Options))
    return o.Options(**dict(zip(names, values, strict=True)))


def build(settings: Settings) -> HowPanel:
    """Lay the panel out."""
    now = o.options_of(settings)
    with gr.Accordion(o.summary(now), open=False, elem_id="sr-how") as frame:
        pipeline = _choice("Pipeline", o.PIPELINES, now.pipeline, "sr-pipeline")
        with gr.Column(elem_id="sr-how-speculative") as speculative:
            with gr.Row(elem_classes="sr-how-row"):
                decision = _choice("Decision", o.DECISIONS, now.decision, "sr-decision")
                partition = _choice("Partition", o.PARTITIONS, now.partition, "sr-partition")
                preset = _choice("Score weights", o.SCORING, now.preset, "sr-preset")
            with gr.Row(elem_classes="sr-how-row"):
                drafts = gr.Slider(
                    1,
                    o.MOST_DRAFTS,
                    value=now.drafts,
                    step=1,
                    label="Drafts (m)",
                    elem_id="sr-drafts",
                    min_width=220,
                )
                focus = gr.Checkbox(
                    value=now.focus,
                    label="Evidence focus",
                    info="A draft reads only the sentences nearest to the question",
                    elem_id="sr-focus",
                    min_width=220,
                )
                grounded = gr.Checkbox(
                    value=now.grounded,
                    label="Groundedness",
                    info="The verifier also reads every draft with its passages",
                    elem_id="sr-grounded",
                    min_width=220,
                )
    return HowPanel(
        frame=frame,
        pipeline=pipeline,
        speculative=speculative,
        decision=decision,
        partition=partition,
        drafts=drafts,
        preset=preset,
        focus=focus,
        grounded=grounded,
    )


def wire(panel: HowPanel) -> None:
    """Keep the closed panel's line true, and show only what the pipeline has a use for."""
    gr.on(
        [component.change for component in panel.inputs],
        _told,
        panel.inputs,
        [panel.frame, panel.speculative],
        show_progress="hidden",
        api_visibility="private",
    )


def _told(*values: Any) -> tuple[Any, Any]:
    options = options_from(values)
    return gr.update(label=o.summary(options)), gr.update(visible=options.pipeline == "speculative")


def _choice(label: str, labels: dict[Any, str], value: str, elem_id: str) -> gr.Dropdown:
    choices = [(text, name) for name, text in labels.items()]
    return gr.Dropdown(choices=choices, value=value, label=label, elem_id=elem_id, min_width=200)
