"""The pictures of a replay, made once on the server and shown by the browser at its own pace.

A picture is the same HTML that the live page would have got at that moment: status, answer and board. From
one to the next only a few letters change, so a film holds the differences. That makes it smooth (no request
while it plays), seekable, and nothing runs on for a page that is gone. The timeline needs no pictures: the
browser uncovers the finished one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from specrag.events import Event
from specrag.tracing.trace import Trace
from specrag.ui import cards
from specrag.ui.detail.replay import MOST_MOMENTS, moments, replayed, retrieved_at, verdict_at
from specrag.ui.lanes import lanes, ticks
from specrag.ui.markup import render

Change: TypeAlias = list[Any]
"""[first line, lines that go, new lines], or [line, letters kept at its start, at its end, those between]."""

SCOPE: Final = "detail"
"""Passages that a picture points at are those of the page's own list."""
_FEWEST: Final = 40
_MOST_LETTERS: Final = 24_000_000
"""Of all pictures together, however long the texts of an imported run are: a few seconds of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """A replay, as the browser needs it."""

    run_id: str
    frames: tuple[tuple[float, str, dict[str, list[Change]]], ...]
    """When, what happened, and what changes in each part since the frame before."""
    end_ms: float
    verdict_ms: float | None
    retrieved_ms: float | None


def film_of(events: Sequence[Event]) -> Film:
    """The film of a run; its last picture is the finished page, which is there already and not in it.

    Raises:
        ValueError: there are no events, or the first is not `RunStarted`.
    """
    before: dict[str, list[str]] = {"status": [], "answer": [], "board": []}
    frames = []
    for moment in moments(events, most=_most(events)):
        if moment.trace.status != "running":
            break
        after = {name: html.split("\n") for name, html in _parts(moment.trace).items()}
        changes = {name: changes_of(before[name], after[name]) for name in after}
        frames.append(
            (
                moment.at_ms,
                moment.says,
                {name: change for name, change in changes.items() if change},
            )
        )
        before = after
    return Film(
        run_id=replayed(events, 0.0).run_id,
        frames=tuple(frames),
        end_ms=events[-1].at_ms,
        verdict_ms=verdict_at(events),
        retrieved_ms=retrieved_at(events),
    )


def film_card(film: Film, *, key: str) -> str:
    """The film inside the page; `key` tells one film from the next."""
    told = {
        "frames": film.frames,
        "end": film.end_ms,
        "verdict": film.verdict_ms,
        "retrieved": film.retrieved_ms,
    }
    return render("detail_film", run_id=film.run_id, key=key, film=json.dumps(told, separators=(",", ":")))


def player(trace: Trace) -> str:
    """The controls of the replay, and where its pictures of status and answer stand."""
    ends = [bar.end_ms for lane in lanes(trace) for bar in lane.bars]
    axis = ticks(max([trace.elapsed_ms, *ends]))[-1]
    return render("detail_replay", trace=trace, end_ms=trace.elapsed_ms, axis_ms=axis)


def stage() -> str:
    """Where the pictures of the board stand, below the passages."""
    return render("detail_stage")


def changes_of(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """What to do to the lines of one picture to get the next: letters within lines, or whole lines."""
    if len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [[place, *_between(old, new)] for place, (old, new) in enumerate(pairs) if old != new]
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    left = min(len(before), len(after)) - start
    end = 0
    while end < left and before[-1 - end] == after[-1 - end]:
        end += 1
    return [[start, len(before) - start - end, list(after[start : len(after) - end])]]


def _parts(trace: Trace) -> dict[str, str]:
    return {
        "status": cards.status_line(trace),
        "answer": cards.answer_card(trace, scope=SCOPE),
        "board": cards.board(trace, scope=SCOPE),
    }


def _most(events: Sequence[Event]) -> int:
    """How many pictures: fewer where each is large."""
    last = replayed(events[:-1] or events, events[-1].at_ms if events else 0.0)
    size = sum(len(html) for html in _parts(last).values()) if last.status == "running" else 0
    return max(_FEWEST, min(MOST_MOMENTS, _MOST_LETTERS // max(1, size)))


def _between(old: str, new: str) -> tuple[int, int, str]:
    """Letters that stay at the start and at the end, in units of JavaScript, and those between in `new`."""
    shorter = min(len(old), len(new))
    start = _alike(old, new, shorter)
    end = _alike(old[::-1], new[::-1], shorter - start)
    return _units(new[:start]), _units(new[len(new) - end :]), new[start : len(new) - end]


def _alike(one: str, other: str, most: int) -> int:
    """How many letters two texts have in common at their start, by halving."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _units(text: str) -> int:
    return len(text) + sum(letter > "\uffff" for letter in text)
