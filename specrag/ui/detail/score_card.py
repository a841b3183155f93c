"""The breakdown of all scores as a table and bars, with the formula in words."""

from typing import Final

from specrag.errors import TraceError
from specrag.tracing.trace import Trace
from specrag.ui.cards import empty_state, notice
from specrag.ui.detail.numbers import exact, logarithm, plain, share
from specrag.ui.detail.scores import Breakdown, Standings, standings
from specrag.ui.detail.terms import COMPONENTS
from specrag.ui.markup import render
from specrag.ui.score_names import MEANING

_OPEN: Final = 1
"""Breakdowns that stand open where nothing has won."""
LETTERS: Final = 160
"""Of an answer, in a table."""


def score_table(trace: Trace) -> str:
    """Every component of every score, and how the winner comes out of them."""
    if not any(one.scores.combined is not None for one in trace.drafts):
        return empty_state("No scores", why_none(trace))
    try:
        found = standings(trace)
    except TraceError as error:
        return notice("error", str(error))
    longest = max((_cost(one) for one in found.drafts), default=0.0)
    return render(
        "detail_scores",
        found=found,
        longest=longest or 1.0,
        opened=_opened(found),
        meaning=MEANING,
        names=COMPONENTS,
        exact=exact,
        logarithm=logarithm,
        share=share,
        plain=plain,
        used=used_names(found),
        letters=LETTERS,
        note=newer_note(trace, found),
        decision=trace.decision,
    )


def why_none(trace: Trace) -> str:
    """Why a run has no scores."""
    if trace.pipeline != "speculative":
        return "In this run one model answered from all passages: there are no drafts to score."
    if not trace.drafts:
        return "This run has no drafts: too few passages were found to divide, or it ended before."
    return "The drafts of this run were not verified: it ended before."


def used_names(found: Standings) -> list[str]:
    """The components that occur, in order."""
    return list(dict.fromkeys(row.key for one in found.drafts for row in one.components))


def newer_note(trace: Trace, found: Standings) -> str:
    """What else than mass has decided, where the answer with the most mass was not chosen."""
    if trace.decision is None or not found.pools or found.pools[0].chosen:
        return ""
    if not any(pool.chosen for pool in found.pools):
        return ""
    return f"The answer with the most mass was not chosen; the decision says why: {trace.decision.reason}"


def _opened(found: Standings) -> set[int]:
    won = {one.number for one in found.drafts if one.winner}
    return won or {one.number for one in found.ranking[:_OPEN]}


def _cost(one: Breakdown) -> float:
    return -(one.log_combined or 0.0)
