"""From scored drafts to a decision. Pure: a stored trace can be decided again under other settings.

Equal answers do not compete with each other: their masses (`scoring.mass`) are added, the answer with the
most mass wins, and its best draft speaks for it. An abstention is likely under every model and would win by
likelihood, so it is left out unless every draft abstains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specrag.errors import ModelError
from specrag.scoring import Weights, combine, mass
from specrag.text import normalise_answer
from specrag.types import Answer, Decision, Draft, Verdict

CLOSE = 0.6
"""A second answer with at least this share of the first one's mass is worth showing beside it."""
NO_ANSWER = "The passages do not answer this question."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Drafts with combined scores, the decision, and the answer unless it must still be written."""

    drafts: tuple[Draft, ...]
    decision: Decision
    answer: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Drafts that give the same answer, best first."""

    members: tuple[int, ...]
    mass: float


def decide(drafts: Sequence[Draft], *, weights: Weights, threshold: float) -> Ruling:
    """Choose the answer, or say why none of the drafts can give it.

    Raises:
        ModelError: every draft failed.
    """
    scored = tuple(
        replace(draft, scores=replace(draft.scores, combined=combine(draft.scores, weights)))
        if draft.usable
        else draft
        for draft in drafts
    )
    usable = [index for index, draft in enumerate(scored) if draft.usable]
    contest = [index for index in usable if not scored[index].abstained]
    if not usable:
        return _none_usable(scored)
    if not contest:
        reason = f"All {len(usable)} drafts say that their passages do not hold the answer."
        return _without_draft(scored, Decision(kind="abstained", draft_index=None, reason=reason))
    pools = _pools(scored, contest)
    best = pools[0].members[0]
    top = _combined(scored[best])
    if top < threshold:
        reason = (
            f"The best draft scores {top:.2f}, below the threshold of {threshold:.2f}, so the verifier "
            "answers from all passages."
        )
        return _without_draft(scored, Decision(kind="fallback", draft_index=None, reason=reason))
    total = sum(pool.mass for pool in pools)
    lead = pools[0].mass - (pools[1].mass if len(pools) > 1 else 0.0)
    decision = Decision(
        kind="selected",
        draft_index=best,
        reason=_reason(scored, pools, left_out=len(usable) - len(contest)),
        margin=lead / total,
        agreement=len(pools[0].members) / len(contest),
        conflict=_conflict(scored, pools),
    )
    answer = Answer(
        text=begun(scored[best].answer), citations=scored[best].citations, confidence=pools[0].mass / total
    )
    return Ruling(drafts=scored, decision=decision, answer=answer)


def with_verdicts(drafts: Sequence[Draft], verdicts: Sequence[Verdict]) -> tuple[Draft, ...]:
    """The drafts with what the verifier found; a draft without a verdict stays as it is."""
    found = {verdict.subset_id: verdict for verdict in verdicts}
    return tuple(
        replace(
            draft,
            scores=verdict.scores,
            log_sums=verdict.log_sums,
            verifier_tokens=verdict.verifier_tokens,
        )
        if (verdict := found.get(draft.subset_id))
        else draft
        for draft in drafts
    )


def _none_usable(drafts: tuple[Draft, ...]) -> Ruling:
    errors = [draft.error for draft in drafts if draft.finish_reason == "error" and draft.error]
    if len(errors) == len(drafts):
        raise ModelError(f"None of the {len(drafts)} drafts could be written: {errors[0]}")
    reason = f"None of the {len(drafts)} drafts holds an answer, so the verifier answers from all passages."
    return _without_draft(drafts, Decision(kind="fallback", draft_index=None, reason=reason))


def _without_draft(drafts: tuple[Draft, ...], decision: Decision) -> Ruling:
    answer = Answer(text=NO_ANSWER) if decision.kind == "abstained" else None
    return Ruling(drafts=drafts, decision=decision, answer=answer)


def begun(text: str) -> str:
    """A draft goes on in mid-sentence; its answer stands alone and begins like a sentence."""
    return text[:1].upper() + text[1:]


def _combined(draft: Draft) -> float:
    return draft.scores.combined or 0.0


def _pools(drafts: Sequence[Draft], contest: Sequence[int]) -> list[_Pool]:
    """Pools of equal answers, the one with the most mass first; ties go to the earlier draft."""
    groups: dict[str, list[int]] = {}
    for index in contest:
        groups.setdefault(normalise_answer(drafts[index].answer) or drafts[index].answer, []).append(index)
    pools = [
        _Pool(
            members=tuple(sorted(group, key=lambda index: (-_combined(drafts[index]), index))),
            mass=sum(mass(drafts[index].scores.combined) for index in group),
        )
        for group in groups.values()
    ]
    return sorted(pools, key=lambda pool: (-pool.mass, min(pool.members)))


def _conflict(drafts: Sequence[Draft], pools: Sequence[_Pool]) -> str | None:
    """A sentence when a second answer from other passages comes close to the first."""
    if len(pools) == 1 or pools[1].mass < CLOSE * pools[0].mass:
        return None
    first, second = (drafts[pool.members[0]] for pool in pools[:2])
    if not first.citations or not second.citations or set(first.citations) & set(second.citations):
        return None
    numbers = [pool.members[0] + 1 for pool in pools[:2]]
    return (
        f"Draft {numbers[0]} says “{first.answer}” and draft {numbers[1]}, from other passages, "
        f"“{second.answer}”. Their scores are close, so both are shown."
    )


def _reason(drafts: Sequence[Draft], pools: Sequence[_Pool], *, left_out: int) -> str:
    """Why this draft, in words built from the numbers."""
    first, total = pools[0], sum(pool.mass for pool in pools)
    best = first.members[0]
    share = f"{first.mass / total:.0%} of the score mass"
    if len(first.members) > 1:
        others = " and ".join(str(index + 1) for index in sorted(first.members[1:]))
        agree = f"draft {others} gives" if len(first.members) == 2 else f"drafts {others} give"  # noqa: PLR2004 - a pair
        text = f"Draft {best + 1} scores {_combined(drafts[best]):.2f} and {agree} the same answer"
        text += f"; together they hold {share}"
    else:
        text = f"Draft {best + 1} scores {_combined(drafts[best]):.2f}"
        text += f" and holds {share}" if len(pools) > 1 else "; no other draft gives an answer"
    if len(pools) > 1:
        rival = pools[1].members[0]
        text += f", the next answer (draft {rival + 1}) {pools[1].mass / total:.0%}"
    text += "."
    if left_out:
        text += f" {left_out} abstained." if left_out > 1 else " One abstained."
    return text
