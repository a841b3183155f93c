"""What differs between two runs, step by step: a pure value that `diff_card` shows and tests can read.

The first run is the one *before*, the second the one *after*: a fork's parent and the fork, for one.
Passages are the same if they have the same id; drafts belong together when their subsets do, since draft 2 of
one run need not have read what draft 2 of the other has. Traces may be imported ones, so nothing here trusts
an index or an id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from specrag.tracing.trace import Trace
from specrag.types import Draft, Passage, Scores, Subset
from specrag.ui.diff_words import WordDiff, word_diff
from specrag.ui.lanes import draft_numbers, lanes
from specrag.ui.markup import score
from specrag.ui.options import PIPELINES
from specrag.ui.readout import winner_of
from specrag.ui.score_names import SCORES
from specrag.ui.setting_names import setting_name, setting_text, settings_of

MOST_ROWS: Final = 200
"""Passages, settings or steps that are compared; an imported run may claim any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two texts of the same name that may differ."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Two figures of the same name; None where a run has none."""

    name: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        """How much more the second one is."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageChange:
    """A passage of either run, with its rank from 1 where a run has it."""

    passage: Passage
    before: int | None
    after: int | None

    @property
    def moved(self) -> int | None:
        """Places that it has risen (above 0) or sunk; None if only one run has it."""
        return None if self.before is None or self.after is None else self.before - self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSide:
    """A draft with its subset, as one of the runs has it."""

    number: int
    subset: Subset | None
    draft: Draft | None
    won: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChange:
    """Two drafts that were written from the same or nearly the same passages."""

    before: DraftSide | None
    after: DraftSide | None
    shared: tuple[str, ...]
    """Ids of the passages that both read."""
    rationale: WordDiff
    answer: WordDiff
    scores: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """Everything that differs, and what both have, so that a reader sees what was compared."""

    before: Trace
    after: Trace
    question: WordDiff
    settings: tuple[Change, ...]
    """Only those that differ."""
    passages: tuple[PassageChange, ...]
    """In the order of the second run, then those that only the first has."""
    drafts: tuple[DraftChange, ...]
    decision: WordDiff
    """Kind and reason."""
    answer: WordDiff
    times: tuple[Figure, ...]
    """Milliseconds by lane of the timeline, the whole run last."""
    tokens: tuple[Figure, ...]

    @property
    def same_passages(self) -> bool:
        """Whether both runs found the same passages in the same order."""
        return all(change.moved == 0 for change in self.passages)

    @property
    def same_result(self) -> bool:
        """Whether a reader of the answer would notice no difference."""
        return not self.answer.changed and _kind(self.before) == _kind(self.after)


def diff_runs(before: Trace, after: Trace) -> RunDiff:
    """Compare two runs."""
    return RunDiff(
        before=before,
        after=after,
        question=word_diff(before.asked, after.asked),
        settings=_settings(before, after),
        passages=_passages(before, after),
        drafts=_drafts(before, after),
        decision=word_diff(_decision(before), _decision(after)),
        answer=word_diff(_answer(before), _answer(after)),
        times=_times(before, after),
        tokens=_tokens(before, after),
    )


def _settings(before: Trace, after: Trace) -> tuple[Change, ...]:
    first, second = settings_of(before.config), settings_of(after.config)
    names = list(dict.fromkeys((*first, *second)))[:MOST_ROWS]
    changes = [
        Change(
            name="pipeline",
            before=PIPELINES.get(before.pipeline, before.pipeline),
            after=PIPELINES.get(after.pipeline, after.pipeline),
        ),
        *(
            Change(
                name=setting_name(name),
                before=setting_text(first.get(name)),
                after=setting_text(second.get(name)),
            )
            for name in names
        ),
    ]
    return tuple(change for change in changes if change.before != change.after)


def _passages(before: Trace, after: Trace) -> tuple[PassageChange, ...]:
    first = {passage.id: rank for rank, passage in enumerate(before.passages, 1)}
    second = {passage.id: rank for rank, passage in enumerate(after.passages, 1)}
    known = {passage.id: passage for passage in (*after.passages, *before.passages)}
    return tuple(
        PassageChange(passage=passage, before=first.get(key), after=second.get(key))
        for key, passage in list(known.items())[:MOST_ROWS]
    )


def _drafts(before: Trace, after: Trace) -> tuple[DraftChange, ...]:
    left, right = _sides(before), _sides(after)
    pairs = paired([_read(side) for side in left], [_read(side) for side in right])
    return tuple(
        _draft(
            None if one is None else left[one],
            None if other is None else right[other],
        )
        for one, other in pairs
    )


def _sides(trace: Trace) -> list[DraftSide]:
    subsets = {subset.id: subset for subset in trace.subsets}
    drafts = {draft.subset_id: draft for draft in trace.drafts}
    winner = winner_of(trace)
    return [
        DraftSide(number=number, subset=subsets.get(key), draft=drafts.get(key), won=number == winner)
        for key, number in draft_numbers(trace).items()
    ][:MOST_ROWS]


def _read(side: DraftSide) -> frozenset[str]:
    return frozenset(side.subset.passage_ids) if side.subset else frozenset()


def paired(
    left: Sequence[frozenset[str]], right: Sequence[frozenset[str]]
) -> list[tuple[int | None, int | None]]:
    """Which sets belong together: those that share most, each at most once; the rest stands alone.

    Of two that share alike the earlier ones are taken. In the order of the left ones, then the right ones.
    """
    likeness = sorted(
        (
            (-len(one & other) / len(one | other), place, at)
            for place, one in enumerate(left)
            for at, other in enumerate(right)
            if one & other
        ),
    )
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, place, at in likeness:
        if place not in partner and at not in taken:
            partner[place] = at
            taken.add(at)
    alone = [at for at in range(len(right)) if at not in taken]
    return [*((place, partner.get(place)) for place in range(len(left))), *((None, at) for at in alone)]


def _draft(before: DraftSide | None, after: DraftSide | None) -> DraftChange:
    first = before.draft if before else None
    second = after.draft if after else None
    ids = _read(after) if after else frozenset()
    shared = tuple(
        key for key in (before.subset.passage_ids if before and before.subset else ()) if key in ids
    )
    return DraftChange(
        before=before,
        after=after,
        shared=shared,
        rationale=word_diff(first.rationale if first else "", second.rationale if second else ""),
        answer=word_diff(first.answer if first else "", second.answer if second else ""),
        scores=_scores(first.scores if first else Scores(), second.scores if second else Scores()),
    )


def _scores(before: Scores, after: Scores) -> tuple[Figure, ...]:
    figures = (
        Figure(name=label, before=score(before, key), after=score(after, key))
        for key, label in SCORES.items()
    )
    return tuple(one for one in figures if one.before is not None or one.after is not None)


def _kind(trace: Trace) -> str:
    if trace.status != "done":
        return trace.status
    return trace.decision.kind if trace.decision else "direct"


def _decision(trace: Trace) -> str:
    reason = trace.error.message if trace.error else trace.decision.reason if trace.decision else ""
    return f"{_kind(trace)}: {reason}" if reason else _kind(trace)


def _answer(trace: Trace) -> str:
    return trace.answer.text if trace.answer else ""


def _times(before: Trace, after: Trace) -> tuple[Figure, ...]:
    first, second = _lengths(before), _lengths(after)
    names = list(dict.fromkeys((*first, *second)))[:MOST_ROWS]
    return (
        *(Figure(name=name, before=first.get(name), after=second.get(name)) for name in names),
        Figure(name="whole run", before=before.elapsed_ms, after=after.elapsed_ms),
    )


def _lengths(trace: Trace) -> Mapping[str, float]:
    return {lane.label: sum(bar.end_ms - bar.start_ms for bar in lane.bars) for lane in lanes(trace)}


def _tokens(before: Trace, after: Trace) -> tuple[Figure, ...]:
    fields: tuple[tuple[str, str, str], ...] = (
        ("drafter", "prompt_tokens", "read by the drafter"),
        ("drafter", "completion_tokens", "written by the drafter"),
        ("verifier", "prompt_tokens", "read by the verifier"),
        ("verifier", "completion_tokens", "written by the verifier"),
        ("verifier", "forward_passes", "verifier's passes"),
    )
    return tuple(
        Figure(name=label, before=_count(before, role, field), after=_count(after, role, field))
        for role, field, label in fields
    )


def _count(trace: Trace, role: str, field: str) -> float:
    value: Any = getattr(getattr(trace.usage, role), field)
    return float(value)
