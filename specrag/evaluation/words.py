"""What a report calls its figures, and what an interval allows one to say, in words built from the numbers.

A difference whose interval holds 0, or whose signs may be luck, is not shown by so many questions, whatever
its mean looks like; whoever wants to know needs more questions, and is told so.
"""

from collections.abc import Mapping
from typing import Any, Final

METRICS: Final = {
    "score": "score",
    "judged": "judged",
    "faithfulness": "faithfulness",
    "exact_match": "exact match",
    "f1": "F1",
    "contained": "answer contained",
    "rouge_l": "ROUGE-L",
    "all_answers": "all answers",
    "citation_precision": "citation precision",
    "citation_recall": "citation recall",
    "abstained_right": "declined rightly",
    "abstained_wrong": "declined wrongly",
    "words": "words",
}
"""Figures of an answer in the order of the tables, and what people call them."""
TIMES: Final = {
    "retrieve_ms": "finding passages",
    "phase.draft": "drafting",
    "phase.verify": "verifying",
    "ttft_ms": "to the answer's first word",
    "total_ms": "whole run",
}
"""The same of the times of a run."""
MOST_FAILURES: Final = 20
"""Failed runs that are named."""
NOTES: Final = """\
Means over the questions, with the interval that holds them in 95 of 100 draws of the questions (percentile
bootstrap), and with their own n where a figure means nothing for some questions: citation precision is over
the runs that cite. `score` is there for every question: 1 if an accepted answer stands in what was said, if
yes or no is right, or if a question that the passages do not answer is declined; ROUGE-L for long answers. A
run that failed scores 0. A long answer is more likely to hold an accepted one, so its words are counted.
Exact match and F1 are those of SQuAD v1.1 and HotpotQA. Times are medians of single runs, one after the
other, without finding the passages, which is done once for all pipelines of a question. A difference is
called better or worse where its interval leaves 0 out and the two-sided paired randomisation test gives
5 % or less. Each row is tested by itself: of 20 comparisons without any true difference, about one may look
like one.
"""
"""What the figures of a report mean."""
_MINUTE_S: Final = 60
_RIVALS: Final = {
    "first": "taking the first draft",
    "majority": "taking the most frequent answer",
    "random": "taking a draft at random",
}


def left_words(seconds: float | None) -> str:
    """How long something will still take; empty where nobody knows."""
    if not seconds:
        return ""
    whole = round(seconds)
    return f"{whole} s left" if whole < _MINUTE_S else f"{round(seconds / _MINUTE_S)} min left"


def difference_words(one: Mapping[str, Any]) -> str:
    """What a difference shows."""
    if not one["clear"]:
        return "no difference shown"
    return "better" if one["mean"] > 0 else "worse"


def choice_words(found: Mapping[str, Any]) -> str:
    """What choosing by the scores adds over not choosing, and how far the best choice is away.

    Empty if no run chose anything.
    """
    if "oracle" not in found["worth"]:
        return ""
    said = [
        _against(how, found["selected_minus"][name])
        for name, how in _RIVALS.items()
        if name in found["selected_minus"]
    ]
    lost = found["worth"]["oracle"] - found["worth"]["selected"]
    said.append(
        f"A perfect choice from the same drafts would reach {found['worth']['oracle']:.3f}: the choice loses "
        f"{lost:.3f}, and the remaining {1 - found['worth']['oracle']:.3f} no choice can win, because no "
        "draft holds it."
    )
    return " ".join(said)


def _against(how: str, one: Mapping[str, Any]) -> str:
    span = f"{one['mean']:+.3f}, {one['low']:+.3f} to {one['high']:+.3f}"
    if not one["clear"]:
        return f"Over {how}, {one['n']} questions show no gain from choosing by the scores ({span})."
    if one["mean"] > 0:
        return f"Choosing by the scores is better than {how} ({span})."
    return f"Choosing by the scores is worse than {how} ({span})."
