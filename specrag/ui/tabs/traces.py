"""The Traces tab: the runs that were asked, one of them opened, or two compared.

Layout and wiring only. What is shown is drawn in `traces_board.py`, what a visitor does is handled in
`traces_events.py`; both speak of values by the names of `TracesTab`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gradio as gr

from specrag.startup import Startup
from specrag.tracing.history import COMMENT_LENGTH
from specrag.ui import cards
from specrag.ui.acts import Channel
from specrag.ui.tabs import detail, fork, fork_events
from specrag.ui.tabs.ask import AskTab
from specrag.ui.tabs.detail_events import Events as DetailEvents
from specrag.ui.tabs.fork import ForkPanel
from specrag.ui.tabs.fork_events import ForkEvents
from specrag.ui.tabs.traces_desk import Desk, Values, View
from specrag.ui.tabs.traces_events import TAB, Events
from specrag.ui.tabs.traces_files import RunFiles
from specrag.ui.trace_filter import filter_form

ON_LOAD: Final = (Path(__file__).parents[1] / "traces.js").read_text(encoding="utf-8")
_REMEMBER: Final = """(id) => {
  const url = new URL(window.location);
  if ((url.searchParams.get("trace") || "") === id) return;
  if (id) url.searchParams.set("trace", id); else url.searchParams.delete("trace");
  window.history.replaceState(null, "", url);
}"""
_DOWNLOAD: Final = """(token) => {
  const link = () => document.querySelector("#sr-trace-export a, a#sr-trace-export, #sr-trace-export");
  if (token) setTimeout(() => link()?.click(), 200);
}"""
_OTHERS: Final = ("place", "fork", "detail", "save")
"""What no act writes to."""
_WAIT_S: Final = 0.5
_ID_LENGTH: Final = 40
Updates = dict[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesTab:
    """The components that events read and write."""

    place: gr.Tab
    message: gr.HTML
    wanted: gr.Textbox
    ticked: gr.Textbox
    runs: gr.HTML
    head: gr.HTML
    comment: gr.Textbox
    save: gr.Button
    link: gr.HTML
    without_texts: gr.Checkbox
    formats: gr.HTML
    export: gr.DownloadButton
    exported: gr.Textbox
    """A word that is new whenever a file is ready."""
    import_: gr.UploadButton
    fork: ForkPanel
    show: gr.Textbox
    """The run that the Ask tab is to show, with a word that makes each time another one."""
    run_id: gr.Textbox
    """The run whose detail is shown; empty shows nothing."""
    detail: detail.Detail
    diff: gr.HTML
    view: gr.State


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the tab writes to elsewhere on the page."""

    tabs: gr.Tabs
    line: gr.HTML
    """On the Ask tab: where the run that it shows was forked from."""


def build(startup: Startup) -> TracesTab:
    """Lay the tab out, within the tabs of the page."""
    with gr.Tab("Traces", id=TAB) as place, gr.Column(elem_id="sr-traces"):
        message = gr.HTML(elem_id="sr-traces-message", apply_default_css=False)
        wanted = gr.Textbox(visible="hidden", elem_id="sr-traces-wanted", label="Wanted")
        ticked = gr.Textbox(visible="hidden", elem_id="sr-traces-ticked", label="Ticked")
        run_id = gr.Textbox(visible="hidden", elem_id="sr-trace-id", label="Opened run")
        show = gr.Textbox(visible="hidden", elem_id="sr-trace-show", label="Run to show")
        export = gr.DownloadButton("Download", visible="hidden", elem_id="sr-trace-export")
        exported = gr.Textbox(visible="hidden", elem_id="sr-trace-exported", label="Exported")
        import_ = gr.UploadButton("Import a run", visible="hidden", elem_id="sr-trace-import")
        with gr.Column(elem_id="sr-traces-list"):
            gr.HTML(filter_form(), elem_id="sr-traces-form", apply_default_css=False)
            runs = gr.HTML(elem_id="sr-runs", apply_default_css=False)
        with gr.Column(elem_id="sr-traces-run"):
            head = gr.HTML(elem_id="sr-trace-head", apply_default_css=False)
            with gr.Row(elem_id="sr-trace-comment-row"):
                comment = gr.Textbox(
                    label="Comment on the answer (optional)",
                    max_length=COMMENT_LENGTH,
                    lines=1,
                    max_lines=4,
                    elem_id="sr-trace-comment",
                )
                save = gr.Button("Save", size="sm", elem_id="sr-trace-comment-save", min_width=80, scale=0)
            with gr.Accordion("Share and export", open=False, elem_id="sr-trace-share"):
                link = gr.HTML(elem_id="sr-trace-link", apply_default_css=False)
                without = gr.Checkbox(label="Leave texts out of the file", elem_id="sr-trace-without")
                formats = gr.HTML(elem_id="sr-trace-formats", apply_default_css=False)
            panel = fork.build(startup)
            opened = detail.build(startup)
        diff = gr.HTML(elem_id="sr-traces-diff", apply_default_css=False)
        view = gr.State(View())
    return TracesTab(
        place=place,
        message=message,
        wanted=wanted,
        ticked=ticked,
        runs=runs,
        head=head,
        comment=comment,
        save=save,
        link=link,
        without_texts=without,
        formats=formats,
        export=export,
        exported=exported,
        import_=import_,
        fork=panel,
        show=show,
        run_id=run_id,
        detail=opened,
        diff=diff,
        view=view,
    )


def wire(  # noqa: PLR0917 - the page's parts, each of another type
    page: gr.Blocks, tab: TracesTab, startup: Startup, act: Channel, asking: AskTab, place: Place
) -> None:
    """Connect the tab's events."""
    parts = detail.wire(page, tab.detail, startup, tab.run_id)
    forking = fork_events.wire(
        tab.fork,
        startup,
        act.fork,
        tab.run_id,
        tabs=place.tabs,
        show=tab.show,
        line=place.line,
        asked=asking.run_id,
    )
    _Wiring(tab, startup, place.tabs, forking, parts).wire(page, act.traces)


class _Wiring:
    """Gradio's side of every event: inputs become a desk, values become updates."""

    def __init__(
        self, tab: TracesTab, startup: Startup, tabs: gr.Tabs, forking: ForkEvents, parts: DetailEvents
    ) -> None:
        self._tab = tab
        self._tabs = tabs
        self._fork = forking
        self._parts = parts
        self._startup = startup
        self._files = RunFiles(startup)
        self._events = Events(startup, self._files.acts)

    def wire(self, page: gr.Blocks, act: gr.Textbox) -> None:
        tab = self._tab
        where = [tab.run_id, tab.wanted, tab.ticked, tab.without_texts, tab.view]
        quiet: dict[str, Any] = {
            "outputs": self._outputs(),
            "show_progress": "hidden",
            "api_visibility": "private",
        }
        page.load(None, None, None, js=ON_LOAD, api_visibility="private")
        page.load(self._load, where, **quiet)
        tab.place.select(self._look, where, **quiet)
        act.input(self._act, [act, *where], trigger_mode="multiple", **quiet)
        tab.wanted.input(self._search, where, trigger_mode="always_last", **quiet)
        gr.on([tab.save.click, tab.comment.submit], self._comment, [tab.comment, *where], **quiet)
        tab.run_id.change(None, tab.run_id, None, js=_REMEMBER, api_visibility="private")
        tab.import_.upload(self._import, [tab.import_, *where], **quiet)
        tab.exported.change(None, tab.exported, None, js=_DOWNLOAD, api_visibility="private")
        tab.show.change(None, tab.show, None, js=fork.SHOW, api_visibility="private")

    async def _load(self, request: gr.Request, *inputs: Any) -> AsyncGenerator[Updates]:
        """Open the run of the address, once the program is ready."""
        run_id = str(request.query_params.get("trace", ""))[:_ID_LENGTH]
        if not run_id:
            yield self._nothing()
            return
        async for update in self._starting():
            yield update
        yield await asyncio.to_thread(
            self._told, request, inputs, lambda desk: self._events.linked(desk, run_id)
        )

    async def _look(self, request: gr.Request, *inputs: Any) -> AsyncGenerator[Updates]:
        async for update in self._starting():
            yield update
        yield await asyncio.to_thread(self._told, request, inputs, self._events.look)

    async def _starting(self) -> AsyncGenerator[Updates]:
        """How far the program is, until it is ready or cannot be."""
        while not (state := self._startup.state).ready and not state.failed:
            yield {self._tab.message: cards.notice("info", state.message)}
            await asyncio.to_thread(self._startup.wait, _WAIT_S)

    def _search(self, request: gr.Request, *inputs: Any) -> Updates:
        return self._told(request, inputs, self._events.search)

    def _act(self, request: gr.Request, text: str, *inputs: Any) -> Updates:
        return self._told(request, inputs, lambda desk: self._events.act(desk, text))

    def _import(self, request: gr.Request, file: object, *inputs: Any) -> Updates:
        return self._told(request, inputs, lambda desk: self._events.imported(self._files.take(desk, file)))

    def _comment(self, request: gr.Request, text: object, *inputs: Any) -> Updates:
        return self._told(request, inputs, lambda desk: self._events.comment(desk, text))

    def _told(
        self,
        request: gr.Request,
        inputs: tuple[Any, ...],
        doing: Callable[[Desk], tuple[View, Values] | None],
    ) -> Updates:
        """What has come of doing something, with the parts of a run that was not shown before.

        They come in the same answer: a box that changes and asks for them would cost a second one, and the
        page a second painting.
        """
        shown, *inputs_of_desk = inputs
        desk = self._events.desk(tuple(inputs_of_desk), request)
        told = doing(desk)
        if told is None:
            return self._nothing()
        view, values = told
        updates = self._updates(view, values)
        run_id = values.get("run_id", shown)
        afresh = "fill" in values or not run_id  # an answer under way may have brought another run meanwhile
        if afresh or run_id != shown:
            updates |= zip(self._tab.detail.shown, self._parts.shown(desk.who, run_id), strict=True)
        return updates

    def _outputs(self) -> list[Any]:
        mine = (name for name in TracesTab.__slots__ if name not in _OTHERS)
        mine_alone = [getattr(self._tab, name) for name in mine]
        return [*mine_alone, *self._tab.detail.shown, *self._tab.fork.filled, self._tabs]

    def _nothing(self) -> Updates:
        """An answer that changes nothing; Gradio takes none at all for one that empties the page."""
        return {self._tab.message: gr.skip()}

    def _updates(self, view: View, values: Values) -> Updates:
        updates: Updates = {self._tab.view: view}
        for name, value in values.items():
            if name == "tab":
                updates[self._tabs] = gr.Tabs(selected=value)
            elif name == "fill":
                updates |= self._fork.filled(*value)
            else:
                updates[getattr(self._tab, name)] = gr.update(value=value)
        return updates
