"""What the Compare tab shows at the end of a comparison: numbers, costs, bars, the race to watch again."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

import gradio as gr

from specrag.errors import SpecragError, UsageError
from specrag.events import Event
from specrag.prices import EXAMPLE, EXAMPLE_MACHINE, Prices, prices_from
from specrag.race import Race
from specrag.startup import Startup
from specrag.ui import compare_cards as cards
from specrag.ui.cards import notice
from specrag.ui.compare_figures import stacked
from specrag.ui.compare_numbers import measured
from specrag.ui.compare_reel import reel
from specrag.ui.who import visitor_of

if TYPE_CHECKING:
    from specrag.ui.tabs.compare import CompareTab

Updates: TypeAlias = dict[Any, Any]
Told: TypeAlias = Sequence[Sequence[Event]]
_LOOK_S = 0.25


class Results:
    """The handlers; the id that comes with them is looked at as any other."""

    def __init__(self, startup: Startup, tab: "CompareTab") -> None:
        self._startup = startup
        self._tab = tab

    @property
    def outputs(self) -> list[Any]:
        """What `numbers` writes to."""
        tab = self._tab
        return [tab.table, tab.bars, tab.plot, tab.steps, tab.race, tab.price_message]

    async def numbers(self, request: gr.Request, ended: object, *prices: object) -> Updates:
        """Everything that is known at the end only; what an earlier comparison left is taken away."""
        tab = self._tab
        found = await self._ended(request, ended)
        if found is None:
            return {tab.table: "", tab.bars: gr.update(visible=False), tab.plot: None, tab.steps: ""}
        return await asyncio.to_thread(self._drawn, *found, prices)

    async def price(self, request: gr.Request, ended: object, *prices: object) -> Updates:
        """The table under other prices."""
        found = await self._ended(request, ended)
        if found is None:
            return {self._tab.price_message: _typed(prices)[1]}
        return self._priced(*found, prices)

    def _drawn(self, race: Race, told: Told, prices: tuple[object, ...]) -> Updates:
        tab = self._tab
        before = race.comparison.retrieve_ms or 0.0
        reels = [reel(events, before_ms=before) for events in told]
        figure = stacked(race)
        return {
            **self._priced(race, told, prices),
            tab.race: cards.race_card(race, reels if any(reels) else ()),
            tab.bars: gr.update(visible=figure is not None),
            tab.plot: figure,
            tab.steps: cards.steps(race),
        }

    def _priced(self, race: Race, told: Told, prices: tuple[object, ...]) -> Updates:
        typed, message = _typed(prices)
        table = cards.table(
            race, measured(race, told, typed), typed, example=typed in (EXAMPLE, EXAMPLE_MACHINE)
        )
        return {self._tab.table: table, self._tab.price_message: message}

    async def _ended(self, request: gr.Request, identity: object) -> tuple[Race, Told] | None:
        """The comparison at its end with the events of its runs; None if there is none to show."""
        if not (identity and isinstance(identity, str) and self._startup.state.ready):
            return None
        who, comparisons = visitor_of(request, self._startup.settings), self._startup.parts.comparisons
        try:
            async with aclosing(comparisons.follow(who, identity, every_s=_LOOK_S)) as races:
                seen = [race async for race in races]
            return seen[-1], await comparisons.events(who, identity)
        except SpecragError:  # deleted since, or nothing of theirs: there is nothing to show
            return None


def _typed(prices: tuple[object, ...]) -> tuple[Prices | None, str]:
    """The prices, and the message that stands for them where one is none."""
    kind, *tokens, machine = prices
    try:
        return prices_from(kind, tuple(tokens), machine), ""
    except UsageError as error:
        return None, notice("error", str(error))
