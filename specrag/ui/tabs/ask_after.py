"""What stands around an answer once it has come: the visitor's view of it, and the runs of this page."""

import asyncio
from typing import Any, Final

import gradio as gr

from specrag.errors import SpecragError, UsageError
from specrag.library.visitors import Visitor
from specrag.startup import Startup
from specrag.tracing.search import RunSummary
from specrag.types import Rating
from specrag.ui.acts import Act, parse
from specrag.ui.ask_history import feedback_card, history_card
from specrag.ui.memory import memory_of
from specrag.ui.who import visitor_of

_RATINGS: Final[dict[str, Rating | None]] = {"up": "up", "down": "down", "none": None}
_ACTS: Final = frozenset({"answer-up", "answer-down", "answer-comment"})


class AfterEvents:
    """Listeners that read what is kept of runs; each returns the feedback and the history."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup

    async def show(self, request: gr.Request, shown: str, remembered: str) -> tuple[Any, Any]:
        """Show what is known of the run above and of those before it."""
        if not self._startup.state.ready:
            return gr.skip(), gr.skip()
        who = visitor_of(request, self._startup.settings)
        return await asyncio.to_thread(self._shown, who, str(shown), remembered)

    async def act(self, request: gr.Request, message: str, shown: str, remembered: str) -> tuple[Any, Any]:
        """Note what a visitor thinks of an answer."""
        act = parse(message)
        if act is None or act.action not in _ACTS or not self._startup.state.ready:
            return gr.skip(), gr.skip()
        who = visitor_of(request, self._startup.settings)
        said = await asyncio.to_thread(self._rated, who, act)
        return await asyncio.to_thread(self._shown, who, str(shown), remembered, said)

    def _rated(self, who: Visitor, act: Act) -> str:
        """Rate, and return the sentence if that cannot be."""
        history = self._startup.parts.history
        try:
            before = history.summary(who, act.id)
            if act.action == "answer-comment":
                history.rate(who, act.id, before.feedback, act.value)
            elif act.value in _RATINGS:
                history.rate(who, act.id, _RATINGS[act.value], before.comment)
            else:
                raise UsageError("A rating is up, down or nothing.")
        except SpecragError as error:
            return str(error)
        return ""

    def _shown(self, who: Visitor, shown: str, remembered: str, said: str = "") -> tuple[str, str]:
        runs = [run for run_id in memory_of(remembered).runs if (run := self._summary(who, run_id))]
        history = self._startup.parts.history
        own = frozenset(run.run_id for run in runs if history.owns(who, run.run_id))
        now = self._summary(who, shown)
        rated = now if now is not None and now.status == "done" and history.owns(who, shown) else None
        return feedback_card(rated, said=said) if rated else "", history_card(runs, shown=shown, own=own)

    def _summary(self, who: Visitor, run_id: str) -> RunSummary | None:
        """A run that has ended, as they may see it."""
        try:
            return self._startup.parts.history.summary(who, run_id) if run_id else None
        except SpecragError:
            return None
