"""A recorded run as a row of pictures: what the Ask tab showed, moment by moment.

The pictures come from the same pure functions as the live page and hold no copy of anything: a frame lists
the parts that changed, and the browser keeps the rest. Playing them needs neither the server nor a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from specrag.events import (
    Answered,
    DraftFinished,
    DraftsVerified,
    Event,
    PassagesRetrieved,
    RunFinished,
    RunStarted,
    SubsetsFormed,
)
from specrag.tracing.trace import Trace, TraceFold
from specrag.ui import cards
from specrag.ui.markup import render
from specrag.ui.tour_steps import StepKey

TICK_MS: Final = 200.0
"""Time of the run between two frames; at twice the speed ten of them are shown in a second."""
_SCOPE: Final = "tour"
_ALWAYS: Final = (
    RunStarted,
    PassagesRetrieved,
    SubsetsFormed,
    DraftFinished,
    DraftsVerified,
    Answered,
    RunFinished,
)

_STOPS: Final[dict[StepKey, type[Event]]] = {
    "question": RunStarted,
    "passages": PassagesRetrieved,
    "subsets": SubsetsFormed,
    "drafts": DraftFinished,
    "scores": DraftsVerified,
    "decision": RunFinished,
    "trace": RunFinished,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The page at one moment of the run."""

    at_ms: float
    parts: dict[str, str]
    """HTML of the parts that are another than in the frame before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """All frames, and where each step of the tour stands still."""

    frames: tuple[Frame, ...]
    stops: dict[StepKey, int]


def film(events: Sequence[Event]) -> Film:
    """The frames of a finished speculative run."""
    folding, frames, stops = TraceFold(), list[Frame](), dict[StepKey, int]()
    sent: dict[str, str] = {}
    for event in events:
        trace = folding.apply(event)
        due = not frames or event.at_ms - frames[-1].at_ms >= TICK_MS
        if not (due or isinstance(event, _ALWAYS)):
            continue
        now = parts_of(trace)
        changed = {name: html for name, html in now.items() if sent.get(name) != html}
        frames.append(Frame(at_ms=event.at_ms, parts=changed))
        sent = now
        stops.update(_stops(event, len(frames) - 1))
    return Film(frames=tuple(frames), stops=stops)


def _stops(event: Event, frame: int) -> dict[StepKey, int]:
    """The steps that stand still after this event; a later one of the same kind counts."""
    return {key: frame for key, kind in _STOPS.items() if isinstance(event, kind)}


def parts_of(trace: Trace) -> dict[str, str]:
    """What the Ask tab shows of a run, by part."""
    return {
        "question": render("tour_question", question=trace.question),
        "status": cards.status_line(trace),
        "answer": cards.answer_card(trace, scope=_SCOPE),
        "passages": cards.passages_strip(trace, scope=_SCOPE) if trace.passages else "",
        "board": cards.board(trace, scope=_SCOPE),
        "timeline": cards.timeline(trace),
    }
