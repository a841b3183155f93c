"""What happens when somebody runs a run again: the form is filled, the fork begins, the Ask tab shows it."""

import asyncio
import json
import uuid
from typing import Any

import gradio as gr

from specrag.errors import SpecragError
from specrag.forking import fork
from specrag.library.visitors import Visitor
from specrag.overrides import for_one_run
from specrag.pipelines.base import check_question
from specrag.startup import Startup
from specrag.tracing.trace import Trace
from specrag.ui import acts, trace_cards
from specrag.ui.fork_form import (
    WEIGHTS,
    ForkForm,
    form_of,
    overrides_of,
    pipeline_of,
    question_of,
    step_of,
    wished,
)
from specrag.ui.markup import render
from specrag.ui.scope import fork_scope
from specrag.ui.tabs.fork import NAMES, WISH, ForkPanel, form_from
from specrag.ui.who import visitor_of

Updates = dict[Any, Any]


def wire(
    panel: ForkPanel,
    startup: Startup,
    act: gr.Textbox,
    run_id: gr.Textbox,
    *,
    tabs: gr.Tabs,
    show: gr.Textbox,
    line: gr.HTML,
    asked: gr.Textbox,
) -> "ForkEvents":
    """Connect the form; who opens a run fills it.

    Args:
        panel: the form.
        startup: prepares the parts.
        act: its box of `acts.channel`.
        run_id: the run that is opened.
        tabs: the tabs of the page.
        show: hears of the new run and lets the Ask tab show it.
        line: the line on the Ask tab.
        asked: the run that the Ask tab shows.
    """
    events = ForkEvents(panel, startup, show, tabs)
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    form = [panel.note, panel.frame, *panel.inputs]
    act.input(events.wish, [act, run_id], form, trigger_mode="multiple", **quiet)
    panel.run.click(events.run, [run_id, *panel.inputs], [panel.note, show, tabs], **quiet)
    asked.change(events.line, asked, line, **quiet)
    return events


class ForkEvents:
    """The listeners."""

    def __init__(self, panel: ForkPanel, startup: Startup, show: gr.Textbox, tabs: gr.Tabs) -> None:
        self._panel = panel
        self._startup = startup
        self._show = show
        self._tabs = tabs

    def filled(self, who: Visitor, run_id: str) -> Updates:
        """Another run is opened: the form says how that was run."""
        trace = self._trace(who, run_id)
        return self._filled(form_of(trace, self._startup.settings)) if trace else {}

    def wish(self, request: gr.Request, message: str, run_id: object) -> Updates:
        """Settings that were tried out on the stored scores."""
        act = acts.parse(message)
        if act is None or act.action != WISH or act.id != run_id:
            return self._nothing()
        trace = self._trace(self._who(request), run_id)
        if trace is None:
            return self._nothing()
        form = wished(form_of(trace, self._startup.settings), _read(act.value))
        return {**self._filled(form, wished=True), self._panel.frame: gr.update(open=True)}

    async def run(self, request: gr.Request, run_id: object, *values: Any) -> Updates:
        """Begin the fork, and let the Ask tab show it."""
        if not self._startup.state.ready:
            return {self._panel.note: self._note(problem=self._startup.state.message)}
        try:
            started = await self._start(request, str(run_id), form_from(values))
        except SpecragError as error:
            return {self._panel.note: self._note(problem=str(error))}
        turn = uuid.uuid4().hex[:6]
        return {
            self._panel.note: self._note(),
            self._show: f"{started} {turn}",
            self._tabs: gr.Tabs(selected="ask"),
        }

    async def _start(self, request: gr.Request, run_id: str, form: ForkForm) -> str:
        parts = self._startup.parts
        who = visitor_of(request, parts.settings)
        trace = await asyncio.to_thread(parts.history.trace, who, run_id)
        step = step_of(form.step)
        asked = fork(trace, step, question=question_of(trace, form, step))
        check_question(asked.question, limit=parts.settings.max_question_characters)
        settings = for_one_run(parts.settings, overrides_of(trace, form, step))
        name = pipeline_of(form, step)
        asked = await asyncio.to_thread(fork_scope, parts, who, asked, name)
        pipeline = parts.pipeline(name, settings)
        return parts.runs.start(pipeline, asked, owner=who.owner or "")

    def line(self, request: gr.Request, run_id: object) -> str:
        """Where the run on the Ask tab comes from."""
        trace = self._trace(self._who(request), run_id)
        return trace_cards.fork_line(trace.run_id, trace.parent) if trace else ""

    def _who(self, request: gr.Request) -> Visitor:
        return visitor_of(request, self._startup.settings)

    def _trace(self, who: Visitor, run_id: object) -> Trace | None:
        """A run as this visitor may see it; None if they may not, or there is none yet."""
        if not (isinstance(run_id, str) and run_id and self._startup.state.ready):
            return None
        try:
            return self._startup.parts.history.trace(who, run_id)
        except SpecragError:
            return None

    def _filled(self, form: ForkForm, *, wished: bool = False) -> Updates:
        panel, settings = self._panel, form.settings
        values = {
            panel.step: form.step,
            panel.question: form.question,
            panel.pipeline: form.pipeline,
            **{getattr(panel, name): settings[name] for name in NAMES},
            **{box: settings["weights"][name] for name, box in zip(WEIGHTS, panel.weights, strict=True)},
            panel.note: self._note(step=str(form.step), wished=wished),
        }
        return {component: gr.update(value=value) for component, value in values.items()}

    def _note(self, *, step: str = "", wished: bool = False, problem: str = "") -> str:
        parts = self._startup.parts if self._startup.state.ready else None
        return render(
            "fork_note",
            step=step,
            wished=wished,
            problem=problem,
            focus=f"fork-{uuid.uuid4().hex[:8]}",
            one_model=parts is None or parts.drafter is parts.verifier,
        )

    def _nothing(self) -> Updates:
        return {self._panel.note: gr.skip()}


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
