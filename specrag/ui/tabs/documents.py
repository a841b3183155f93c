"""The Documents tab: collections, files on their way into one, and the documents that are in it.

Layout and wiring only. What is shown is drawn in `documents_board.py`, what a visitor does is handled in
`documents_events.py` and `collections_events.py`; both speak of values by the names of `Output` here.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import gradio as gr

from specrag.startup import Startup
from specrag.ui import cards, document_cards
from specrag.ui.listing import SORTS
from specrag.ui.tabs import collections
from specrag.ui.tabs.ask import AskTab
from specrag.ui.tabs.collections_events import CollectionEvents
from specrag.ui.tabs.documents_board import FORMATS
from specrag.ui.tabs.documents_desk import Outcome, Values, View
from specrag.ui.tabs.documents_events import Events

POLL_S: Final = 1.0
_DOWNLOAD: Final = """(token) => {
  if (token) setTimeout(() => document.querySelector("#sr-export a, a#sr-export, #sr-export")?.click(), 200);
}"""
Updates = dict[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsTab:
    """The components that events read and write."""

    panel: collections.CollectionsPanel
    upload: gr.File
    limits: gr.HTML
    replacing: gr.Checkbox
    password: gr.Textbox
    message: gr.HTML
    said: gr.HTML
    uploads: gr.HTML
    search: gr.Textbox
    sort: gr.Dropdown
    documents: gr.HTML
    chunks: gr.HTML
    timer: gr.Timer
    view: gr.State
    seen: gr.State
    """The half of the view that the clock also writes; one that is late must not undo what was chosen."""


def build(startup: Startup) -> DocumentsTab:
    """Lay the tab out; the limits stand there from the first moment."""
    allowed = document_cards.limits(startup.settings, FORMATS, writable=True)
    with gr.Row(elem_id="sr-documents-row"):
        with gr.Column(elem_id="sr-collections", scale=1, min_width=300):
            panel = collections.build()
        with gr.Column(elem_id="sr-adding", scale=2, min_width=300):
            upload = gr.File(file_count="multiple", label="Add files", elem_id="sr-upload", height=120)
            limits = gr.HTML(allowed, elem_id="sr-limits", apply_default_css=False)
            with gr.Accordion("Options", open=False, elem_id="sr-upload-options"):
                replacing = gr.Checkbox(label="Replace documents of the same file name", elem_id="sr-replace")
                password = gr.Textbox(
                    label="Password of encrypted files",
                    info="Used for the next files and not kept.",
                    type="password",
                    max_length=200,
                    elem_id="sr-password",
                )
    message = gr.HTML(elem_id="sr-documents-message", apply_default_css=False)
    said = gr.HTML(elem_id="sr-documents-said", apply_default_css=False)
    # The style sheet hides these while there is nothing to search: a dropdown that gradio takes from the page
    # and puts back may throw on its way.
    with gr.Row(elem_id="sr-tools"):
        search = gr.Textbox(
            label="Search titles and file names",
            placeholder="Search titles and file names",
            show_label=False,
            max_length=200,
            elem_id="sr-search",
        )
        sort = gr.Dropdown(
            choices=list(SORTS), value="added", label="Order", show_label=False, elem_id="sr-sort"
        )
    with gr.Column(elem_id="sr-file-lists"):
        uploads = gr.HTML(elem_id="sr-uploads", apply_default_css=False)
        documents = gr.HTML(elem_id="sr-documents-table", apply_default_css=False)
    chunks = gr.HTML(elem_id="sr-chunks", apply_default_css=False)
    return DocumentsTab(
        panel=panel,
        upload=upload,
        limits=limits,
        replacing=replacing,
        password=password,
        message=message,
        said=said,
        uploads=uploads,
        search=search,
        sort=sort,
        documents=documents,
        chunks=chunks,
        timer=gr.Timer(POLL_S, active=False),
        view=gr.State(View()),
        seen=gr.State(View()),
    )


def wire(  # noqa: PLR0917 - the page's parts, each of another type
    page: gr.Blocks, tab: DocumentsTab, startup: Startup, asking: AskTab, top: gr.HTML, act: gr.Textbox
) -> None:
    """Connect the tab's events."""
    _Wiring(tab, startup, asking, top).wire(page, act)


class _Wiring:
    """Gradio's side of every event: inputs become a desk, values become updates."""

    def __init__(self, tab: DocumentsTab, startup: Startup, asking: AskTab, top: gr.HTML) -> None:
        self._tab = tab
        self._asking = asking
        self._top = top
        self._collections = CollectionEvents(startup)
        self._events = Events(startup, self._collections.acts)
        panel = tab.panel
        self._targets: dict[str, tuple[Any, str]] = {
            "picker": (panel.picker, "choices"),
            "asked": (asking.collection, "choices"),
            "card": (panel.card, "value"),
            "export": (panel.export, "value"),
            "exported": (panel.exported, "value"),
            "importing": (panel.stop_import, "visible"),
            "imported": (panel.import_, "value"),
            "upload": (tab.upload, "interactive"),
            "uploaded": (tab.upload, "value"),
            "timer": (tab.timer, "active"),
            "top": (top, "value"),
        }

    def wire(self, page: gr.Blocks, act: gr.Textbox) -> None:
        tab, panel = self._tab, self._tab.panel
        asked = [self._asking.collection, self._asking.only]
        where = [panel.picker, tab.search, tab.sort, *asked, tab.view, tab.seen]
        quiet: dict[str, Any] = {
            "outputs": self._outputs(),
            "show_progress": "hidden",
            "api_visibility": "private",
        }
        page.load(self._load, where, **quiet)
        tab.timer.tick(self._tick, where, **quiet)
        act.input(self._act, [act, *where], trigger_mode="multiple", **quiet)
        panel.picker.input(self._choose, where, trigger_mode="always_last", **quiet)
        # its input event knows nothing of what is pasted or erased
        tab.search.change(self._search, where, **quiet)
        tab.sort.input(self._search, where, trigger_mode="always_last", **quiet)
        tab.upload.upload(
            self._upload, [tab.upload, tab.replacing, tab.password, *where], trigger_mode="multiple", **quiet
        )
        form = [panel.title, panel.description, *where]
        gr.on([panel.save.click, panel.title.submit], self._save, form, **quiet)
        panel.close.click(self._close, where, **quiet)
        importing = panel.import_.upload(self._import, [panel.import_, *where], **quiet)
        panel.stop_import.click(self._stop_import, where, cancels=importing, **quiet)
        panel.exported.change(None, panel.exported, None, js=_DOWNLOAD, api_visibility="private")

    def _load(self, request: gr.Request, *inputs: Any) -> Updates:
        return self._updates(*self._events.load(self._events.desk(inputs, request)))

    def _tick(self, request: gr.Request, *inputs: Any) -> Updates:
        updates = self._updates(*self._events.tick(self._events.desk(inputs, request)))
        del updates[self._tab.view]
        return updates

    def _choose(self, request: gr.Request, *inputs: Any) -> Updates:
        return self._updates(*self._events.choose(self._events.desk(inputs, request)))

    def _search(self, request: gr.Request, *inputs: Any) -> Updates:
        return self._updates(*self._events.search(self._events.desk(inputs, request)))

    def _act(self, request: gr.Request, text: str, *inputs: Any) -> Iterator[Updates]:
        answered = False
        for view, values in self._events.act(self._events.desk(inputs, request), text):
            answered = True
            yield self._updates(view, values)
        if not answered:  # gradio takes a generator without an answer for one that empties every output
            yield {self._top: gr.skip()}

    def _upload(
        self, request: gr.Request, files: list[str] | None, replacing: bool, password: str, *inputs: Any
    ) -> Updates:
        desk = self._events.desk(inputs, request)
        return self._updates(
            *self._events.upload(desk, files, replacing=bool(replacing), password=password or "")
        )

    def _save(self, request: gr.Request, title: str, description: str, *inputs: Any) -> Updates:
        desk = self._events.desk(inputs, request)
        return self._outcome(self._collections.save(desk, title or "", description or ""))

    def _close(self, request: gr.Request, *inputs: Any) -> Updates:
        return self._outcome(self._collections.close(self._events.desk(inputs, request)))

    async def _import(self, request: gr.Request, file: str | None, *inputs: Any) -> AsyncGenerator[Updates]:
        desk = self._events.desk(inputs, request)
        async with aclosing(self._collections.import_(desk, file)) as told:
            async for outcome in told:
                if isinstance(outcome, Outcome):
                    yield await asyncio.to_thread(self._outcome, outcome)
                else:
                    yield self._updates(desk.view, outcome)

    def _stop_import(self, request: gr.Request, *inputs: Any) -> Updates:
        desk = self._events.desk(inputs, request)
        stopped = {"importing": False, "imported": None}
        return self._outcome(Outcome(desk=desk, message=cards.notice("info", _STOPPED), values=stopped))

    def _outcome(self, outcome: Outcome) -> Updates:
        view, values = self._events.draw(outcome.desk, outcome.message)
        return self._updates(view, values | dict(outcome.values))

    def _outputs(self) -> list[Any]:
        tab, panel = self._tab, self._tab.panel
        mine = [getattr(tab, name) for name in DocumentsTab.__slots__ if name != "panel"]
        theirs = [getattr(panel, name) for name in collections.CollectionsPanel.__slots__]
        return [*mine, *theirs, self._asking.collection, self._asking.only, self._top]

    def _updates(self, view: View, values: Values) -> Updates:
        """What gradio is to send; values of the same component join."""
        updates: dict[Any, dict[str, Any]] = {}
        for name, value in values.items():
            for component, change in self._update(name, value):
                updates.setdefault(component, {}).update(change)
        return {self._tab.view: view, self._tab.seen: view} | {
            component: gr.update(**change) for component, change in updates.items()
        }

    def _update(self, name: str, value: Any) -> list[tuple[Any, Mapping[str, Any]]]:
        """What a value changes; most are simply what the component of their name shows."""
        if name == "form":
            return self._form(*value)
        if name == "only":
            choices, kept = value
            change = {"choices": list(choices)}
            return [(self._asking.only, change if kept is None else change | {"value": kept})]
        component, prop = self._targets.get(name, (None, "value"))
        if component is None:
            component = getattr(self._tab, name)
        if prop == "choices":
            return [(component, {"choices": list(value[0]), "value": value[1]})]
        return [(component, {prop: value})]

    def _form(
        self, mode: str, title: str | None, description: str | None
    ) -> list[tuple[Any, Mapping[str, Any]]]:
        """What the form shows; None leaves a field as it is."""
        panel = self._tab.panel
        fields = [(panel.title, title), (panel.description, description)]
        return [
            (panel.form, {"visible": bool(mode)}),
            (panel.heading, {"value": document_cards.form_heading(mode)}),
            *((field, {"value": value}) for field, value in fields if value is not None),
        ]


_STOPPED: Final = "The import was cancelled; nothing of it was kept."
