"""From a click to what the viewer shows: which document is meant, and whether this visitor may see it.

Nothing of a click is believed. The run says which passage and which collection are meant; whether the visitor
may see that run and read that collection is asked each time, before anything of them is looked for. What the
run itself holds of a passage may be shown to whoever may see the run.
"""

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Final

from specrag.errors import SpecragError, StoreError
from specrag.library.library import Library
from specrag.library.visitors import Visitor
from specrag.tracing.history import History
from specrag.tracing.trace import Trace
from specrag.ui import viewer_cards as cards
from specrag.ui.acts import Act
from specrag.ui.evidence import split_evidence
from specrag.ui.readout import Ref, refs_of, told_of
from specrag.ui.viewer_cards import Target
from specrag.viewer import PageView, Viewer

OPEN: Final = "open"
DRAW: Final = "leaf-draw"
TURNS: Final = frozenset(
    {DRAW, "leaf-back", "leaf-on", "leaf-to", "leaf-passage", "leaf-earlier", "leaf-later"}
)
"""What a button of the sheet asks for; its value says which part, and where in its text."""
_DOCUMENT: Final = "document"
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What to open."""

    collection: str
    document_id: str
    target: Target
    told: tuple[tuple[str, bool], ...] = ()
    """The passage as the trace holds it, cut at its evidence."""

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(text for text, marked in self.told if marked)


class Opener:
    """Opens documents for visitors. Everything here belongs to one event loop."""

    def __init__(
        self,
        *,
        library: Library,
        viewer: Viewer,
        history: History,
        reading: Executor | None = None,
        drawing: Executor | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            library: who may see what.
            viewer: what it looks like.
            history: what was cited, in the runs that somebody may see.
            reading: the threads on which texts are put together; without them, those of the loop.
            drawing: the same for pages that are drawn, which takes up to a minute.
        """
        self._reading = reading
        self._drawing = drawing
        self._library = library
        self._viewer = viewer
        self._history = history

    async def sheet(self, who: Visitor, act: Act, collection: str, key: str) -> str:
        """The sheet with what was asked for, or with a sentence.

        A page that can be drawn comes with its text first; the sheet then asks for the drawing by itself.

        Args:
            who: asks.
            act: "RUN:PASSAGE", or "document:ID" of a document in `collection`; and the page.
            collection: chosen in the Documents tab.
            key: differs between any two sheets.
        """
        try:
            wanted = await self._wanted(who, act, collection)
            return await self._page(who, wanted, act, key)
        except SpecragError as error:
            return cards.failed_card(str(error), key=key)

    async def _page(self, who: Visitor, wanted: _Wanted, act: Act, key: str) -> str:
        target = wanted.target
        try:
            work = partial(self._open, who, wanted, act)
            threads = self._drawing if act.action == DRAW else self._reading
            view = await asyncio.get_running_loop().run_in_executor(threads, work)
        except StoreError as error:
            if target.ref is None:
                raise
            return cards.lost_card(target.ref.passage, wanted.told, target, str(error), key=key)
        return cards.page_card(view, target, key=key)

    def _open(self, who: Visitor, wanted: _Wanted, act: Act) -> PageView:
        self._library.check_readable(who, wanted.collection)
        part, at = _place(act)
        return self._viewer.open(
            wanted.collection,
            wanted.document_id,
            passage=wanted.target.ref.passage if wanted.target.ref else None,
            evidence=wanted.evidence,
            part=part,
            at=at,
            draw=act.action == DRAW,
        )

    async def _wanted(self, who: Visitor, act: Act, collection: str) -> _Wanted:
        """What an id stands for.

        Raises:
            SpecragError: they see no such run, or it has no such passage.
        """
        kind, _, rest = act.id.partition(":")
        if kind == _DOCUMENT:
            return _Wanted(collection=str(collection), document_id=rest, target=Target(id=act.id))
        # the threads that read, not the loop's own: looking a run up reads the file of all runs
        look = partial(self._history.trace, who, kind)
        trace = await asyncio.get_running_loop().run_in_executor(self._reading, look)
        ref = refs_of(trace, "ask").get(rest)
        if ref is None:
            raise StoreError("This passage is not part of the run any more; ask the question again.")
        return _cited(trace, ref, act.id)


def _cited(trace: Trace, ref: Ref, identity: str) -> _Wanted:
    told = told_of(trace, ref)
    return _Wanted(
        collection=str(trace.config.get("collection", "")),
        document_id=ref.passage.document_id,
        target=Target(id=identity, ref=ref),
        told=split_evidence(ref.passage.text, told.rationales, told.answers),
    )


def _place(act: Act) -> tuple[int | None, int | None]:
    """The part and the place in its text that a message asks for ("3", "3.20000"); None for what is odd."""
    if act.action == OPEN:
        return None, None
    part, _, at = act.value.partition(".")
    return _number(part), _number(at)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None
