"""What the walkthrough says: seven steps, made by code from the trace of a recorded run.

No figure stands here as a number: whatever a step tells is read or computed from the trace, so that a new
recording tells a new story and none can tell a wrong one. Pure.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from specrag.tracing.trace import Trace
from specrag.ui.lanes import draft_numbers
from specrag.ui.markup import number_text, score, time_text
from specrag.ui.readout import votes_of, winner_of
from specrag.ui.tour_words import count_text, day_of, models_of, range_text, span_of, took, what_if

StepKey: TypeAlias = Literal["question", "passages", "subsets", "drafts", "scores", "decision", "trace"]


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
                f"“{trace.question}” was put to the sample collection on {day_of(trace)}, with "
                f"{models_of(trace)} on {device}."
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
    return Step(
        key="passages",
        title=f"{len(trace.passages)} passages are found",
        sentences=(
            f"Search by meaning and by words together took {time_text(took(trace, 'retrieve'))}.",
            (
                f"The first passage is from “{best.title}”{dated}; its similarity to the question is "
                f"{number_text(best.score)}."
            ),
            (
                f"The dots of a chip are the drafts that will read it; {len(read)} of {len(trace.passages)} "
                "are read by at least one."
            ),
        ),
    )


def _subsets(trace: Trace) -> Step:
    sizes = range_text(len(subset.passage_ids) for subset in trace.subsets)
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
                f"A draft reads its own subset only: prompts of "
                f"{range_text(draft.prompt_tokens for draft in trace.drafts)} tokens."
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
                f"The drafter writes all {len(trace.drafts)} at once, a rationale and an answer each, shown "
                "here at twice the speed of the run."
            ),
            (
                f"Reading took until {time_text(first)}, when the first token came; then {written:,} tokens "
                "were written, and the last draft was complete after "
                f"{time_text(span_of(trace, 'draft').end_ms)}."
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
                f"In {count_text(passes, 'pass', 'passes')} of {time_text(took(trace, 'verify'))} it read "
                f"all {len(trace.drafts)} drafts, {trace.usage.verifier.prompt_tokens:,} tokens."
            ),
            (
                "Three bars are probabilities: how sure the drafter was of its words, how likely the "
                "verifier finds them without the passages (self-containment), and how likely it says Yes "
                "when asked about the rationale (self-reflection)."
            ),
            f"{_relevance(trace)} Combined: {told}.",
        ),
    )


def _relevance(trace: Trace) -> str:
    weights = trace.config["weights"]
    total = sum(weights.values())
    return (
        "Relevance is no probability but how near the best sentence of its passages is to the question; it "
        f"counts {weights['relevance'] / total:.0%} of the combined score, their weighted mean."
    )


def _decision(trace: Trace) -> Step:
    assert trace.decision is not None
    winner, sides = winner_of(trace), trace.decision.sides
    if sides:
        end = (
            f"The documents dispute this, so the answer names {count_text(len(sides), 'side')}, each with "
            "its source and date; a number in brackets opens the passage in its document."
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
        f"{count_text(agree, 'other draft').capitalize()} {'gives' if agree == 1 else 'give'} the same "
        f"answer and {differ or 'none'} another one; a number in brackets opens the passage in its document."
    )


def _times(trace: Trace) -> Step:
    draft, verify = took(trace, "draft"), took(trace, "verify")
    shares = (draft / trace.elapsed_ms, verify / trace.elapsed_ms)
    models = trace.environment.get("models", {})
    if models.get("drafter") == models.get("verifier"):
        speed = (
            "Here the same small weights play both roles, so no speed-up can be expected; it can come where "
            "the verifier is many times larger than the drafter, and the bench command measures it."
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
                f"Of {time_text(trace.elapsed_ms)}, writing the drafts took {shares[0]:.0%} and verifying "
                f"them {shares[1]:.0%}. {speed}"
            ),
            f"Scores are kept, so another weighing decides at once and without a model: {what_if(trace)}",
        ),
    )
