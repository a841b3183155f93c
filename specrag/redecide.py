"""A stored run decided again under other settings, without a model: what if the weights were others?

Scores are known, and deciding is arithmetic. Only text that no model has written cannot be had this way: a
run that would now fall back, or whose verifier would now read other drafts, has a decision and no answer.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, assert_never

from pydantic import ValidationError

from specrag.config import PRESETS, ScoreWeights
from specrag.decide import Ruling, decide, in_contest
from specrag.errors import TraceError, UsageError
from specrag.scoring import Weights
from specrag.synthesise import synthesised
from specrag.tracing.trace import Trace

_Wanted: TypeAlias = Literal["nothing", "fallback", "synthesis"]
"""The text that the verifier has to write after a ruling."""
_COMPONENTS = tuple(PRESETS["default"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """The settings that a decision depends on."""

    weights: Weights
    threshold: float
    pool: bool
    synthesise: bool

    def rule(self, trace: Trace, drafts: int | None = None) -> Ruling:
        return decide(
            trace.drafts[:drafts],
            weights=self.weights,
            threshold=self.threshold,
            pool=self.pool,
            passages=trace.passages,
        )

    def wanted(self, ruling: Ruling) -> _Wanted:
        if ruling.answer is None:
            return "fallback"
        return "synthesis" if self.synthesise and ruling.decision.kind == "selected" else "nothing"


def decide_again(
    trace: Trace,
    *,
    weights: Weights | None = None,
    threshold: float | None = None,
    pool: bool | None = None,
    drafts: int | None = None,
) -> Trace:
    """The trace as it would be under these settings; None leaves one as the run had it.

    `drafts` keeps only the first so many. The answer is None where a model would have to write it anew, and
    the decision's reason then says so. A trace in which nothing was decided between drafts (standard RAG, a
    run that failed before) comes back as it is.

    Raises:
        UsageError: `drafts` is below 1, or `threshold` not in [0, 1].
        TraceError: the settings in the trace cannot be read.
        ModelError: every draft that is kept failed.
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
    return _with(trace, _outcome(trace, before, after, terms.wanted(before), asked.wanted(after)), asked)


def _outcome(trace: Trace, before: Ruling, after: Ruling, had: _Wanted, wanted: _Wanted) -> Ruling:
    """The new ruling with the text that the verifier wrote in this run, if it is still the text it wants."""
    stored = trace.decision
    assert stored is not None
    match wanted:
        case "nothing":
            return after
        case "fallback" if had == stored.kind == "fallback":
            reason = f"{after.decision.reason}{_added(stored.reason, before)}"
            return replace(after, decision=replace(stored, reason=reason), answer=trace.answer)
        case "synthesis" if had == "synthesis" and _contest(after) == _contest(before):
            if stored.kind == "synthesised":
                return _synthesised(trace, after)
            reason = f"{after.decision.reason}{_added(stored.reason, before)}"
            return replace(after, decision=replace(after.decision, reason=reason))
        case "fallback":
            reason = f"{after.decision.reason} In this run it has not, so there is no answer to show."
            return replace(after, decision=replace(after.decision, reason=reason))
        case "synthesis":
            count = len(_contest(after))
            reason = (
                f"The verifier would write one answer from {count} {'draft' if count == 1 else 'drafts'}. "
                f"In this run it has not, so there is no answer to show. {after.decision.reason}"
            )
            decision = replace(after.decision, kind="synthesised", reason=reason)
            return replace(after, decision=decision, answer=None)
        case _:
            assert_never(wanted)


def _added(reason: str, before: Ruling) -> str:
    """What the writing of the answer has added to the reason of the ruling before it."""
    base = before.decision.reason
    return reason.removeprefix(base) if reason.startswith(base) else ""


def _contest(ruling: Ruling) -> set[str]:
    return {ruling.drafts[index].subset_id for index in in_contest(ruling.drafts)}


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
    except (ValidationError, ValueError, TypeError, AttributeError) as error:
        raise TraceError("The weights and the threshold in this trace cannot be read.") from error
    return _Terms(
        weights=weights,
        threshold=threshold,
        pool=bool(config.get("pool", True)),
        synthesise=config.get("decision") == "synthesise",
    )
