"""From traces to what the Ask tab's components show, sending only what has changed."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import gradio as gr

from specrag.errors import SpecragError
from specrag.library.visitors import Visitor
from specrag.runs import REPLACED
from specrag.startup import Startup
from specrag.tracing.trace import Trace
from specrag.types import Role
from specrag.ui import cards
from specrag.ui.figures import waterfall
from specrag.ui.memory import colour_of
from specrag.ui.written import answer_tokens

TICK_S: Final = 0.25
BUTTONS_S: Final = 1.0
"""How often a page that follows a run is told what is new."""
NAMES: Final = (
    "run_id",
    "own_run",
    "ask",
    "stop",
    "status",
    "answer",
    "passages",
    "colour",
    "board",
    "timeline",
    "waterfall",
    "plot",
    "question",
    "feedback",
)
"""The components that a run writes to, in the order of `Updates`."""

COLOURS: Final = (
    ("No colours", "none"),
    ("Drafter's probability", "drafter"),
    ("Verifier's probability", "verifier"),
)
"""Whose probability may colour the tokens."""

ROLES: Final[tuple[Role, ...]] = ("drafter", "verifier")

Updates = tuple[Any, ...]


def header(startup: Startup, collection: str, who: Visitor | None = None) -> str:
    """The top of the page; who drafts and who verifies joins the name once the models are loaded.

    `who` looks; without one, nothing is told of a collection but that of the sample.
    """
    models = ""
    if startup.state.ready:
        try:
            models = _models(startup, collection, who)
        except SpecragError as error:
            models = cards.notice("error", str(error))
    brand = '<h1 class="sr-brand">spec<span>rag</span></h1>'
    return f'<header class="sr sr-header">{brand}{models}</header>'


def _models(startup: Startup, collection: str, who: Visitor | None) -> str:
    parts = startup.parts
    shelves = parts.library.collections(who or Visitor(id="", passing=True))
    shelf = next((item for item in shelves if item.name == collection), shelves[0])
    return cards.models_line(
        parts.drafter.info, parts.verifier.info, shelf.title, shelf.documents, shelf.chunks
    )


class Show:
    """Turns traces into updates of `AskTab.live`, sending only what has changed."""

    def __init__(self, colour: str, *, opened: bool = False, again: bool = False) -> None:
        """What the page shows already.

        Args:
            colour: whose probability colours the tokens.
            opened: the run comes from a link or from the history, so its question is shown as well.
            again: the page has lost the run that it followed; what is being typed stays as it is.
        """
        self._colour = colour_of(colour)
        self.opened = opened or again
        self._again = again
        self._sent: dict[str, object] = {}
        self._buttons_at = time.monotonic()

    def trace(self, trace: Trace, *, sharing: int = 0) -> Updates:
        """A run, live or finished; `sharing` other runs use the models at the same time."""
        running = trace.status == "running"
        roles = roles_of(trace)
        self._tell_buttons_again()
        return self._updates(
            run_id=trace.run_id,
            **({} if self.opened else {"own_run": trace.run_id}),
            ask=("interactive", not running),
            stop=("interactive", running),
            status=cards.status_line(trace, sharing=sharing),
            answer=cards.answer_card(trace, colour="none" if running else self._colour),
            passages=cards.passages_strip(trace) if trace.passages else "",
            colour=("roles", () if running else roles),
            board=cards.board(trace, colour="none" if running else self._colour),
            timeline=cards.timeline(trace),
            waterfall=("visible", not running and bool(trace.spans)),
            plot=None if running or not trace.spans else trace,
            **({"question": trace.question} if self.opened and not self._again else {}),
            **({"feedback": ""} if running else {}),
        )

    def loading(self, fraction: float | None, message: str) -> Updates:
        """The start of the program."""
        return self._updates(
            status=cards.status_line(None, idle=message),
            answer=cards.loading(fraction, message),
            ask=("interactive", False),
        )

    def failed(self, message: str, *, ready: bool = True) -> Updates:
        """An error outside a run; `ready`: whether anything can be asked nevertheless."""
        return self._updates(
            status=cards.status_line(None, idle=message),
            answer=cards.notice("error", message),
            passages="",
            colour=("roles", ()),
            board="",
            timeline="",
            waterfall=("visible", False),
            feedback="",
            ask=("interactive", ready),
            stop=("interactive", False),
        )

    def notice(self, message: str) -> Updates:
        """A word on the status line, nothing else."""
        return self._updates(status=cards.status_line(None, idle=message))

    def idle(self) -> Updates:
        """Nothing asked yet."""
        empty = cards.empty_state(
            "Watch it think",
            "Ask a question about the documents: several drafts are written side by side from different "
            "passages, a verifier reads them in one pass, and the best one is the answer.",
        )
        return self._updates(
            status=cards.status_line(None),
            answer=empty,
            ask=("interactive", True),
            stop=("interactive", False),
            colour=("roles", ()),
        )

    def fresh(self) -> Updates:
        """Nothing asked any more."""
        cleared = ("run_id", "passages", "board", "timeline", "question", "feedback")
        empty = self._updates(**dict.fromkeys(cleared, ""), waterfall=("visible", False))
        shown = self.idle()
        return tuple(
            later if name in ("status", "answer", "ask", "stop", "colour") else first
            for name, first, later in zip(NAMES, empty, shown, strict=True)
        )

    def _tell_buttons_again(self) -> None:
        """Once in a while: a page that is still being built, as after a reload, can lose the first word."""
        if time.monotonic() - self._buttons_at > BUTTONS_S:
            self._buttons_at = time.monotonic()
            for name in ("ask", "stop"):
                self._sent.pop(name, None)

    def _updates(self, **values: object) -> Updates:
        return tuple(self._update(name, values[name]) if name in values else gr.skip() for name in NAMES)

    def _update(self, name: str, value: object) -> Any:
        if name in self._sent and self._sent[name] == value:
            return gr.skip()
        self._sent[name] = value
        match value:
            case ("interactive", bool() as setting):
                return gr.update(interactive=setting)
            case ("visible", bool() as setting):
                return gr.update(visible=setting)
            case ("roles", tuple() as roles):
                return self._colours(roles)
            case Trace():
                return waterfall(value)
            case _:
                return value

    def _colours(self, roles: tuple[str, ...]) -> Any:
        """Offer the colours that the run has; one that it lacks is no longer chosen."""
        if not roles:
            return gr.update(visible=False, choices=list(COLOURS), value=self._colour)
        chosen = self._colour if self._colour in roles else "none"
        choices = [choice for choice in COLOURS if choice[1] in ("none", *roles)]
        return gr.update(visible=True, choices=choices, value=chosen)


async def follow(startup: Startup, run_id: str, show: Show) -> AsyncGenerator[Updates]:
    """Updates for a run until it has ended."""
    try:
        async with aclosing(startup.parts.runs.follow(run_id, every_s=TICK_S)) as traces:
            async for trace in traces:
                replaced = trace.error is not None and trace.error.message == REPLACED
                if replaced and not show.opened:
                    return  # the page shows its next run by now
                yield show.trace(trace, sharing=sharing(startup))
    except SpecragError as error:
        yield show.failed(str(error))


def sharing(startup: Startup) -> int:
    """Other runs that use the models now; those that wait in line use nothing."""
    parts = startup.parts
    return max(0, min(parts.runs.active, parts.settings.concurrent_runs) - 1)


async def startup_progress(startup: Startup, show: Show) -> AsyncGenerator[Updates]:
    """Updates until the program is ready or has failed to start."""
    while not (state := startup.state).ready:
        if state.failed:
            yield show.failed(state.message, ready=False)
            return
        yield show.loading(state.fraction, state.message)
        await asyncio.to_thread(startup.wait, TICK_S)
    yield show.idle()


def roles_of(trace: Trace) -> tuple[Role, ...]:
    """The models that said how probable they find what was written."""
    drafted = any(draft.tokens for draft in trace.drafts)
    read = any(draft.verifier_tokens for draft in trace.drafts)
    told = {"drafter": drafted, "verifier": read}
    return tuple(role for role in ROLES if told[role] or answer_tokens(trace, role))
