"""Run again from a step: the form in an opened run, and the line on the Ask tab about where one comes from.

The form is filled whenever another run is opened, and by nothing else, so that no update takes away what is
being set. The style sheet hides what a step can no longer change. The new run is an ordinary one: the Ask tab
is told its id and follows it as any other.
"""

from dataclasses import dataclass
from typing import Any, Final

import gradio as gr

from specrag.startup import Startup
from specrag.ui.choice import Choice
from specrag.ui.fork_form import BELONGS, LABELS, WEIGHTS, ForkForm
from specrag.ui.options import DECISIONS, MOST_DRAFTS, PARTITIONS, PIPELINES

NAMES: Final = tuple(name for name in BELONGS if name != "weights")
"""The settings that have a component of their name."""
WISH: Final = "run-fork"
"""Fills the form with settings that were tried out; they are the value of the button, as JSON."""
_MOST_K: Final = 10
_MOST_WEIGHT: Final = 10
_INSTRUCTION: Final = 500
_ROLES: Final = {"drafter": "The drafter", "verifier": "The verifier"}
SHOW: Final = """(told) => {
  const id = told.split(" ")[0];
  if (!id) return;
  const box = document.querySelector("#sr-show textarea, #sr-show input");
  if (!box) return window.location.assign(`?run=${encodeURIComponent(id)}`);
  box.value = id;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.dispatchEvent(new KeyboardEvent("keypress", { bubbles: true, key: " " })); // when Gradio says "input"
}"""
"""Lets the Ask tab show a run; what follows the id only makes one press different from the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPanel:
    """The components of the form; those named like a setting hold its value."""

    frame: gr.Accordion
    note: gr.HTML
    step: gr.Radio
    question: gr.Textbox
    pipeline: Choice
    partition: Choice
    drafts: gr.Slider
    passages_per_draft: gr.Slider
    seed: gr.Number
    draft_instruction: gr.Textbox
    draft_with: Choice
    verify_with: Choice
    grounded: gr.Checkbox
    decision: Choice
    threshold: gr.Slider
    pool: gr.Checkbox
    weights: tuple[gr.Slider, ...]
    """In the order of `WEIGHTS`."""
    run: gr.Button

    @property
    def inputs(self) -> list[Any]:
        """What is read when the form is sent, in the order of `form_from`."""
        names = ("step", "question", "pipeline", *NAMES)
        return [*(getattr(self, name) for name in names), *self.weights]

    @property
    def filled(self) -> list[Any]:
        """What is written when a run is opened."""
        return [self.note, *self.inputs]


def form_from(values: tuple[Any, ...]) -> ForkForm:
    """The form from the values of `ForkPanel.inputs`."""
    step, question, pipeline, *rest = values
    settings: dict[str, Any] = dict(zip(NAMES, rest, strict=False))
    settings["weights"] = dict(zip(WEIGHTS, rest[len(NAMES) :], strict=True))
    return ForkForm(step=step, question=question, pipeline=pipeline, settings=settings)


def build_line() -> gr.HTML:
    """The line on the Ask tab."""
    return gr.HTML(elem_id="sr-fork-line", apply_default_css=False)


def build(startup: Startup) -> ForkPanel:
    """Lay the form out."""
    usual = startup.settings
    with gr.Accordion("Run again from a step", open=False, elem_id="sr-fork") as frame:
        note = gr.HTML(elem_id="sr-fork-note", apply_default_css=False)
        steps = [(text, step) for step, text in LABELS.items()]
        step = gr.Radio(steps, value="partition", label="Run again from", elem_id="sr-fork-step")
        with gr.Row(elem_id="sr-fork-retrieve"):
            question = gr.Textbox(
                label="Question",
                max_length=usual.max_question_characters + 1,
                max_lines=4,
                elem_id="sr-fork-question",
                scale=3,
            )
        with gr.Row(elem_id="sr-fork-partition"):
            pipeline = _choice("Pipeline", PIPELINES, "speculative", "sr-fork-pipeline")
            partition = _choice("Partition", PARTITIONS, usual.partition, "sr-fork-division")
            drafts = _slider("Drafts (m)", 1, MOST_DRAFTS, usual.drafts, "sr-fork-drafts")
            k = _slider("Passages per draft (k)", 1, _MOST_K, usual.passages_per_draft, "sr-fork-k")
            seed = gr.Number(
                usual.seed, label="Seed", precision=0, minimum=0, elem_id="sr-fork-seed", min_width=120
            )
        with gr.Row(elem_id="sr-fork-draft"):
            instruction = gr.Textbox(
                label="Instruction to the drafter",
                placeholder="Empty keeps the built-in one",
                max_length=_INSTRUCTION,
                elem_id="sr-fork-instruction",
                scale=3,
            )
            draft_with = _choice("Drafts are written by", _ROLES, "drafter", "sr-fork-draft-with")
        with gr.Row(elem_id="sr-fork-verify"):
            verify_with = _choice("Drafts are read by", _ROLES, "verifier", "sr-fork-verify-with")
            grounded = gr.Checkbox(
                label="Groundedness",
                info="The verifier also reads every draft with its passages",
                elem_id="sr-fork-grounded",
            )
        with gr.Row(elem_id="sr-fork-decide"):
            decision = _choice("Decision", DECISIONS, usual.decision, "sr-fork-decision")
            threshold = _slider("Threshold", 0, 1, usual.threshold, "sr-fork-threshold", step=0.01)
            pool = gr.Checkbox(label="Equal answers add up", value=usual.pool, elem_id="sr-fork-pool")
        with gr.Row(elem_id="sr-fork-weights"):
            weights = tuple(
                _slider(
                    f"Weight: {name.replace('_', '-')}",
                    0,
                    _MOST_WEIGHT,
                    getattr(usual.weights, name),
                    f"sr-fork-weight-{name}",
                    step=0.1,
                )
                for name in WEIGHTS
            )
        run = gr.Button("Run again", variant="primary", elem_id="sr-fork-run", scale=0, min_width=120)
    return ForkPanel(
        frame=frame,
        note=note,
        step=step,
        question=question,
        pipeline=pipeline,
        partition=partition,
        drafts=drafts,
        passages_per_draft=k,
        seed=seed,
        draft_instruction=instruction,
        draft_with=draft_with,
        verify_with=verify_with,
        grounded=grounded,
        decision=decision,
        threshold=threshold,
        pool=pool,
        weights=weights,
        run=run,
    )


def _choice(label: str, labels: dict[Any, str], value: str, elem_id: str) -> Choice:
    choices = [(text, name) for name, text in labels.items()]
    return Choice(choices=choices, value=value, label=label, elem_id=elem_id, min_width=180)


def _slider(
    label: str, least: float, most: float, value: float, elem_id: str, *, step: float = 1
) -> gr.Slider:
    return gr.Slider(least, most, value=value, step=step, label=label, elem_id=elem_id, min_width=180)
