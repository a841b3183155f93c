"""What one run was worth: its answer against the accepted ones, its citations against the evidence.

One figure, `score`, is there for every question, so that all can be averaged: whether an accepted answer was
said, whether yes or no was right, how much of a long text was told, or whether a question that the passages
do not answer was declined. A run that failed scores nothing wherever a run that ended could have scored.
"""

from typing import Final

from specrag.evaluation import metrics
from specrag.evaluation.questions import Question
from specrag.evaluation.ranking import Judged
from specrag.text import is_abstention
from specrag.tracing.trace import Trace

RIGHT: Final = 0.5
"""A score of this much counts as right, where only right and wrong are told apart."""
LONG_RIGHT: Final = 0.3
"""The same for long texts, of which even a good answer repeats a part only (ROUGE-L)."""

Marks = dict[str, float]


def score(question: Question, answer: str) -> float:
    """What an answer is worth, in [0, 1]."""
    declined = not answer.strip() or is_abstention(answer)
    if question.kind == "unanswerable":
        return float(declined)
    if declined:
        return 0.0
    match question.kind:
        case "yes-no":
            return metrics.agrees(answer, question.answers)
        case "long":
            return metrics.rouge_l(answer, question.answers)
        case "short":
            return metrics.contained(answer, question.answers)


def right(question: Question, value: float) -> bool:
    """Whether a score counts as right."""
    return value >= (LONG_RIGHT if question.kind == "long" else RIGHT)


def marks(question: Question, trace: Trace | None, *, reads: bool = True) -> Marks:
    """All figures of one run that mean something for its question; `trace` is None for one that failed.

    `reads` says whether the system is given passages, so that a run of it could have cited them.
    """
    answer = said(trace)
    made: Marks = {"score": 0.0 if trace is None else score(question, answer)}
    if question.kind == "unanswerable":
        made["abstained_right"] = made["score"]
        return made
    if trace is not None:
        made["words"] = float(len(answer.split()))
    declined = trace is not None and (not answer.strip() or is_abstention(answer))
    if trace is not None:  # who failed has not refused to decline
        made["abstained_wrong"] = float(declined)
    made |= _overlap(question, "" if declined else answer)
    if question.all_required:
        texts = [] if trace is None else _all_texts(trace)
        made["all_answers"] = float(metrics.share_said(texts, question.answers) == 1.0)
    if question.gold and trace is None and reads:
        made["citation_recall"] = 0.0
    if question.gold and trace is not None and trace.passages and not declined:
        made |= _citations(question, trace)
    return made


def claimed(question: Question, trace: Trace) -> Judged | None:
    """How sure the run was of its answer, and whether it was right; None if it did not say."""
    confidence = trace.answer.confidence if trace.answer else None
    return None if confidence is None else (confidence, right(question, score(question, said(trace))))


def said(trace: Trace | None) -> str:
    """The answer of a run, empty where there is none."""
    if trace is None or trace.answer is None:
        return ""
    abstained = trace.decision is not None and trace.decision.kind == "abstained"
    return "" if abstained else trace.answer.text


def _overlap(question: Question, answer: str) -> Marks:
    accepted = question.answers
    if question.kind == "long":
        return {"f1": metrics.f1(answer, accepted), "rouge_l": metrics.rouge_l(answer, accepted)}
    made = {"exact_match": metrics.exact_match(answer, accepted), "f1": metrics.f1(answer, accepted)}
    return made if question.kind == "yes-no" else {**made, "contained": metrics.contained(answer, accepted)}


def _all_texts(trace: Trace) -> list[str]:
    """The answer, and what the run shows beside it as disputed."""
    sides = trace.decision.sides if trace.decision else ()
    return [said(trace), *(side.answer for side in sides)]


def _citations(question: Question, trace: Trace) -> Marks:
    cited = trace.answer.citations if trace.answer else ()
    found = {
        "citation_precision": metrics.precision(cited, question.gold),
        "citation_recall": metrics.recall(cited, question.gold),
    }
    return {name: value for name, value in found.items() if value is not None}
