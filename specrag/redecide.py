"""A stored run decided again under other settings, without a model: what if the weights were others?

Scores are known, and deciding is arithmetic. Only text that no model has written cannot be had this way: a
run that would now fall back, or whose verifier would now read other drafts, has a decision and no answer.
Nor can a score that the run did not ask for: it is named and left out, and refused where nothing else counts.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, assert_never

from pydantic import ValidationError

from specrag.config import PRESETS, ScoreWeights
from specrag.decide import Ruling, decide, in_contest
from specrag.errors import TraceError, UsageError
from specrag.scoring import Weights, unknown
from specrag.synthesise import synthesised, written_decision
from specrag.tracing.trace import Trace
from specrag.types import Decision

_Wanted: TypeAlias = Literal["nothing", "fallback", "synthesis"]
"""The text that the verifier has to write after a ruling."""
_UNWRITTEN: Final = " In this run it has not, so there is no answer to show."
_COMPONENTS = tuple(PRESETS["default"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """The settings that a decision depends on."""

    weights: Weights
    threshold: float
    pool: bool
    synthesise: bool
    newer_within: float

    def rule(self, trace: Trace, drafts: int | None = None) -> "_Ruled":
        def under(threshold: float) -> Ruling:
            return decide(
                trace.drafts[:drafts],
                weights=self.weights,
                threshold=threshold,
                pool=self.pool,
                passages=trace.passages,
                newer_within=self.newer_within,
            )

        return _Ruled(ruling=under(self.threshold), best=under(0.0), synthesise=self.synthesise)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ruled:
    """What the drafts decide, before the verifier writes anything."""

    ruling: Ruling
    best: Ruling
    """The same without a threshold: what stands when a fallback cannot be written."""
    synthesise: bool

    @property
    def wanted(self) -> _Wanted:
        if self.ruling.answer is None:
            return "fallback"
        return "synthesis" if self.synthesise and self.ruling.decision.kind == "selected" else "nothing"

    @property
    def contest(self) -> set[str]:
        """Subset ids of the drafts that a synthesis is written from."""
        return {self.ruling.drafts[index].subset_id for index in in_contest(self.ruling.drafts)}


def decide_again(
    trace: Trace,
    *,
    weights: Weights | None = None,
    threshold: float | None = None,
    pool: bool | None = None,
    drafts: int | None = None,
) -> Trace:
    """The trace as it would be under these settings; None leaves one as the run had it.

    `drafts` keeps the first so many drafts of this run; a run with so many subsets would have divided its
    passages otherwise. The answer is None where a model would have to write it anew, and the decision's
    reason then says so. A trace in which nothing was decided between drafts (standard RAG, a run that failed
    before) comes back as it is.

    Raises:
        UsageError: `drafts` is below 1, `threshold` not in [0, 1], or `weights` count only what is not known.
        TraceError: the settings in the trace cannot be read.
    """
    if drafts is not None and drafts < 1:
        raise UsageError(f"At least one draft is needed to decide; {drafts} were asked for.")
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"The threshold lies between 0 and 1, and {threshold} does not.")
    if not trace.drafts or trace.decision is None or trace.decision.kind == "direct":
        return trace
    terms = _terms_of(trace)
    asked = replace(
        terms,
        weights=terms.weights if weights is None else weights,
        threshold=terms.threshold if threshold is None else threshold,
        pool=terms.pool if pool is None else pool,
    )
    before, after = terms.rule(trace), asked.rule(trace, drafts)
    if weights is not None:
        _check_known(after.ruling, weights)
    return _with(trace, _outcome(trace, before, after), asked)


def _check_known(ruling: Ruling, weights: Weights) -> None:
    contest = [ruling.drafts[index].scores for index in in_contest(ruling.drafts)]
    if contest and all(scores.combined is None for scores in contest):
        names = " and ".join(unknown(contest[0], weights))
        raise UsageError(
            f"These weights count only {names}, which this run did not find out; give another score a weight."
        )


def _outcome(trace: Trace, before: _Ruled, after: _Ruled) -> Ruling:
    """The new ruling with the text that the verifier wrote in this run, if it is still the text it wants."""
    assert trace.decision is not None
    match after.wanted:
        case "nothing" if before.wanted == "nothing":
            return _noted(after.ruling, _added(trace.decision, before.ruling.decision))
        case "nothing":
            return after.ruling
        case "fallback" if before.wanted == "fallback":
            return _fallen_back(trace, trace.decision, before, after)
        case "fallback":
            return _noted(after.ruling, _UNWRITTEN)
        case "synthesis" if before.wanted == "synthesis" and after.contest == before.contest:
            return _again_written(trace, trace.decision, before, after)
        case "synthesis":
            return _to_be_written(after)
        case _:
            assert_never(after.wanted)


def _fallen_back(trace: Trace, stored: Decision, before: _Ruled, after: _Ruled) -> Ruling:
    """A fallback keeps its text; where the verifier could not write it, the best draft stands again."""
    added = _added(stored, before.ruling.decision)
    if stored.kind == "fallback":
        reason = f"{after.ruling.decision.reason}{added}"
        return replace(after.ruling, decision=replace(stored, reason=reason), answer=trace.answer)
    if after.best.answer is None:
        return _noted(after.ruling, _UNWRITTEN)
    why = added.removesuffix(before.best.decision.reason)
    reason = f"{after.ruling.decision.reason}{why}{after.best.decision.reason}"
    return replace(after.best, decision=replace(after.best.decision, reason=reason))


def _again_written(trace: Trace, stored: Decision, before: _Ruled, after: _Ruled) -> Ruling:
    if stored.kind != "synthesised":
        return _noted(after.ruling, _added(stored, before.ruling.decision))
    return _noted(_synthesised(trace, after.ruling), _added(stored, written_decision(before.ruling)))


def _to_be_written(after: _Ruled) -> Ruling:
    count = len(after.contest)
    reason = (
        f"The verifier would write one answer from {count} {'draft' if count == 1 else 'drafts'}."
        f"{_UNWRITTEN} {after.ruling.decision.reason}"
    )
    decision = replace(after.ruling.decision, kind="synthesised", reason=reason)
    return replace(after.ruling, decision=decision, answer=None)


def _noted(ruling: Ruling, added: str) -> Ruling:
    decision = ruling.decision
    return replace(ruling, decision=replace(decision, reason=f"{decision.reason}{added}"))


def _added(stored: Decision, before: Decision) -> str:
    """What verifying and writing have added to the reason of the decision before it."""
    reason = stored.reason
    return reason.removeprefix(before.reason) if reason.startswith(before.reason) else ""


def _synthesised(trace: Trace, ruling: Ruling) -> Ruling:
    """The stored text under the new ruling; its tokens still hold the numbers of the drafts it cites."""
    stored = trace.answer
    if stored is None:
        return replace(ruling, answer=None)
    raw = "".join(token.text for token in trace.answer_tokens)
    again = synthesised(ruling, raw or stored.text, trace.passages)
    if raw or again.answer is None:
        return again
    return replace(again, answer=replace(again.answer, citations=stored.citations))


def _with(trace: Trace, ruling: Ruling, terms: _Terms) -> Trace:
    """The trace with another ruling, under the settings that led to it."""
    kept = {draft.subset_id for draft in ruling.drafts}
    written = (
        ruling.answer is not None and trace.answer is not None and ruling.answer.text == trace.answer.text
    )
    changed: dict[str, Any] = {
        "weights": {name: getattr(terms.weights, name) for name in _COMPONENTS},
        "threshold": terms.threshold,
        "pool": terms.pool,
    }
    if len(ruling.drafts) < len(trace.drafts):
        changed["drafts"] = len(ruling.drafts)
    return replace(
        trace,
        config={**trace.config, **changed},
        subsets=tuple(subset for subset in trace.subsets if subset.id in kept),
        drafts=ruling.drafts,
        decision=ruling.decision,
        answer=ruling.answer,
        answer_tokens=trace.answer_tokens if written else (),
    )


def _terms_of(trace: Trace) -> _Terms:
    """The settings that the run was decided under; a trace of an older version knows fewer of them."""
    config = trace.config
    given = config.get("weights", PRESETS["default"])
    try:
        weights = ScoreWeights(**{name: float(given.get(name, 0.0)) for name in _COMPONENTS})
        threshold = float(config.get("threshold", 0.0))
        newer = min(1.0, max(0.0, float(config.get("newer_within", 0.0))))
    except (ValidationError, ValueError, TypeError, AttributeError) as error:
        raise TraceError("The weights and the threshold in this trace cannot be read.") from error
    return _Terms(
        weights=weights,
        threshold=threshold,
        pool=bool(config.get("pool", True)),
        synthesise=config.get("decision") == "synthesise",
        newer_within=newer,
    )
