"""The figures and turns of phrase that the walkthrough's sentences are made of. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from specrag.config import PRESETS, ScoreWeights
from specrag.errors import SpecragError
from specrag.redecide import decide_again
from specrag.tracing.trace import Trace
from specrag.types import Span
from specrag.ui.markup import parameters_text
from specrag.ui.readout import winner_of

_SCORES: Final = {
    "draft": "the drafter's own probability",
    "self_containment": "self-containment",
    "self_reflection": "self-reflection",
    "relevance": "the relevance of its passages",
}
"""The components of a score in words."""


def what_if(trace: Trace) -> str:
    """What leaving one score out would change, computed as the Traces tab does."""
    given = trace.config.get("weights", PRESETS["default"])
    stays = []
    for name, words in _SCORES.items():
        if not given.get(name):
            continue
        weights = ScoreWeights(**{**given, name: 0.0})
        try:
            again = decide_again(trace, weights=weights)
        except SpecragError:
            continue  # nothing else counts in this run
        if winner_of(again) != winner_of(trace) and winner_of(again):
            return f"without {words}, draft {winner_of(again)} would have won."
        stays.append(words)
    return f"leave out any one of {', '.join(stays)}, and draft {winner_of(trace)} still wins."


def span_of(trace: Trace, name: str) -> Span:
    """The first span of this name."""
    return next(span for span in trace.spans if span.name == name)


def took(trace: Trace, name: str) -> float:
    """How long a step took, in milliseconds."""
    span = span_of(trace, name)
    return (span.end_ms or trace.elapsed_ms) - span.start_ms


def day_of(trace: Trace) -> str:
    """The day of the run, as people write it."""
    day = datetime.fromisoformat(trace.created_at)
    return f"{day.day} {day:%B %Y}"


def models_of(trace: Trace) -> str:
    """Who drafted and who verified."""
    models = trace.environment.get("models", {})
    drafter, verifier = _named(models.get("drafter", {})), _named(models.get("verifier", {}))
    return (
        f"{drafter} in both roles" if drafter == verifier else f"{drafter} drafting and {verifier} verifying"
    )


def _named(model: dict[str, object]) -> str:
    parameters = model.get("parameters")
    size = parameters_text(parameters) if isinstance(parameters, int) else ""
    return f"{model.get('name', 'a model')}{f' ({size})' if size else ''}"


def count_text(number: int, one: str, many: str = "") -> str:
    """A number of things, small ones in words."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    told = words[number] if number < len(words) else f"{number:,}"
    return f"{told} {one if number == 1 else many or one + 's'}"


def range_text(numbers: Iterable[int]) -> str:
    """From the smallest to the largest, or the one number that all are."""
    found = sorted(numbers)
    return f"{found[0]:,}" if found[0] == found[-1] else f"{found[0]:,} to {found[-1]:,}"
