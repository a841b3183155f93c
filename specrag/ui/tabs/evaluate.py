"""The Evaluate tab: the last reports as figures and tables, and a small evaluation on demand.

Layout and wiring only; what happens is in `evaluate_events.py`. An evaluation lives on the server, so a page
that is opened later shows it as it stands.
"""

from dataclasses import dataclass
from typing import Any, Final

import gradio as gr

from specrag.evaluation.systems import METHODS
from specrag.evaluation.trials import MOST_BYTES, MOST_QUESTIONS
from specrag.startup import Startup
from specrag.ui import evaluate_cards as cards
from specrag.ui.cards import notice
from specrag.ui.evaluating import allowed
from specrag.ui.tabs.evaluate_events import FILE, SAMPLE, Events
from specrag.ui.tabs.evaluate_reports import SLOTS
from specrag.ui.theme import CSS_PATH

TAB: Final = "evaluate"
CSS: Final = CSS_PATH.with_name("evaluate.css")
_CHOSEN: Final = ("standard", "drafter", "speculative")
_FEW: Final = 7
_SAVE: Final = """(turn) => {
  const link = () => document.querySelector("#sr-report-file a, a#sr-report-file, #sr-report-file");
  if (turn) setTimeout(() => link()?.click(), 200);
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where one part of a report with a figure stands."""

    words: gr.HTML
    plot: gr.Plot
    tables: gr.HTML


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateTab:
    """The components that events read and write."""

    place: gr.Tab
    source: gr.Radio
    file: gr.File
    chosen: gr.CheckboxGroup
    limit: gr.Slider
    go: gr.Button
    status: gr.HTML
    message: gr.HTML
    progress: gr.HTML
    kept: gr.HTML
    upload: gr.UploadButton
    head: gr.HTML
    slots: tuple[Slot, ...]
    rest: gr.HTML
    shown: gr.Textbox
    """Name of the report on the page."""
    saved: gr.DownloadButton
    saving: gr.Textbox
    """Changes when there is a new file to save."""

    @property
    def wanted(self) -> list[Any]:
        """What is to be evaluated, in the order of `Events.run`."""
        return [self.source, self.file, self.chosen, self.limit]


def build(startup: Startup) -> EvaluateTab:
    """Lay the tab out, within the tabs of the page."""
    open_here = allowed(startup.settings)
    with gr.Tab("Evaluate", id=TAB) as place, gr.Column(elem_id="sr-evaluate"):
        with gr.Accordion("Run a small evaluation", open=False, elem_id="sr-trial"):
            if not open_here:
                gr.HTML(notice("info", cards.NOT_HERE), apply_default_css=False)
            with gr.Column(visible=open_here, elem_id="sr-trial-form"):
                source, file, chosen, limit = _form()
                go = gr.Button("Evaluate", variant="primary", elem_id="sr-trial-go", scale=0, min_width=104)
        status = gr.HTML(cards.status_line(""), elem_id="sr-evaluate-status", apply_default_css=False)
        message = gr.HTML(elem_id="sr-evaluate-message", apply_default_css=False)
        progress = gr.HTML(elem_id="sr-evaluate-progress", apply_default_css=False)
        head = gr.HTML(cards.idle(), elem_id="sr-evaluate-head", apply_default_css=False)
        slots = tuple(_slot(number) for number in range(SLOTS))
        rest = gr.HTML(elem_id="sr-evaluate-rest", apply_default_css=False)
        kept = gr.HTML(elem_id="sr-evaluate-kept", apply_default_css=False)
        upload = gr.UploadButton(
            "Open a report from a file",
            file_types=[".json"],
            type="filepath",
            elem_id="sr-evaluate-upload",
            scale=0,
        )
        shown = gr.Textbox(visible="hidden", elem_id="sr-evaluate-shown", label="Report")
        saved = gr.DownloadButton("Save", visible="hidden", elem_id="sr-report-file")
        saving = gr.Textbox(visible="hidden", elem_id="sr-report-saving", label="Saved")
    return EvaluateTab(
        place=place,
        source=source,
        file=file,
        chosen=chosen,
        limit=limit,
        go=go,
        status=status,
        message=message,
        progress=progress,
        kept=kept,
        upload=upload,
        head=head,
        slots=slots,
        rest=rest,
        shown=shown,
        saved=saved,
        saving=saving,
    )


def _form() -> tuple[gr.Radio, gr.File, gr.CheckboxGroup, gr.Slider]:
    source = gr.Radio(
        choices=[("The questions of the sample collection", SAMPLE), ("A file of questions", FILE)],
        value=SAMPLE,
        label="Questions",
        elem_id="sr-trial-source",
    )
    file = gr.File(
        label=f"File of questions: one JSON object a line with question, answers and passages, at most "
        f"{MOST_BYTES >> 20} MiB",
        file_types=[".jsonl", ".json"],
        type="filepath",
        height=120,
        elem_id="sr-trial-file",
    )
    chosen = gr.CheckboxGroup(
        choices=[(name.replace("-", " "), name) for name in METHODS],
        value=list(_CHOSEN),
        label="Pipelines",
        elem_id="sr-trial-pipelines",
    )
    limit = gr.Slider(
        minimum=1,
        maximum=MOST_QUESTIONS,
        step=1,
        value=_FEW,
        label="Questions, at most",
        elem_id="sr-trial-limit",
    )
    return source, file, chosen, limit


def _slot(number: int) -> Slot:
    with gr.Column(elem_id=f"sr-evaluate-part-{number}", elem_classes=["sr-report-part"]):
        words = gr.HTML(apply_default_css=False)
        plot = gr.Plot(
            show_label=False,
            label="Figure",
            elem_id=f"sr-evaluate-plot-{number}",
            elem_classes=["sr-report-figure"],
        )
        tables = gr.HTML(apply_default_css=False)
    return Slot(words=words, plot=plot, tables=tables)


def wire(page: gr.Blocks, tab: EvaluateTab, startup: Startup, act: gr.Textbox) -> None:
    """Connect the events; `act` is the tab's box of the channel of `acts`."""
    events = Events(startup, tab)
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    tab.place.select(events.look, [tab.shown], events.outputs, **quiet)
    page.load(events.load, None, events.outputs, **quiet)
    tab.go.click(events.run, tab.wanted, events.outputs, **quiet)
    act.input(events.act, [act], events.outputs, trigger_mode="multiple", **quiet)
    tab.saving.change(None, tab.saving, None, js=_SAVE, api_visibility="private")
    tab.upload.upload(events.upload, [tab.upload], events.outputs, **quiet)
