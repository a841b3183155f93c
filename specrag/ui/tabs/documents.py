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


def wire(page: gr.Blocks, tab: DocumentsTab, startup: Startup, asking: AskTab) -> None:
    """Connect the tab's events."""
    board = [tab.message, tab.table, tab.selected, tab.timer, tab.actions, tab.cancel]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

    def refresh(collection: str, message: str = "", *, clear: bool = False) -> tuple[Any, ...]:
        if not startup.state.ready:
            starting = cards.notice("info", startup.state.message)
            return gr.skip(), starting, gr.skip(), gr.Timer(active=True), gr.skip(), gr.skip()
        parts = startup.parts
        known = documents_of(parts.store, collection)
        jobs = _jobs(startup, collection)
        choices = [(f"{item.title} ({item.source})", item.id) for item in known]
        busy = any(job.state in ("queued", "reading", "embedding") for job in jobs)
        return (
            message or gr.skip(),
            cards.documents_table(known, jobs),
            gr.update(choices=choices, value=None) if clear else gr.update(choices=choices),
            gr.Timer(active=busy),
            gr.update(visible=bool(known)),
            gr.update(visible=busy),
        )

    def on_upload(files: list[str] | None, collection: str) -> tuple[Any, ...]:
        problems = [problem for file in files or [] if (problem := _submit(startup, file, collection))]
        message = "".join(cards.notice("error", problem) for problem in problems)
        own = gr.update(value=OWN) if len(problems) < len(files or []) else gr.skip()
        return (None, own, *refresh(collection, message or " "))

    def on_delete(document: str | None, collection: str) -> tuple[Any, ...]:
        return ("", *refresh(collection, _delete(startup, document, collection), clear=True))

    def on_show(document: str | None, collection: str) -> str:
        if not document or not startup.state.ready:
            return cards.notice("info", "Choose a document first.")
        try:
            return cards.chunks_list(startup.parts.store.chunks(collection, document))
        except SpecragError as error:
            return cards.notice("error", str(error))

    def on_cancel(collection: str) -> tuple[Any, ...]:
        if startup.state.ready:
            for job in startup.parts.jobs.jobs(collection):
                startup.parts.jobs.cancel(job.id)
        return refresh(collection)

    tab.upload.upload(
        on_upload, [tab.upload, tab.collection], [tab.upload, asking.collection, *board], **quiet
    )
    tab.timer.tick(refresh, tab.collection, board, **quiet)
    tab.collection.change(refresh, tab.collection, board, **quiet)
    tab.delete.click(on_delete, [tab.selected, tab.collection], [tab.chunks, *board], **quiet)
    tab.show.click(on_show, [tab.selected, tab.collection], tab.chunks, **quiet)
    tab.cancel.click(on_cancel, tab.collection, board, **quiet)
    page.load(refresh, tab.collection, board, **quiet)


def _submit(startup: Startup, file: str, collection: str) -> str | None:
    """Queue an uploaded file; returns a sentence if it is refused."""
    path = Path(file)
    try:
        if not startup.state.ready:
            return "The program is still starting; add the file again in a moment."
        if collection == SAMPLE:
            return f"The sample collection is read-only; choose “Your documents” to add {path.name}."
        startup.parts.jobs.submit(path, path.name, collection)
    except SpecragError as error:
        return str(error)
    finally:
        path.unlink(missing_ok=True)
    return None


def _delete(startup: Startup, document: str | None, collection: str) -> str:
    if not document or not startup.state.ready:
        return cards.notice("info", "Choose a document first.")
    if collection == SAMPLE:
        return cards.notice("error", "The sample collection is read-only.")
    try:
        removed = startup.parts.store.delete(collection, document)
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
