"""What the walkthrough says: seven steps, made by code from the trace of a recorded run.

No figure stands here as a number: whatever a step tells is read or computed from the trace, so that a new
recording tells a new story and none can tell a wrong one. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from specrag.config import PRESETS, ScoreWeights
from specrag.errors import SpecragError
from specrag.redecide import decide_again
from specrag.tracing.trace import Trace
from specrag.types import Span
from specrag.ui.lanes import draft_numbers
from specrag.ui.markup import number_text, parameters_text, score, time_text
from specrag.ui.readout import votes_of, winner_of

StepKey: TypeAlias = Literal["question", "passages", "subsets", "drafts", "scores", "decision", "trace"]
_SCORES: Final = {
    "draft": "the drafter's own probability",
    "self_containment": "self-containment",
    "self_reflection": "self-reflection",
    "relevance": "the relevance of its passages",
}
"""The components of a score in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stop of the tour."""

    key: StepKey
    title: str
    sentences: tuple[str, ...]


def steps(trace: Trace, *, events: int) -> tuple[Step, ...]:
    """The seven steps of a finished speculative run that was recorded as so many `events`."""
    return (
        _question(trace, events),
        _passages(trace),
        _subsets(trace),
        _drafts(trace),
        _scores(trace),
        _decision(trace),
        _times(trace),
    )


def _question(trace: Trace, events: int) -> Step:
    device = str(trace.environment.get("device", "an unnamed machine"))
    return Step(
        key="question",
        title="A question to the documents",
        sentences=(
            (
                f"“{trace.question}” was put to the sample collection on {_day(trace)}, with {_model(trace)} "
                f"on {device}."
            ),
            (
                f"What follows is that run as it was: the page draws it from its {events:,} recorded events, "
                "without a model and without a network."
            ),
        ),
    )


def _passages(trace: Trace) -> Step:
    best = trace.passages[0]
    dated = f" ({best.published_at})" if best.published_at else ""
    read = {passage for subset in trace.subsets for passage in subset.passage_ids}
    took = _took(trace, "retrieve")
    return Step(
        key="passages",
        title=f"{len(trace.passages)} passages are found",
        sentences=(
            f"Search by meaning and by words together took {time_text(took)}.",
            (
                f"The first passage is from “{best.title}”{dated}; its similarity to the question is "
                f"{number_text(best.score)}."
            ),
            (
                f"The dots of a chip are the drafts that will read it; {len(read)} of {len(trace.passages)} are read "
                "by at least one."
            ),
        ),
    )


def _subsets(trace: Trace) -> Step:
    sizes = _range(len(subset.passage_ids) for subset in trace.subsets)
    named = "; ".join(f"{number}: {s.perspective}" for number, s in enumerate(trace.subsets, 1))
    note = (trace.partition_note,) if trace.partition_note else ()
    return Step(
        key="subsets",
        title=f"{len(trace.subsets)} subsets, each from another perspective",
        sentences=(
            (
                f"Alike passages are put into clusters, and each subset takes {sizes} from different ones. "
                f"What sets a subset apart stands on its card ({named})."
            ),
            *note,
            (
                f"A draft reads its own subset only: prompts of {_range(d.prompt_tokens for d in trace.drafts)} "
                "tokens."
            ),
        ),
    )


def _drafts(trace: Trace) -> Step:
    first = min((token.at_ms or 0.0 for draft in trace.drafts for token in draft.tokens), default=0.0)
    written = sum(len(draft.tokens) for draft in trace.drafts)
    return Step(
        key="drafts",
        title=f"{len(trace.drafts)} drafts are written side by side",
        sentences=(
            (
                f"The drafter writes all {len(trace.drafts)} at once, a rationale and an answer each, shown here "
                "at twice the speed of the run."
            ),
            (
                f"Reading took until {time_text(first)}, when the first token came; then {written:,} tokens were "
                f"written, and the last draft was complete after {time_text(_span(trace, 'draft').end_ms)}."
            ),
        ),
    )


def _scores(trace: Trace) -> Step:
    numbers = draft_numbers(trace)
    ranked = sorted(trace.drafts, key=lambda draft: -(draft.scores.combined or 0.0))
    told = ", ".join(
        f"{number_text(score(draft.scores, 'combined'))} for draft {numbers[draft.subset_id]}"
        for draft in ranked
    )
    passes = trace.usage.verifier.forward_passes
    return Step(
        key="scores",
        title="The verifier reads them all, and writes nothing",
        sentences=(
            (
                f"In {_count(passes, 'pass', 'passes')} of {time_text(_took(trace, 'verify'))} it read "
                f"all {len(trace.drafts)} drafts, {trace.usage.verifier.prompt_tokens:,} tokens."
            ),
            (
                "A bar is a probability: how sure the drafter was of its words, how likely the verifier finds "
                "them without the passages (self-contained), and how likely it says Yes when asked about the "
                "rationale (self-reflection)."
            ),
            f"Combined: {told}.",
        ),
    )


def _decision(trace: Trace) -> Step:
    assert trace.decision is not None
    winner, sides = winner_of(trace), trace.decision.sides
    if sides:
        end = (
            f"The documents dispute this, so the answer names {_count(len(sides), 'side')}, each with its "
            "source and date; a number in brackets opens the passage in its document."
        )
    else:
        end = _votes(trace, winner)
    title = f"Draft {winner} wins" if winner else "The decision"
    return Step(
        key="decision",
        title=f"{title}, and the dispute is shown" if sides else title,
        sentences=(f"The reason, in the page's own words: {trace.decision.reason}", end),
    )


def _votes(trace: Trace, winner: int | None) -> str:
    votes = votes_of(trace, winner)
    agree, differ = len(votes["agrees"]), len(votes["differs"])
    return (
        f"{_count(agree, 'other draft').capitalize()} {'gives' if agree == 1 else 'give'} the same answer "
        f"and {differ or 'none'} another one; a number in brackets opens the passage in its document."
    )


def _times(trace: Trace) -> Step:
    draft, verify = _took(trace, "draft"), _took(trace, "verify")
    shares = (draft / trace.elapsed_ms, verify / trace.elapsed_ms)
    models = trace.environment.get("models", {})
    if models.get("drafter") == models.get("verifier"):
        speed = (
            "Here the same small weights play both roles, so no speed-up can be expected; it comes where the "
            "verifier is many times larger than the drafter, and the bench command measures it."
        )
    else:
        speed = (
            "How that compares with one large model reading everything is what the bench command measures."
        )
    return Step(
        key="trace",
        title="Where the time went, and what if",
        sentences=(
            (
                f"Of {time_text(trace.elapsed_ms)}, writing the drafts took {shares[0]:.0%} and verifying them "
                f"{shares[1]:.0%}. {speed}"
            ),
            f"Scores are kept, so another weighing decides at once and without a model: {_what_if(trace)}",
        ),
    )


def _what_if(trace: Trace) -> str:
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


def _span(trace: Trace, name: str) -> Span:
    return next(span for span in trace.spans if span.name == name)


def _took(trace: Trace, name: str) -> float:
    span = _span(trace, name)
    return (span.end_ms or trace.elapsed_ms) - span.start_ms


def _day(trace: Trace) -> str:
    day = datetime.fromisoformat(trace.created_at)
    return f"{day.day} {day:%B %Y}"


def _model(trace: Trace) -> str:
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


def _count(number: int, one: str, many: str = "") -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    told = words[number] if number < len(words) else f"{number:,}"
    return f"{told} {one if number == 1 else many or one + 's'}"


def _range(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return f"{found[0]:,}" if found[0] == found[-1] else f"{found[0]:,} to {found[-1]:,}"
