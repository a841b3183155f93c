"""Which runs somebody wants to see: what the form above the list says, as a filter, and back in words.

The form is plain HTML and never sent anew, so that nothing takes away what is being typed; `traces.js` writes
its fields as JSON into a hidden box. Anybody can write anything there; whatever is unknown counts as empty.
"""

import hashlib
import json
from datetime import datetime
from typing import Any, Final, get_args

from specrag.tracing.search import RunFilter
from specrag.types import PipelineName, Rating
from specrag.ui.markup import render
from specrag.ui.options import PIPELINES

DECISIONS: Final = {
    "selected": "Selected",
    "synthesised": "Synthesised",
    "disputed": "Disputed",
    "direct": "Direct",
    "fallback": "Fallback",
    "abstained": "Abstained",
    "failed": "Failed",
    "cancelled": "Stopped",
}
"""What has come of a run, as the list calls it."""
LATENCIES: Final[dict[str, tuple[str, float | None, float | None]]] = {
    "under-5": ("Under 5 s", None, 5_000.0),
    "5-to-30": ("5 to 30 s", 5_000.0, 30_000.0),
    "over-30": ("Over 30 s", 30_000.0, None),
}
"""Choices of total time, with the least and the most in milliseconds."""
RATINGS: Final = {"up": "Helpful", "down": "Not helpful", "none": "Without feedback"}
LONGEST: Final = 200
"""Characters of a search."""
_MOST: Final = 10_000
_RATINGS: Final[tuple[Rating, ...]] = get_args(Rating)


def filter_of(text: object) -> RunFilter:
    """The filter in the hidden box."""
    told = _told(text)
    words = told.get("text", "")
    pipeline, decision = told.get("pipeline"), told.get("decision")
    rating = told.get("rating")
    _, least, most = LATENCIES.get(str(told.get("latency")), ("", None, None))
    return RunFilter(
        text=words.strip()[:LONGEST] if isinstance(words, str) else "",
        pipelines=tuple(name for name in _names() if name == pipeline),
        decisions=(decision,) if isinstance(decision, str) and decision in DECISIONS else (),
        rating="none" if rating == "none" else next((one for one in _RATINGS if one == rating), None),
        since=_moment(told.get("since")),
        until=_moment(told.get("until")),
        min_ms=least,
        max_ms=most,
    )


def is_empty(wanted: RunFilter) -> bool:
    """Whether a filter lets everything through."""
    return wanted == RunFilter()


def mark_of(wanted: RunFilter) -> str:
    """Tells one filter from another: what is to be deleted is what was looked at when it was asked for."""
    return hashlib.sha256(repr(wanted).encode("utf-8", "replace")).hexdigest()[:16]


def filter_form() -> str:
    """The form, which the page gets once."""
    return render(
        "traces_filter",
        pipelines=PIPELINES,
        decisions=DECISIONS,
        latencies={key: label for key, (label, _, _) in LATENCIES.items()},
        ratings=RATINGS,
        longest=LONGEST,
    )


def _names() -> tuple[PipelineName, ...]:
    names: tuple[PipelineName, ...] = get_args(PipelineName)
    return names


def _told(text: object) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > _MOST:
        return {}
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _moment(value: object) -> str:
    """A date that can be read; the field of a browser sends no other."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return ""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return ""
    return value
