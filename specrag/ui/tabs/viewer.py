"""The viewer: a sheet over the page that opens a citation in its document, from whichever tab."""

import itertools
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gradio as gr

from specrag.startup import Startup
from specrag.ui import viewer_cards as cards
from specrag.ui.acts import parse
from specrag.ui.choice import Choice
from specrag.ui.opening import OPEN, TURNS, Opener
from specrag.ui.who import visitor_of

ON_LOAD: Final = (Path(__file__).parents[1] / "viewer.js").read_text(encoding="utf-8")
_READ_AT_ONCE: Final = 4
"""Texts of documents."""
_DRAWN_AT_ONCE: Final = 2
"""Pages; a hostile one takes up to a minute."""
_PAGES: Final = 1000
"""Open pages of which is known what they asked for last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerSheet:
    """The component that events write."""

    sheet: gr.HTML


def build() -> ViewerSheet:
    """Lay the sheet out; outside of all tabs, so that each can open it."""
    return ViewerSheet(sheet=gr.HTML(cards.opening(), elem_id="sr-viewer", apply_default_css=False))


def wire(page: gr.Blocks, viewer: ViewerSheet, startup: Startup, box: gr.Textbox, collection: Choice) -> None:
    """Connect the events.

    Args:
        page: the whole page.
        viewer: the sheet.
        startup: prepares the parts.
        box: its box of `acts.channel`.
        collection: chosen in the Documents tab; documents that are opened there are in it.
    """
    events = _Events(startup)
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    page.load(None, None, None, js=ON_LOAD, api_visibility="private")
    box.input(events.act, [box, collection], viewer.sheet, trigger_mode="multiple", **quiet)


class _Events:
    """What happens when a visitor opens a document or turns its pages."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup
        # those of the loop are few, and every run needs them
        self._reading = ThreadPoolExecutor(_READ_AT_ONCE, thread_name_prefix="specrag-opening")
        self._drawing = ThreadPoolExecutor(_DRAWN_AT_ONCE, thread_name_prefix="specrag-drawing")
        self._keys = itertools.count(1)
        self._latest: OrderedDict[str, str] = OrderedDict()

    async def act(self, message: str, collection: object, request: gr.Request) -> Any:
        """Show what was asked for, unless the same page has asked for something else meanwhile.

        One answer for each message: Gradio sends the second answer of a generator as a change of the first,
        and mixes up two generators that write to one component.
        """
        act = parse(message)
        if act is None or (act.action != OPEN and act.action not in TURNS):
            return gr.skip()
        key, session = str(next(self._keys)), request.session_hash or ""
        self._remember(session, key)
        if not self._startup.state.ready:
            return cards.failed_card(self._startup.state.message, key=key)
        parts = self._startup.parts
        opener = Opener(
            library=parts.library,
            viewer=parts.viewer,
            history=parts.history,
            reading=self._reading,
            drawing=self._drawing,
        )
        sheet = await opener.sheet(visitor_of(request, parts.settings), act, str(collection), key)
        return sheet if self._latest.get(session) == key else gr.skip()

    def _remember(self, session: str, key: str) -> None:
        self._latest[session] = key
        self._latest.move_to_end(session)
        while len(self._latest) > _PAGES:
            self._latest.popitem(last=False)
