"""The runs of this page under the board, and what a visitor thought of an answer. Pure.

A row says in words what has come of a run; a press shows it again at once, from what is kept. Questions,
answers and comments are hostile and pass the autoescape of `markup.render`.
"""

from collections.abc import Sequence
from typing import Final

from specrag.tracing.search import RunSummary
from specrag.ui.markup import render
from specrag.ui.trace_filter import RATINGS

COMMENT_LENGTH: Final = 200
"""Characters of a comment that the page takes; the channel of `acts` carries no more."""
OUTCOMES: Final = {
    "selected": "selected",
    "synthesised": "synthesised",
    "fallback": "fallback",
    "abstained": "no answer",
    "direct": "answered directly",
    "failed": "failed",
    "cancelled": "stopped",
    "disputed": "disputed",
}


def outcome_of(run: RunSummary) -> str:
    """What has come of a run, in a word or two."""
    key = run.status if run.status != "done" else "disputed" if run.disputed else run.decision or "direct"
    return OUTCOMES.get(key, key)


def history_card(runs: Sequence[RunSummary], *, shown: str, own: frozenset[str] = frozenset()) -> str:
    """The runs of a page, newest first; `shown` is the one above, and those in `own` may be rated."""
    if not runs:
        return ""
    rows = [(run, outcome_of(run)) for run in runs]
    return render("ask_history", rows=rows, shown=shown, own=own, ratings=RATINGS)


def feedback_card(run: RunSummary, *, said: str = "") -> str:
    """Two thumbs and a comment for an answer that has come; `said` is what went wrong with them."""
    return render("feedback", run=run, said=said, most=COMMENT_LENGTH, ratings=RATINGS)
