"""Whether the program that waits for an answer is still there.

Gradio goes on with a call whose connection was closed, and so would the models; all that it notes is that
nobody is left to be told. So whatever makes models work looks now and then, and stops what nobody waits for.
A program that has not yet come for its answer has not left: it may ask first and fetch later.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final

from gradio.context import LocalContext
from starlette.requests import Request

LEFT: Final = "The program that asked has closed its connection."
"""Why a run was stopped that nobody waits for."""


def watch(request: Request) -> None:
    """Look at the connection of this request from here on, in this task; it must be one that is open."""
    _LOOK.set(request.is_disconnected)


async def has_left() -> bool:
    """Whether the program whose call this task answers is gone."""
    return await _LOOK.get()()


async def _left_gradio() -> bool:
    page, call = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    if page is None or call is None:
        return False
    queue = page._queue  # noqa: SLF001 - gradio tells it in no other place
    return any(job._id == call and not job.alive for jobs in queue.active_jobs for job in jobs or ())  # noqa: SLF001 - the same


_LOOK: Final[ContextVar[Callable[[], Awaitable[bool]]]] = ContextVar("has_left", default=_left_gradio)
