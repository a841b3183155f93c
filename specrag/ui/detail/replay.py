"""A run as it stood at any moment, folded from its stored events: what a replay shows.

The same fold makes the live page, so a replay cannot show anything that the page did not. Events count up to
the first one that is later than the moment; a run that still went on then has the clock of that moment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from specrag import events as e
from specrag.tracing.trace import Trace, TraceFold
from specrag.ui.lanes import draft_numbers

MOST_MOMENTS: Final = 400
"""Pictures of one film; a longer run shows several events in one."""
_SHORT: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point of a run that a replay stops at."""

    at_ms: float
    trace: Trace
    says: str
    """What has happened since the moment before, in a few words."""


def replayed(events: Sequence[e.Event], until_ms: float) -> Trace:
    """The run as the page showed it `until_ms` after its start; at the end, the stored trace.

    Raises:
        ValueError: there are no events, or the first is not `RunStarted`.
    """
    folding = TraceFold()
    for place, event in enumerate(events):
        if place and event.at_ms > until_ms:
            break
        folding.apply(event)
    trace = folding.trace
    if trace.status != "running":
        return trace
    return replace(trace, elapsed_ms=max(trace.elapsed_ms, min(until_ms, events[-1].at_ms)))


def moments(events: Sequence[e.Event], *, most: int = MOST_MOMENTS) -> Iterator[Moment]:
    """The run at every time at which something happened, or at about `most` of them where there are more.

    Raises:
        ValueError: as for `replayed`.
    """
    folding = TraceFold()
    gap = (events[-1].at_ms - events[0].at_ms) / most if events else 0.0
    last, happened = -1.0, list[e.Event]()
    for place, event in enumerate(events):
        trace = folding.apply(event)
        happened.append(event)
        following = events[place + 1].at_ms if place + 1 < len(events) else None
        if following is not None and (following <= event.at_ms or following - last < gap):
            continue
        yield Moment(at_ms=trace.elapsed_ms, trace=trace, says=_says(trace, happened))
        last, happened = event.at_ms, []


def verdict_at(events: Sequence[e.Event]) -> float | None:
    """When it was decided which draft is the answer, or that none is; None if that never came."""
    return next((event.at_ms for event in events if isinstance(event, e.Decided)), None)


def retrieved_at(events: Sequence[e.Event]) -> float | None:
    """When the first passages were there."""
    return next((event.at_ms for event in events if isinstance(event, e.PassagesRetrieved)), None)


def _says(trace: Trace, happened: Sequence[e.Event]) -> str:
    """The event that matters most among those of one moment."""
    told = [(rank, text) for event in happened for rank, text in [_told(trace, event)] if text]
    return max(told, key=lambda one: one[0])[1] if told else ""


def _told(trace: Trace, event: e.Event) -> tuple[int, str]:  # noqa: C901, PLR0911, PLR0912 - one case an event
    """How much an event matters, and what it says."""
    match event:
        case e.RunStarted():
            return 1, "the question is asked"
        case e.QuestionRewritten():
            return 3, "the follow-up is rewritten"
        case e.Queued():
            return 2, f"{event.ahead} ahead in line" if event.ahead else "its turn has come"
        case e.PassagesRetrieved():
            return 4, f"{len(event.passages)} passages are found"
        case e.SubsetsFormed():
            return 4, f"{len(event.subsets)} subsets are formed"
        case e.DraftStarted():
            return 2, f"draft {_number(trace, event.subset_id)} begins to read"
        case e.DraftToken():
            return 1, f"draft {_number(trace, event.subset_id)} writes “{_cut(event.text)}”"
        case e.DraftFinished():
            return 3, f"draft {_number(trace, event.draft.subset_id)} is finished"
        case e.DraftsVerified():
            return 4, "the verifier has read the drafts"
        case e.HopStarted():
            return 4, f"hop {event.number} searches"
        case e.HopToken():
            return 1, f"hop {event.number} notes “{_cut(event.text)}”"
        case e.HopFinished():
            return 3, f"hop {event.hop.number} is finished"
        case e.Decided():
            return 5, "the decision"
        case e.AnswerToken():
            return 1, f"the answer goes on: “{_cut(event.text)}”"
        case e.Answered():
            return 4, "the answer"
        case e.SpanStarted():
            return 0, f"{_cut(event.name)} begins"
        case e.SpanEnded():
            return 0, "a step ends"
        case e.RunFinished() | e.RunFailed() | e.RunCancelled():
            return 6, "the end"
        case e.PromptSent() | e.UsageCounted():
            return 0, ""


def _number(trace: Trace, subset_id: str) -> int:
    return draft_numbers(trace).get(subset_id, 0)


def _cut(text: str) -> str:
    short = " ".join(text.split())
    return short if len(short) <= _SHORT else f"{short[:_SHORT]}…"
