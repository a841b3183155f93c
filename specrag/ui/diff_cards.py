"""Two runs beside each other, as HTML: what differs is marked by words or signs, never by colour alone."""

from datetime import datetime

from specrag.ui.markup import UNKNOWN, number_text, render, time_text
from specrag.ui.options import PIPELINES
from specrag.ui.sentences import counted
from specrag.ui.trace_diff import DraftChange, DraftSide, Figure, PassageChange, RunDiff
from specrag.ui.trace_list import ago, moment_text

_SAME_MS, _SAME = 0.5, 0.005


def diff_card(diff: RunDiff, *, now: datetime, focus: str = "") -> str:
    """The comparison; `focus` is a word that is new whenever it wants the keyboard."""
    return render(
        "trace_diff",
        diff=diff,
        runs=((diff.before, "First run"), (diff.after, "Second run")),
        summary=summary(diff),
        focus=focus,
        now=now,
        ago=ago,
        moment=moment_text,
        pipelines=PIPELINES,
        place=place,
        pair=pair_text,
        titles={passage.id: passage for passage in (*diff.before.passages, *diff.after.passages)},
        more_ms=more_ms,
        more=more,
        count=count,
        more_tokens=more_tokens,
        counted=counted,
    )


def summary(diff: RunDiff) -> str:
    """What came of the difference, in a sentence or two."""
    both = "Both runs give the same answer" if diff.same_result else "The runs end differently"
    found = "over the same passages" if diff.same_passages else "over other passages"
    settings = counted(len(diff.settings), "setting") + (" differs" if len(diff.settings) == 1 else " differ")
    slower = diff.times[-1].difference or 0.0
    took = (
        "both took equally long"
        if abs(slower) < _SAME_MS
        else f"the second took {time_text(abs(slower))} {'longer' if slower > 0 else 'less'}"
    )
    return f"{both}, {found}. {settings}; {took}."


def place(change: PassageChange) -> str:
    """Where a passage stands in both runs, in words."""
    if change.before is None:
        return f"only in the second, at {change.after}"
    if change.after is None:
        return f"only in the first, at {change.before}"
    if not change.moved:
        return f"in both, at {change.after}"
    way = "up" if change.moved > 0 else "down"
    return f"{way} from {change.before} to {change.after}"


def pair_text(change: DraftChange) -> str:
    """Which drafts are beside each other, and how far they read the same."""
    if change.before is None or change.after is None:
        side = change.before or change.after
        where = "first" if change.after is None else "second"
        return f"Draft {side.number if side else UNKNOWN}, of the {where} run only"
    reads = {_ids(change.before), _ids(change.after)}
    how = "the same passages" if len(reads) == 1 else f"{counted(len(change.shared), 'passage')} in common"
    return f"Draft {change.before.number} and draft {change.after.number}: {how}"


def _ids(side: DraftSide) -> frozenset[str]:
    return frozenset(side.subset.passage_ids) if side.subset else frozenset()


def more_ms(figure: Figure) -> str:
    """How much longer, with its sign."""
    difference = figure.difference
    if difference is None:
        return UNKNOWN
    if abs(difference) < _SAME_MS:
        return "same"
    return f"{'+' if difference > 0 else '−'}{time_text(abs(difference))}"  # noqa: RUF001 - a minus


def more(figure: Figure) -> str:
    """How much more of a score, with its sign."""
    difference = figure.difference
    if difference is None:
        return UNKNOWN
    if abs(difference) < _SAME:
        return "same"
    return f"{'+' if difference > 0 else '−'}{number_text(abs(difference))}"  # noqa: RUF001 - a minus


def count(value: float | None) -> str:
    """A number of tokens."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def more_tokens(figure: Figure) -> str:
    """How many more, with its sign."""
    difference = figure.difference
    if difference is None:
        return UNKNOWN
    return f"{difference:+,.0f}".replace("-", "−") if difference else "same"  # noqa: RUF001 - a minus
