"""What a lane of the race says at each moment, live and when the race is watched again from stored events."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from specrag.events import Event
from specrag.tracing.trace import Trace, TraceFold
from specrag.ui.compare_phases import begun_ms
from specrag.ui.sentences import status_text
from specrag.ui.written import answer_text

Frame: TypeAlias = tuple[int, str]
"""From when on (milliseconds of the race) what is said."""

_TAIL: Final = 160
"""Characters of a growing answer; its end is what is new."""
_EVERY_MS: Final = 100.0
"""A reader follows no quicker change."""


def said(trace: Trace) -> str:
    """The answer as far as it is written, or else what is being done."""
    text = answer_text(trace)
    if text and trace.status == "running":
        return text if len(text) <= _TAIL else f"…{text[-_TAIL:]}"
    if text and trace.status == "done":
        return text
    written = sum(len(draft.tokens) for draft in trace.drafts)
    drafting = written and trace.status == "running" and any(d.finish_reason is None for d in trace.drafts)
    return f"{status_text(trace)}, {written:,} tokens written" if drafting else status_text(trace)


def reel(events: Sequence[Event], *, before_ms: float) -> tuple[Frame, ...]:
    """What is said from when on; `before_ms` is what came before the run's own zero."""
    folding, frames = TraceFold(), list[Frame]()
    drawn = -_EVERY_MS
    for place, event in enumerate(events):
        trace = folding.apply(event)
        if event.at_ms - drawn < _EVERY_MS and place + 1 < len(events):
            continue
        drawn = event.at_ms
        text = said(trace)
        if not frames or frames[-1][1] != text:
            frames.append((round(before_ms + max(0.0, event.at_ms - begun_ms(trace))), text))
    return tuple(frames)
