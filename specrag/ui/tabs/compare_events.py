"""What happens when a visitor does something in the Compare tab; everything goes through a comparison's id.

An id may come from anywhere. Whether this visitor may see what it stands for is asked each time, by
`Comparisons`.
"""

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import gradio as gr

from specrag.errors import SpecragError
from specrag.fairness import Wanted
from specrag.race import Race
from specrag.startup import Startup
from specrag.ui import compare_cards as cards
from specrag.ui import compare_words as words
from specrag.ui.acts import parse
from specrag.ui.cards import notice
from specrag.ui.compare_columns import columns
from specrag.ui.options import run_settings, summary
from specrag.ui.scope import scope_of
from specrag.ui.tabs.how import options_from
from specrag.ui.who import visitor_of

if TYPE_CHECKING:
    from specrag.comparing import Comparisons
    from specrag.library.visitors import Visitor
    from specrag.ui.tabs.compare import CompareTab

Updates: TypeAlias = dict[Any, Any]

TICK_S: Final = 0.25
"""How often a page that follows a comparison is told what is new."""
_OPEN: Final = "compare-open"
_DELETE: Final = "compare-delete"
_ID_LENGTH: Final = 40
_PAGES: Final = 1000
"""Open pages of which is known what they show."""


class Events:
    """The handlers."""

    def __init__(self, startup: Startup, tab: "CompareTab", tabs: gr.Tabs) -> None:
        self._startup = startup
        self._tab = tab
        self._tabs = tabs
        self._turns = itertools.count(1)
        self._latest: OrderedDict[str, tuple[int, str]] = OrderedDict()
        """What each open page was last asked to show; whatever it followed before ends by itself."""

    @property
    def live(self) -> list[Any]:
        """What a comparison writes to while it goes on."""
        tab = self._tab
        shown = [tab.comparison, tab.ended, tab.go, tab.stop, tab.status, tab.message]
        return [*shown, tab.race, tab.columns, tab.recent, tab.question, tab.chosen, self._tabs]

    @property
    def looked(self) -> list[Any]:
        """What is brought up to date when the tab is opened."""
        return [self._tab.question, self._tab.collection, self._tab.how, self._tab.recent]

    async def load(self, request: gr.Request) -> AsyncGenerator[Updates]:
        """Open the comparison that the address names; the tab as well, unless it names a run."""
        query = request.query_params
        identity = str(query.get("compare", ""))[:_ID_LENGTH]
        if not identity:
            yield {self._tab.status: gr.skip()}
            return
        if not (query.get("run") or query.get("trace")):
            yield {self._tabs: gr.Tabs(selected="compare")}
        async with aclosing(self._starting()) as told:
            async for update in told:
                yield update
        if not self._startup.state.ready:
            return
        async with aclosing(self._follow(request, identity, opened=True)) as updates:
            async for update in updates:
                yield update

    async def compare(
        self, request: gr.Request, question: object, collection: object, chosen: object, *how: Any
    ) -> AsyncGenerator[Updates]:
        """Start a comparison and follow it."""
        async with aclosing(self._starting()) as told:
            async for update in told:
                yield update
        if not self._startup.state.ready:
            return
        parts, who = self._startup.parts, self._who(request)
        try:
            where, _ = await asyncio.to_thread(scope_of, parts, who, collection, None)
            options = replace(options_from(how), pipeline="speculative")
            _, settings = run_settings(parts.settings, options)
            wanted = Wanted(
                question=question if isinstance(question, str) else "",
                collection=where,
                pipelines=chosen if isinstance(chosen, list) else (),
            )
            identity = await self._comparisons.start(who, wanted, settings)
        except SpecragError as error:
            yield self._failed(str(error))
            return
        async with aclosing(self._follow(request, identity, opened=False)) as updates:
            async for update in updates:
                yield update

    async def _starting(self) -> AsyncGenerator[Updates]:
        """How far the program's start is, until it is over."""
        while not (state := self._startup.state).ready:
            yield {self._tab.status: cards.status_line(state.message)}
            if state.failed:
                return
            await asyncio.to_thread(self._startup.wait, TICK_S)
        yield {self._tab.status: gr.skip()}

    async def stop(self, request: gr.Request, identity: object) -> None:
        """Stop the run that is on, and the rest."""
        if self._startup.state.ready:
            await self._comparisons.stop(self._who(request), str(identity))

    async def act(self, request: gr.Request, text: object, shown: object) -> AsyncGenerator[Updates]:
        """Open or delete one of the recent ones."""
        act = parse(text)
        if act is None or act.action not in (_OPEN, _DELETE) or not self._startup.state.ready:
            yield {self._tab.status: gr.skip()}
            return
        if act.action == _OPEN:
            async with aclosing(self._follow(request, act.id, opened=True)) as updates:
                async for update in updates:
                    yield update
            return
        yield await self._delete(request, act.id, shown=str(shown))

    async def look(
        self,
        request: gr.Request,
        question: object,
        asked: object,
        asked_of: object,
        collection: object,
        *how: Any,
    ) -> Updates:
        """The tab was opened: its collections, its recent comparisons, and the question that was asked."""
        line = cards.how_note(summary(replace(options_from(how), pipeline="speculative")))
        if not self._startup.state.ready:
            return {self._tab.how: line}
        who, parts = self._who(request), self._startup.parts
        _, shown = self._latest.get(str(request.session_hash), (0, ""))
        shelves = await asyncio.to_thread(parts.library.collections, who)
        names = {shelf.name for shelf in shelves}
        taken = not (question or shown)
        kept = next((name for name in ((asked_of,) if taken else ()) + (collection,) if name in names), None)
        update: Updates = {
            self._tab.how: line,
            self._tab.recent: await self._recent(who, shown),
            self._tab.collection: gr.update(
                choices=[(shelf.title, shelf.name) for shelf in shelves], value=kept or shelves[0].name
            ),
        }
        if taken and isinstance(asked, str) and asked.strip():
            update[self._tab.question] = asked
        return update

    async def _follow(self, request: gr.Request, identity: str, *, opened: bool) -> AsyncGenerator[Updates]:
        """Updates until the comparison has ended, or the page shows another one."""
        session, turn = str(request.session_hash), (next(self._turns), identity)
        self._remember(session, turn)
        who, tab = self._who(request), self._tab
        sent: Updates = {}
        first = True
        try:
            async with aclosing(self._comparisons.follow(who, identity, every_s=TICK_S)) as races:
                async for race in races:
                    if self._latest.get(session) != turn:
                        return
                    shown = self._shown(race)
                    if first:
                        shown[tab.recent] = await self._recent(who, identity)
                        shown |= self._asked(race) if opened else {}
                    first = False
                    news = {key: value for key, value in shown.items() if sent.get(key) != value}
                    yield news or {tab.status: gr.skip()}  # gradio needs something to send
                    sent |= shown
        except SpecragError as error:
            yield self._failed(str(error))
            return
        yield {tab.recent: await self._recent(who, identity)}

    def _asked(self, race: Race) -> Updates:
        """What a comparison that is opened asked of whom, so that it can be asked again."""
        made = race.comparison
        return {self._tab.question: made.question, self._tab.chosen: list(made.pipelines)}

    def _shown(self, race: Race) -> Updates:
        tab, over = self._tab, race.stage == "ended"
        shown: Updates = {
            tab.comparison: race.comparison.id,
            tab.ended: race.comparison.id if over else "",
            tab.go: gr.update(interactive=over),
            tab.stop: gr.update(interactive=not over),
            tab.status: cards.status_line(words.status(race)),
            tab.message: notice("error", race.comparison.error) if race.comparison.status == "failed" else "",
            tab.columns: columns(race),
        }
        if not over or not any(trace is not None for trace in race.traces):
            shown[tab.race] = cards.race_card(race)
        return shown

    async def _delete(self, request: gr.Request, identity: str, *, shown: str) -> Updates:
        who = self._who(request)
        try:
            await self._comparisons.delete(who, identity)
        except SpecragError as error:
            return self._failed(str(error))
        gone = identity == shown
        left = await self._recent(who, "" if gone else shown, focus=f"deleted-{identity}")
        update: Updates = {self._tab.recent: left}
        if gone:
            self._remember(str(request.session_hash), (next(self._turns), ""))
            update |= self._empty()
        return update

    def _empty(self) -> Updates:
        tab = self._tab
        return {
            tab.comparison: "",
            tab.ended: "",
            tab.go: gr.update(interactive=True),
            tab.stop: gr.update(interactive=False),
            tab.status: cards.status_line("The comparison was deleted; its runs stay in Traces."),
            tab.message: "",
            tab.race: cards.idle(),
            tab.columns: "",
        }

    def _failed(self, message: str) -> Updates:
        return {
            self._tab.message: notice("error", message),
            self._tab.status: cards.status_line(message),
        }

    async def _recent(self, who: "Visitor", shown: str, *, focus: str = "") -> str:
        everybody = self._startup.settings.access == "shared"
        found = await self._comparisons.recent(who)
        return cards.recent(found, shown, everybody=everybody, focus=focus)

    def _remember(self, session: str, turn: tuple[int, str]) -> None:
        self._latest[session] = turn
        self._latest.move_to_end(session)
        while len(self._latest) > _PAGES:
            self._latest.popitem(last=False)

    def _who(self, request: gr.Request) -> "Visitor":
        return visitor_of(request, self._startup.settings)

    @property
    def _comparisons(self) -> "Comparisons":
        return self._startup.parts.comparisons
