"""A run forked from another one: what came before a step is taken over, the rest is done anew.

Everything that is taken over stands in the trace, so any trace can be forked, one from a file as well: from
the partition on nothing of the store is needed. A trace from outside is hostile, so what is taken over is
checked here. What is not checked here is whether the visitor may read `Request.collection`, which is whatever
the trace says.
"""

from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from types import MappingProxyType
from typing import Any, Final, get_args

from specrag.config import PUBLIC, ScoreWeights
from specrag.errors import TraceError, UsageError
from specrag.pipelines.base import Given, Request
from specrag.tracing.trace import Trace
from specrag.types import Draft, LogSums, Parent, PartitionName, Scores, StepName, Verdict
from specrag.verify import UNREADABLE

STEPS: Final[tuple[StepName, ...]] = get_args(StepName)
MOST_PASSAGES = 150
"""Three hops of as many passages as a run may retrieve."""
MOST_SUBSETS = 16
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def fork(trace: Trace, step: StepName, *, question: str | None = None) -> Request:
    """The request of a run that does `step` and what comes after it anew, with all before it taken over.

    Only a fork from "retrieve" can ask another `question`. The request knows no settings: `settings_of` has
    those of the parent.

    Raises:
        UsageError: the step is none, or another question is asked of what was found for this one.
        TraceError: this run has nothing to take over for that step, or its trace is not whole.
    """
    if step not in STEPS:
        raise UsageError(f"“{step}” is not a step; choose one of {', '.join(STEPS)}.")
    if question is not None and step != "retrieve":
        raise UsageError("Another question needs other passages; fork from the step “retrieve” to ask it.")
    collection, documents = _where(trace, needed=step == "retrieve")
    return Request(
        question=trace.question if question is None else question,
        collection=collection,
        documents=documents,
        earlier=trace.earlier,
        parent=Parent(run_id=trace.run_id, step=step),
        given=None if step == "retrieve" else _given(trace, STEPS.index(step)),
    )


def given_of(trace: Trace) -> Given:
    """What was found for the question of a run, for other pipelines to answer from; of hops, by the first.

    Raises:
        TraceError: nothing was found, or the trace is not whole.
    """
    passages = trace.passages[: _found_first(trace)]
    if not passages:
        raise TraceError(f"The run {trace.run_id} has found no passages that another one could take over.")
    ids = [passage.id for passage in passages]
    if len(set(ids)) < len(ids) or len(ids) > MOST_PASSAGES:
        raise _not_whole(trace, f"at most {MOST_PASSAGES} passages, each once, can be taken over")
    asked = trace.asked if trace.earlier else None
    return Given(passages=passages, note=trace.retrieval_note, rewritten=asked)


def settings_of(trace: Trace, changes: Mapping[str, Any] = _NONE) -> dict[str, Any]:
    """The settings of one run that the trace names, and `changes`, which win.

    For `overrides.for_one_run`, which checks them. Left out is what belongs to loaded models and what this
    version does not know. A preset among the changes brings its weights; weights may be given in part.
    """
    kept = set(PUBLIC) - {"precision"}
    settings = {name: value for name, value in trace.config.items() if name in kept}
    if settings.get("partition") not in get_args(PartitionName):
        settings.pop("partition", None)  # a function of somebody's own
    weights = trace.config.get("weights")
    if isinstance(weights, dict) and changes.get("preset") is None:
        settings["weights"] = {name: weights[name] for name in ScoreWeights.model_fields if name in weights}
    changed = {name: value for name, value in changes.items() if value is not None}
    if isinstance(changed.get("weights"), Mapping):
        changed["weights"] = {**settings.get("weights", {}), **changed["weights"]}
    return settings | changed


def _where(trace: Trace, *, needed: bool) -> tuple[str, tuple[str, ...]]:
    """The collection and the documents of a run; a trace from outside may name none."""
    collection, documents = trace.config.get("collection"), trace.config.get("documents", [])
    if not isinstance(collection, str) or not collection:
        if needed:
            raise TraceError(
                f"The trace of the run {trace.run_id} does not say which collection was asked; "
                "ask its question anew."
            )
        collection = ""
    known = isinstance(documents, list) and all(isinstance(one, str) for one in documents)
    return collection, tuple(documents) if known else ()


def _given(trace: Trace, place: int) -> Given:
    """What the steps before the one at `place` have made."""
    given = given_of(trace)
    for take in _TAKES[: place - 1]:
        given = take(trace, given)
    return given


def _with_subsets(trace: Trace, given: Given) -> Given:
    if trace.pipeline != "speculative":
        raise TraceError(
            f"The run {trace.run_id} is no speculative one and has no drafts; it can be run again from "
            "“retrieve” or “partition”."
        )
    if not trace.subsets:
        raise TraceError(
            f"The run {trace.run_id} has not divided its passages; run it again from “partition”."
        )
    known = {passage.id for passage in given.passages}
    ids = [subset.id for subset in trace.subsets]
    if len(set(ids)) < len(ids) or len(ids) > MOST_SUBSETS:
        raise _not_whole(trace, f"at most {MOST_SUBSETS} subsets, each once, can be taken over")
    if not all(subset.passage_ids and known.issuperset(subset.passage_ids) for subset in trace.subsets):
        raise _not_whole(trace, "a subset names passages that are not in it")
    return replace(
        given,
        subsets=trace.subsets,
        partition_note=trace.partition_note,
        singletons=trace.singletons,
        spots=trace.spots,
        map_variance=_map_variance(trace),
    )


def _with_drafts(trace: Trace, given: Given) -> Given:
    if not trace.drafts or any(draft.finish_reason is None for draft in trace.drafts):
        raise TraceError(f"The run {trace.run_id} ended before its drafts; run it again from “draft”.")
    if [draft.subset_id for draft in trace.drafts] != [subset.id for subset in given.subsets]:
        raise _not_whole(trace, "its drafts do not belong to its subsets")
    return replace(given, drafts=tuple(_as_written(draft) for draft in trace.drafts))


def _with_verdicts(trace: Trace, given: Given) -> Given:
    if trace.decision is None:
        raise TraceError(f"The run {trace.run_id} ended before its decision; run it again from “verify”.")
    scores = [value for draft in trace.drafts for value in astuple(draft.scores) if value is not None]
    if not all(0 < value <= 1 for value in scores):
        raise _not_whole(trace, "a score is not in (0, 1]")
    # a draft that the verifier could not read has failed, and stays so
    return replace(
        given,
        drafts=tuple(_unscored(_untimed(draft)) for draft in trace.drafts),
        verdicts=tuple(
            Verdict(
                subset_id=draft.subset_id,
                scores=replace(draft.scores, combined=None),
                log_sums=draft.log_sums,
                verifier_tokens=draft.verifier_tokens,
            )
            for draft in trace.drafts
            if draft.usable
        ),
        verdict_note=_verdict_note(trace),
    )


_TAKES: Final[tuple[Callable[[Trace, Given], Given], ...]] = (
    _with_subsets,
    _with_drafts,
    _with_verdicts,
)
"""What "partition", "draft" and "verify" have made, each on top of the one before."""


def _as_written(draft: Draft) -> Draft:
    """The draft before anybody has judged it; what one verifier could not read another may."""
    if draft.error is not None and draft.error.startswith(UNREADABLE) and draft.answer:
        draft = replace(draft, finish_reason="stop", error=None)
    return _unscored(_untimed(draft))


def _unscored(draft: Draft) -> Draft:
    sums = draft.log_sums
    return replace(
        draft,
        verifier_tokens=(),
        scores=Scores(draft=draft.scores.draft),
        log_sums=LogSums(
            rationale=sums.rationale,
            rationale_tokens=sums.rationale_tokens,
            answer=sums.answer,
            answer_tokens=sums.answer_tokens,
        ),
    )


def _untimed(draft: Draft) -> Draft:
    """Its tokens were decoded by the clock of another run."""
    return replace(draft, tokens=tuple(replace(token, at_ms=None) for token in draft.tokens))


def _found_first(trace: Trace) -> int | None:
    """How many passages were found for the question itself; None if all were."""
    if trace.pipeline != "multihop":
        return None
    counts = (span.attributes.get("passages") for span in trace.spans if span.name == "retrieve")
    first = next(counts, None)
    return first if isinstance(first, int) and first > 0 else None


def _map_variance(trace: Trace) -> float | None:
    said = (span.attributes.get("map_variance") for span in trace.spans if span.name == "partition")
    value = next(said, None)
    return value if isinstance(value, float) and 0 < value <= 1 else None


def _verdict_note(trace: Trace) -> str | None:
    """What was said of the verification; of an eager one, of every draft by itself."""
    notes = (span.attributes.get("note") for span in trace.spans if span.name == "verify")
    return " ".join(dict.fromkeys(note for note in notes if isinstance(note, str))) or None


def _not_whole(trace: Trace, why: str) -> TraceError:
    return TraceError(f"The trace of the run {trace.run_id} cannot be forked: {why}.")
