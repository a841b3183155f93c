"""The Documents tab: drop files, see each on its way into the collection, look at its chunks, delete it.

The state of a file lives on the server (`ingest/jobs.py`), so a reload shows it again. An upload is copied to
a place of our own at once and gradio's temporary copy is deleted: whoever knew its address could fetch it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from specrag.errors import SpecragError
from specrag.ingest.loaders import SUFFIXES
from specrag.library import OWN, SAMPLE, documents_of
from specrag.startup import Startup
from specrag.ui import cards
from specrag.ui.live import header
from specrag.ui.tabs.ask import AskTab

POLL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsTab:
    """The components that events read and write."""

    collection: gr.Dropdown
    upload: gr.File
    message: gr.HTML
    table: gr.HTML
    selected: gr.Dropdown
    show: gr.Button
    delete: gr.Button
    cancel: gr.Button
    actions: gr.Row
    chunks: gr.HTML
    timer: gr.Timer


def build(startup: Startup) -> DocumentsTab:
    """Lay the tab out."""
    settings = startup.settings
    limits = (
        f"{', '.join(SUFFIXES)} and plain text; at most {settings.max_file_mb} MB and "
        f"{settings.max_pages:,} pages a file. "
        "Everyone who can open this page can ask these documents."
    )
    with gr.Row(elem_id="sr-documents-row"):
        collection = gr.Dropdown(
            choices=[("Your documents", OWN), ("Sample (read-only)", SAMPLE)],
            value=OWN,
            label="Collection",
            elem_id="sr-documents-collection",
            scale=1,
        )
        upload = gr.File(
            file_count="multiple",
            label="Add files",
            elem_id="sr-upload",
            height=140,
            scale=3,
        )
    gr.HTML(cards.notice("info", limits), elem_id="sr-limits", apply_default_css=False)
    message = gr.HTML(elem_id="sr-documents-message", apply_default_css=False)
    table = gr.HTML(elem_id="sr-documents-table", apply_default_css=False)
    cancel = gr.Button("Cancel what is being read", elem_id="sr-cancel-jobs", size="sm", visible=False)
    with gr.Row(elem_id="sr-document-actions", visible=False) as actions:
        selected = gr.Dropdown(choices=[], label="Document", elem_id="sr-document", scale=3)
        show = gr.Button("Show chunks", elem_id="sr-show-chunks", scale=1)
        delete = gr.Button("Delete", variant="stop", elem_id="sr-delete-document", scale=1)
    chunks = gr.HTML(elem_id="sr-chunks", apply_default_css=False)
    timer = gr.Timer(POLL_S, active=False)
    return DocumentsTab(
        collection=collection,
        upload=upload,
        message=message,
        table=table,
        selected=selected,
        show=show,
        delete=delete,
        cancel=cancel,
        actions=actions,
        chunks=chunks,
        timer=timer,
    )


def wire(  # noqa: PLR0917 - the page's parts, each of another type
    page: gr.Blocks, tab: DocumentsTab, startup: Startup, asking: AskTab, top: gr.HTML, act: gr.Textbox  # noqa: ARG001
) -> None:
    """Connect the tab's events."""
    events = _Events(startup)
    board = [tab.message, tab.table, tab.selected, tab.timer, tab.actions, tab.cancel, top]
    where = [tab.collection, asking.collection]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    uploaded = [tab.upload, asking.collection, *board]
    tab.upload.upload(events.upload, [tab.upload, *where], uploaded, **quiet)
    tab.timer.tick(events.refresh, where, board, **quiet)
    tab.collection.change(events.refresh, where, board, **quiet)
    tab.delete.click(events.delete, [tab.selected, *where], [tab.chunks, *board], **quiet)
    tab.show.click(events.show, [tab.selected, tab.collection], tab.chunks, **quiet)
    tab.cancel.click(events.cancel, where, board, **quiet)
    page.load(events.refresh, where, board, **quiet)


class _Events:
    """What happens when a visitor does something in this tab."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup

    def refresh(self, collection: str, asked: str) -> tuple[Any, ...]:
        return self._board(collection, asked)

    def upload(self, files: list[str] | None, collection: str, asked: str) -> tuple[Any, ...]:
        problems = [problem for file in files or [] if (problem := self._submit(file, collection))]
        message = "".join(cards.notice("error", problem) for problem in problems)
        taken = len(problems) < len(files or [])
        board = self._board(collection, OWN if taken else asked, message or " ")
        return (None, gr.update(value=OWN) if taken else gr.skip(), *board)

    def delete(self, document: str | None, collection: str, asked: str) -> tuple[Any, ...]:
        return ("", *self._board(collection, asked, self._deleted(document, collection), clear=True))

    def show(self, document: str | None, collection: str) -> str:
        if not document or not self._startup.state.ready:
            return cards.notice("info", "Choose a document first.")
        try:
            return cards.chunks_list(self._startup.parts.store.chunks(collection, document))
        except SpecragError as error:
            return cards.notice("error", str(error))

    def cancel(self, collection: str, asked: str) -> tuple[Any, ...]:
        if self._startup.state.ready:
            for job in self._startup.parts.jobs.jobs(collection):
                self._startup.parts.jobs.cancel(job.id)
        return self._board(collection, asked)

    def _board(
        self, collection: str, asked: str, message: str = "", *, clear: bool = False
    ) -> tuple[Any, ...]:
        """Message, table, choices, timer, buttons and the page's header as they are now."""
        if not self._startup.state.ready:
            starting = cards.notice("info", self._startup.state.message)
            return gr.skip(), starting, gr.skip(), gr.Timer(active=True), gr.skip(), gr.skip(), gr.skip()
        try:
            known = documents_of(self._startup.parts.store, collection)
        except SpecragError as error:
            away = cards.notice("error", str(error))  # the timer looks again, and replaces this
            return (
                message or gr.skip(),
                away,
                gr.skip(),
                gr.Timer(active=True),
                gr.skip(),
                gr.skip(),
                gr.skip(),
            )
        jobs = _jobs(self._startup, collection)
        choices = [(f"{item.title} ({item.source})", item.id) for item in known]
        busy = any(job.state in ("queued", "reading", "embedding") for job in jobs)
        return (
            message or gr.skip(),
            cards.documents_table(known, jobs),
            gr.update(choices=choices, value=None) if clear else gr.update(choices=choices),
            gr.Timer(active=busy),
            gr.update(visible=bool(known)),
            gr.update(visible=busy),
            header(self._startup, asked),
        )

    def _submit(self, file: str, collection: str) -> str | None:
        """Queue an uploaded file; returns a sentence if it is refused."""
        path = Path(file)
        try:
            if not self._startup.state.ready:
                return "The program is still starting; add the file again in a moment."
            if collection == SAMPLE:
                return f"The sample collection is read-only; choose “Your documents” to add {path.name}."
            self._startup.parts.jobs.submit(path, path.name, collection)
        except SpecragError as error:
            return str(error)
        finally:
            path.unlink(missing_ok=True)
        return None

    def _deleted(self, document: str | None, collection: str) -> str:
        """Delete a document; returns what to tell the visitor."""
        if not document or not self._startup.state.ready:
            return cards.notice("info", "Choose a document first.")
        if collection == SAMPLE:
            return cards.notice("error", "The sample collection is read-only.")
        try:
            removed = self._startup.parts.store.delete(collection, document)
        except SpecragError as error:
            return cards.notice("error", str(error))
        return cards.notice(
            "success", f"Deleted, with its {removed} chunks; nothing of it can be found any more."
        )


def _jobs(startup: Startup, collection: str) -> list[cards.JobView]:
    return [
        cards.JobView(
            id=job.id,
            name=job.name,
            state=job.state,
            done=job.done,
            total=job.total,
            pages=job.pages,
            chunks=job.chunks,
            message=job.message,
        )
        for job in startup.parts.jobs.jobs(collection)
    ]
