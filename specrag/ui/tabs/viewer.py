"""The viewer: a sheet over the page that opens a citation in its document, whichever tab it was clicked in.

A click says what to show ("RUN:PASSAGE" or "document:ID") and nothing of it is believed: the run names the
collection, and whether this visitor may read it is asked each time, before anything of it is shown.
"""

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gradio as gr

from specrag.errors import SpecragError, StoreError
from specrag.startup import Startup
from specrag.tracing.trace import Trace
from specrag.ui import viewer_cards as cards
from specrag.ui.acts import Act, parse
from specrag.ui.evidence import evidence_in, split_evidence
from specrag.ui.live import TICK_S
from specrag.ui.readout import Ref, refs_of, told_of
from specrag.ui.viewer_cards import Target
from specrag.ui.who import visitor_of
from specrag.viewer import PageView
from specrag.visitors import Visitor

ON_LOAD: Final = (Path(__file__).parents[1] / "viewer.js").read_text(encoding="utf-8")
OPEN: Final = "open"
_TURNS: Final = frozenset({"leaf-back", "leaf-on", "leaf-to", "leaf-passage", "leaf-earlier", "leaf-later"})
_DOCUMENT: Final = "document"
_PAGES: Final = 1000
"""Open pages of which is known what they asked for last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerSheet:
    """The component that events write."""

    sheet: gr.HTML


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What to open."""

    collection: str
    document_id: str
    target: Target
    evidence: tuple[str, ...] = ()
    told: tuple[tuple[str, bool], ...] = ()
    """The passage as the trace holds it, cut at its evidence."""


def build() -> ViewerSheet:
    """Lay the sheet out; outside of all tabs, so that each can open it."""
    return ViewerSheet(sheet=gr.HTML(cards.opening(), elem_id="sr-viewer", apply_default_css=False))


def wire(
    page: gr.Blocks, viewer: ViewerSheet, startup: Startup, box: gr.Textbox, collection: gr.Dropdown
) -> None:
    """Connect the events.

    Args:
        page: the whole page.
        viewer: the sheet.
        startup: prepares the parts.
        box: the channel of `acts`.
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
        self._keys = itertools.count(1)
        self._latest: OrderedDict[str, str] = OrderedDict()

    async def act(self, message: str, collection: str, request: gr.Request) -> AsyncGenerator[Any]:
        """Show what was asked for, first its text and then its image; what was asked before is given up."""
        act = parse(message)
        if act is None or (act.action != OPEN and act.action not in _TURNS):
            yield gr.skip()
            return
        key = str(next(self._keys))
        session = request.session_hash or ""
        self._remember(session, key)
        async with aclosing(self._sheets(act, collection, request, key)) as sheets:
            async for sheet in sheets:
                if self._latest.get(session) != key:
                    return
                yield sheet

    def _remember(self, session: str, key: str) -> None:
        self._latest[session] = key
        self._latest.move_to_end(session)
        while len(self._latest) > _PAGES:
            self._latest.popitem(last=False)

    async def _sheets(self, act: Act, collection: str, request: gr.Request, key: str) -> AsyncGenerator[str]:
        if not self._startup.state.ready:
            yield cards.failed_card(self._startup.state.message, key=key)
            return
        who = visitor_of(request, self._startup.parts.settings)
        try:
            wanted = await self._wanted(act, collection)
            async with aclosing(self._pages(who, wanted, act, key)) as pages:
                async for page in pages:
                    yield page
        except SpecragError as error:
            yield cards.failed_card(str(error), key=key)

    async def _pages(self, who: Visitor, wanted: _Wanted, act: Act, key: str) -> AsyncGenerator[str]:
        """The page with its text, and once more with its image if it has one."""
        target = wanted.target
        try:
            view = await asyncio.to_thread(self._open, who, wanted, act, draw=False)
        except StoreError as error:
            if target.ref is None:
                raise
            yield cards.lost_card(target.ref.passage, wanted.told, target, str(error), key=key)
            return
        yield cards.page_card(view, target, key=key, drawing=view.drawable)
        if view.drawable:
            view = await asyncio.to_thread(self._open, who, wanted, act, draw=True)
            yield cards.page_card(view, target, key=f"{key}-drawn")

    def _open(self, who: Visitor, wanted: _Wanted, act: Act, *, draw: bool) -> PageView:
        parts = self._startup.parts
        parts.library.check_readable(who, wanted.collection)
        part, at = _place(act)
        return parts.viewer.open(
            wanted.collection,
            wanted.document_id,
            passage=wanted.target.ref.passage if wanted.target.ref else None,
            evidence=wanted.evidence,
            part=part,
            at=at,
            draw=draw,
        )

    async def _wanted(self, act: Act, collection: str) -> _Wanted:
        """What an id stands for.

        Raises:
            SpecragError: there is no such run, or it has no such passage.
        """
        kind, _, rest = act.id.partition(":")
        if kind == _DOCUMENT:
            return _Wanted(collection=str(collection), document_id=rest, target=Target(id=act.id))
        trace = await self._trace(kind)
        ref = refs_of(trace, "ask").get(rest)
        if ref is None:
            raise StoreError("This passage is not part of the run any more; ask the question again.")
        return _cited(trace, ref, act.id)

    async def _trace(self, run_id: str) -> Trace:
        """A run as it is now, live or kept."""
        async with aclosing(self._startup.parts.runs.follow(run_id, every_s=TICK_S)) as traces:
            async for trace in traces:
                return trace
        raise StoreError("This run has not begun yet; try again in a moment.")


def _cited(trace: Trace, ref: Ref, identity: str) -> _Wanted:
    told, text = told_of(trace, ref), ref.passage.text
    return _Wanted(
        collection=str(trace.config.get("collection", "")),
        document_id=ref.passage.document_id,
        target=Target(id=identity, ref=ref),
        evidence=evidence_in(text, told.rationales, told.answers),
        told=split_evidence(text, told.rationales, told.answers),
    )


def _place(act: Act) -> tuple[int | None, int | None]:
    """The part and the place in its text that a message asks for ("3", "3.20000"); None for what is odd."""
    if act.action == OPEN:
        return None, None
    part, _, at = act.value.partition(".")
    return _number(part), _number(at)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None  # noqa: PLR2004 - digits
