"""The panel of collections: choose one, see what it holds, and make, rename, describe or bring one.

The buttons are part of our own HTML (`templates/collections.html`); what they do is in `documents_events.py`
and `collections_events.py`.
"""

from dataclasses import dataclass

import gradio as gr

from specrag.library.library import OWN
from specrag.library.shelves import DESCRIPTION_LENGTH, OWN_TITLE, TITLE_LENGTH
from specrag.ui.choice import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionsPanel:
    """The components that events read and write."""

    picker: Choice
    card: gr.HTML
    form: gr.Column
    heading: gr.HTML
    title: gr.Textbox
    description: gr.Textbox
    save: gr.Button
    close: gr.Button
    import_: gr.UploadButton
    stop_import: gr.Button
    export: gr.DownloadButton
    exported: gr.Textbox


def build() -> CollectionsPanel:
    """Lay the panel out."""
    picker = Choice(
        choices=[(OWN_TITLE, OWN)], value=OWN, label="Collection", elem_id="sr-documents-collection"
    )
    card = gr.HTML(elem_id="sr-collection-card", apply_default_css=False)
    with gr.Column(visible=False, elem_id="sr-collection-form") as form:
        heading = gr.HTML(elem_id="sr-collection-heading", apply_default_css=False)
        title = gr.Textbox(label="Title", max_length=TITLE_LENGTH, elem_id="sr-collection-title")
        description = gr.Textbox(
            label="Description (optional)",
            max_length=DESCRIPTION_LENGTH,
            lines=2,
            max_lines=4,
            elem_id="sr-collection-description",
        )
        with gr.Row(elem_id="sr-collection-form-buttons"):
            close = gr.Button("Close", size="sm", elem_id="sr-collection-close", min_width=80)
            save = gr.Button("Save", variant="primary", size="sm", elem_id="sr-collection-save", min_width=80)
    import_ = gr.UploadButton("Import", visible="hidden", elem_id="sr-import")
    stop_import = gr.Button("Cancel the import", size="sm", visible=False, elem_id="sr-stop-import")
    export = gr.DownloadButton("Download", visible="hidden", elem_id="sr-export")
    exported = gr.Textbox(visible="hidden", elem_id="sr-exported", label="Exported")
    return CollectionsPanel(
        picker=picker,
        card=card,
        form=form,
        heading=heading,
        title=title,
        description=description,
        save=save,
        close=close,
        import_=import_,
        stop_import=stop_import,
        export=export,
        exported=exported,
    )
