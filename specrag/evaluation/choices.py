"""What else could have been chosen from the same drafts, and whether the scores tell right from wrong.

The drafts of a stored run are decided again without a model. `oracle` is what a perfect verifier would reach:
the distance from it is the verifier's loss, the rest is the drafter's. All others choose as a run does, among
the drafts that give an answer. `random` is the expected value, exactly: the mean over those drafts. A run
whose answer none of its drafts gave chose nothing: it is counted, not compared, or it would beat its oracle.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from specrag.config import PRESETS, ScoreWeights
from specrag.decide import in_contest
from specrag.errors import UsageError
from specrag.evaluation.judging import right, said, score
from specrag.evaluation.questions import Question
from specrag.redecide import decide_again
from specrag.text import normalise_answer
from specrag.tracing.trace import Trace
from specrag.types import Draft

COMPONENTS: Final = tuple(PRESETS["default"])
SCORES: Final = (*COMPONENTS, "combined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A draft that gives an answer: its scores as far as they are known, and whether it is right."""

    scores: Mapping[str, float]
    right: bool


def choices(question: Question, trace: Trace) -> dict[str, float]:
    """What each way of choosing is worth for one run; empty if its answer is that of no draft."""
    if not _between_drafts(trace) or by_no_draft(trace):
        return {}
    drafts = [trace.drafts[index] for index in in_contest(trace.drafts)]
    values = [score(question, draft.answer) for draft in drafts]
    made = {
        "selected": score(question, said(trace)),
        "oracle": max(values),
        "first": values[0],
        "random": sum(values) / len(values),
        "majority": values[_majority(drafts)],
        "longest": values[_longest(drafts)],
    }
    return made | _decided_again(question, trace)


def by_no_draft(trace: Trace) -> bool:
    """Whether a run had drafts and its answer is that of none: written afresh, or nobody had one."""
    if not _between_drafts(trace) or trace.decision is None:
        return False
    return trace.decision.kind != "selected" or not in_contest(trace.drafts)


def judgements(question: Question, trace: Trace) -> tuple[Judgement, ...]:
    """The drafts of a run that give an answer."""
    drafts = [trace.drafts[index] for index in in_contest(trace.drafts)]
    return tuple(
        Judgement(
            scores={name: value for name in SCORES if (value := getattr(draft.scores, name)) is not None},
            right=right(question, score(question, draft.answer)),
        )
        for draft in drafts
    )


def _between_drafts(trace: Trace) -> bool:
    return bool(trace.drafts) and trace.decision is not None and trace.decision.kind != "direct"


def _decided_again(question: Question, trace: Trace) -> dict[str, float]:
    """The same under other weights, without pooling, and with fewer of the drafts."""
    again = partial(decide_again, trace)
    asked = {name: partial(again, weights=weights) for name, weights in _weightings(trace).items()}
    asked["without pooling"] = partial(again, pool=False)
    asked |= {f"first {count} drafts": partial(again, drafts=count) for count in range(1, len(trace.drafts))}
    return {name: value for name, call in asked.items() if (value := _worth(question, call)) is not None}


def _weightings(trace: Trace) -> dict[str, ScoreWeights]:
    """Each score alone, each one left out, and the presets."""
    weights = trace.config.get("weights", PRESETS["default"])
    known = {name: float(weights.get(name, 0.0)) for name in COMPONENTS}
    given = {f"alone: {name}": {name: 1.0} for name in COMPONENTS}
    given |= {f"without: {name}": {**known, name: 0.0} for name, weight in known.items() if weight > 0}
    given |= {f"preset: {name}": preset for name, preset in PRESETS.items()}
    return {name: _weights(some) for name, some in given.items() if any(some.values())}


def _worth(question: Question, again: Callable[[], Trace]) -> float | None:
    """None where the scores that count were not found out, or nobody has written the answer."""
    try:
        trace = again()
    except UsageError:
        return None
    return None if trace.answer is None else score(question, said(trace))


def _weights(given: Mapping[str, float]) -> ScoreWeights:
    return ScoreWeights(**{name: given.get(name, 0.0) for name in COMPONENTS})


def _majority(drafts: Sequence[Draft]) -> int:
    """The first draft with the answer that is given most often, equal when normalised."""
    answers = [normalise_answer(draft.answer) for draft in drafts]
    return answers.index(Counter(answers).most_common(1)[0][0])


def _longest(drafts: Sequence[Draft]) -> int:
    return max(range(len(drafts)), key=lambda index: len(drafts[index].answer))
