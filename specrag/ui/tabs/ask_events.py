"""What happens in the Ask tab when a visitor does something; all of it goes through the run's id.

The id comes from the browser, so whoever asks is asked for each time: a run that is somebody else's is not
shown, coloured or stopped, and is refused in the words for one that does not exist.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import gradio as gr

from specrag.errors import SpecragError, TraceError, UsageError
from specrag.library.library import SAMPLE, documents_of
from specrag.library.visitors import Visitor
from specrag.pipelines.base import Request, check_question
from specrag.runs import REPLACED
from specrag.startup import Startup
from specrag.types import Exchange
from specrag.ui import cards
from specrag.ui.conversation import exchanges_of
from specrag.ui.live import Show, Updates, follow, header, startup_progress
from specrag.ui.memory import colour_of, memory_of
from specrag.ui.options import run_settings
from specrag.ui.scope import document_choices, scope_of
from specrag.ui.tabs import how
from specrag.ui.who import visitor_of

AGAIN: Final = "again"
"""What the page adds to the id of a run that it has lost and goes on to follow."""
_LONGEST_ID: Final = 40


class AskEvents:
    """The listeners of the Ask tab."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup

    async def ask(  # noqa: PLR0917 - gradio passes the inputs in their order
        self,
        request: gr.Request,
        question: str,
        collection: object,
        only: object,
        colour: str,
        own_run: str,
        follow_up: object,
        shown: str,
        *chosen: Any,
    ) -> AsyncGenerator[Updates]:
        """Start a run and follow it; a run of this page that still goes on is stopped first."""
        show = Show(colour)
        if not self._startup.state.ready:
            yield show.notice(self._startup.state.message)
            return
        parts = self._startup.parts
        try:
            who = visitor_of(request, parts.settings)
            where, documents = await asyncio.to_thread(scope_of, parts, who, collection, only)
            check_question(question or "", limit=parts.settings.max_question_characters)
            name, settings = run_settings(parts.settings, how.options_from(chosen))
            earlier = await self._earlier(who, shown) if follow_up is True else ()
        except SpecragError as error:
            yield show.failed(str(error))
            return
        await parts.runs.stop(own_run, reason=REPLACED)
        asked = Request(question=question, collection=where, documents=documents, earlier=earlier)
        run_id = parts.runs.start(parts.pipeline(name, settings), asked, owner=who.owner or "")
        async with aclosing(follow(self._startup, run_id, show)) as updates:
            async for update in updates:
                yield update

    async def _earlier(self, who: Visitor, shown: str) -> tuple[Exchange, ...]:
        """The conversation up to the answer that the page shows.

        Raises:
            UsageError: it is gone, or somebody else's.
        """
        try:
            trace = await asyncio.to_thread(self._startup.parts.history.trace, who, _id_of(shown))
        except TraceError as error:
            text = "The answer before this question is gone; ask it as a new question, in full."
            raise UsageError(text) from error
        return exchanges_of(trace)

    async def load(self, request: gr.Request, remembered: object = "") -> AsyncGenerator[Updates]:
        """Tell how far the start is, and then show the run of the address."""
        memory = memory_of(remembered)
        show = Show(memory.colour)
        if self._startup.state.failed:
            self._startup.begin()  # a visitor who comes again tries again
        async with aclosing(startup_progress(self._startup, show)) as updates:
            async for update in updates:
                yield update
        run_id = _id_of(request.query_params.get("run", ""))
        if run_id and self._startup.state.ready:
            show = Show(memory.colour, opened=True, again=memory.typed)
            async with aclosing(self._opened(request, run_id, show)) as updates:
                async for update in updates:
                    yield update

    async def show(self, request: gr.Request, message: str, colour: str) -> AsyncGenerator[Updates]:
        """Show a run that the page has shown before, live or kept; "ID again" is one that it has lost."""
        run_id, _, word = str(message).partition(" ")
        show = Show(colour, opened=True, again=word.startswith(AGAIN))
        if self._startup.state.ready:
            async with aclosing(self._opened(request, _id_of(run_id), show)) as updates:
                async for update in updates:
                    yield update

    async def _opened(self, request: gr.Request, run_id: str, show: Show) -> AsyncGenerator[Updates]:
        """Follow a run if this visitor may see it."""
        parts = self._startup.parts
        try:
            who = visitor_of(request, parts.settings)
            await asyncio.to_thread(parts.history.check_readable, who, run_id)
        except SpecragError as error:
            yield show.failed(str(error))
            return
        async with aclosing(follow(self._startup, run_id, show)) as updates:
            async for update in updates:
                yield update

    async def stop(self, request: gr.Request, run_id: str) -> None:
        """Stop a run, if it is this visitor's to stop."""
        if self._startup.state.ready:
            parts = self._startup.parts
            who = visitor_of(request, parts.settings)
            if await asyncio.to_thread(parts.history.owns, who, _id_of(run_id)):
                await parts.runs.stop(run_id)

    async def recolour(self, request: gr.Request, run_id: str, colour: str) -> tuple[Any, Any]:
        """The answer and the board of the shown run in other colours."""
        if not (run_id and self._startup.state.ready):
            return gr.skip(), gr.skip()
        parts = self._startup.parts
        try:
            who = visitor_of(request, parts.settings)
            trace = await asyncio.to_thread(parts.history.trace, who, _id_of(run_id))
        except SpecragError:
            return gr.skip(), gr.skip()
        chosen = colour_of(colour)
        return cards.answer_card(trace, colour=chosen), cards.board(trace, colour=chosen)

    def fresh(self, colour: str) -> tuple[Any, ...]:
        """Begin a new conversation on an empty page."""
        return (*Show(colour).fresh(), False)

    def choose(self, chosen: object, request: gr.Request) -> tuple[Any, str, Any]:
        """Show what goes with a collection: its examples, its size, its documents."""
        collection = chosen if isinstance(chosen, str) else ""
        who = visitor_of(request, self._startup.settings)
        examples = gr.update(visible=collection == SAMPLE)
        return examples, header(self._startup, collection, who), self._only(who, collection)

    def _only(self, who: Visitor, collection: str) -> Any:
        """The documents of a collection, to choose from; nothing is chosen of another one."""
        if not self._startup.state.ready:
            return gr.skip()
        parts = self._startup.parts
        try:
            parts.library.check_readable(who, collection)
            known = documents_of(parts.store, collection)
        except SpecragError:
            known = []
        return gr.update(choices=document_choices(known), value=[])


def _id_of(text: object) -> str:
    """An id as a client may have sent it, cut to a length that can be looked up."""
    return text[:_LONGEST_ID] if isinstance(text, str) else ""
