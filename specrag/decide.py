"""From scored drafts to a decision. Pure: a stored trace can be decided again under other settings.

Equal answers do not compete with each other: their masses (`scoring.mass`) are added, the answer with the
most mass wins, and its best draft speaks for it. Equal means equal normalised text: near-equal answers are
not pooled, because "Paris" agrees with "Paris, France" and with "Paris, Texas", which do not agree; they are
only kept from being called a dispute (`dispute`). An abstention is likely under every model and would win by
likelihood, so it is left out unless every draft abstains. Drafts that failed never fail the run here: the
verifier may still answer from all passages, and says so itself if it cannot.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specrag.dispute import conflict_of, newest_side, rests_on_newest, sides_of
from specrag.scoring import Weights, combine, mass, unknown
from specrag.text import normalise_answer
from specrag.types import Answer, Decision, Draft, Passage, Side, Verdict

CLOSE = 0.6
"""An answer with at least this share of the chosen one's mass is worth showing beside it."""
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
    counted: tuple[int, ...]
    """The drafts whose masses the answer competes with: all, or the best alone."""
    strength: float


def decide(
    drafts: Sequence[Draft],
    *,
    weights: Weights,
    threshold: float,
    pool: bool = True,
    passages: Sequence[Passage] = (),
    newer_within: float = 0.0,
) -> Ruling:
    """Choose the answer, or say why none of the drafts can give it.

    Without `pool` the best single draft wins, as in the paper. An answer is good enough if one of its drafts
    reaches the threshold; one of which nothing is known that has a weight scores 0. `passages` give a dispute
    its titles and dates. Of disputed answers whose shares of the score mass differ by no more than
    `newer_within`, in [0, 1], the one with the newest source wins; 0 leaves dates out.
    """
    scored = tuple(
        replace(draft, scores=replace(draft.scores, combined=combine(draft.scores, weights)))
        if draft.usable
        else draft
        for draft in drafts
    )
    contest = in_contest(scored)
    if not contest:
        return _without_draft(scored, _none_answers(scored))
    missing = _missing(scored, contest, weights)
    top = max(_combined(scored[index]) for index in contest)
    if top < threshold:
        best = f"The best draft scores {top:.2f}, below" if top else "No draft has a score to reach"
        reason = (
            f"{best} the threshold of {threshold:.2f}, so the verifier answers from all passages.{missing}"
        )
        return _without_draft(scored, Decision(kind="fallback", draft_index=None, reason=reason))
    pools = _pools(scored, contest, threshold=threshold, pool=pool)
    total = math.fsum(_mass(scored[index]) for index in contest)
    sides = _sides(scored, pools, threshold, passages)
    reason = _reason(scored, pools, total, threshold)
    newer = _newer(pools, sides, passages, within=newer_within * total)
    if newer is not None:
        pools = [newer, *(pool for pool in pools if pool is not newer)]
        reason += (
            f" So close, the newer source decides: {rests_on_newest(scored, newer.members, sides, passages)}."
        )
        sides = _sides(scored, pools, threshold, passages)
    return _selected(
        scored,
        pools,
        total,
        reason=f"{reason}{missing}",
        sides=sides,
        passages=passages,
        by_date=newer is not None,
    )


def in_contest(drafts: Sequence[Draft]) -> list[int]:
    """Places of the drafts that may give the answer: usable, and not an abstention."""
    return [index for index, draft in enumerate(drafts) if draft.usable and not draft.abstained]


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


def _none_answers(drafts: Sequence[Draft]) -> Decision:
    """No draft gives an answer: all of them abstain, or some hold none and the verifier has to find it."""
    abstained = sum(draft.usable and draft.abstained for draft in drafts)
    if abstained == len(drafts):
        who = "The only draft says that its" if abstained == 1 else f"All {abstained} drafts say that their"
        reason = f"{who} passages do not hold the answer."
        return Decision(kind="abstained", draft_index=None, reason=reason)
    failed = [draft for draft in drafts if draft.finish_reason == "error"]
    why = next((f": {draft.error.rstrip('.')}" for draft in failed if draft.error), "")
    counts = (
        (abstained, "abstained"),
        (len(drafts) - abstained - len(failed), "wrote no answer"),
        (len(failed), f"failed{why}"),
    )
    found = [f"{count} {what}" for count, what in counts if count]
    who = f"None of the {len(drafts)} drafts gives an answer ({', '.join(found)})"
    if len(drafts) == 1:
        who = f"The only draft {found[0].removeprefix('1 ')}"
    reason = f"{who}, so the verifier answers from all passages."
    return Decision(kind="fallback", draft_index=None, reason=reason)


def _without_draft(drafts: tuple[Draft, ...], decision: Decision) -> Ruling:
    answer = Answer(text=NO_ANSWER) if decision.kind == "abstained" else None
    return Ruling(drafts=drafts, decision=decision, answer=answer)


def begun(text: str) -> str:
    """A draft goes on in mid-sentence; its answer stands alone and begins like a sentence.

    A word with capitals of its own is written as its owner writes it: mRNA, iPhone.
    """
    word = text.split(maxsplit=1)[:1]
    own = any(character.isupper() for rest in word for character in rest[1:])
    return text if own else text[:1].upper() + text[1:]


def _combined(draft: Draft) -> float:
    return draft.scores.combined or 0.0


def _mass(draft: Draft) -> float:
    return mass(draft.scores.combined)


def _pools(drafts: Sequence[Draft], contest: Sequence[int], *, threshold: float, pool: bool) -> list[_Pool]:
    """Pools of equal answers, the winner first; ties go to the earlier draft.

    A pool none of whose drafts reaches the threshold stands behind those that are good enough.
    """
    groups: dict[str, list[int]] = {}
    for index in contest:
        groups.setdefault(normalise_answer(drafts[index].answer) or drafts[index].answer, []).append(index)
    pools = []
    for group in groups.values():
        members = tuple(sorted(group, key=lambda index: (-_combined(drafts[index]), index)))
        counted = members if pool else members[:1]
        strength = math.fsum(_mass(drafts[index]) for index in counted)
        pools.append(_Pool(members=members, counted=counted, strength=strength))
    return sorted(
        pools,
        key=lambda one: (_combined(drafts[one.members[0]]) < threshold, -one.strength, min(one.members)),
    )


def _selected(
    drafts: tuple[Draft, ...],
    pools: Sequence[_Pool],
    total: float,
    *,
    reason: str,
    sides: tuple[Side, ...],
    passages: Sequence[Passage],
    by_date: bool,
) -> Ruling:
    first = pools[0]
    best = first.members[0]
    contest = sum(len(pool.members) for pool in pools)
    decision = Decision(
        kind="selected",
        draft_index=best,
        reason=reason,
        margin=None if by_date else _margin(pools, total),
        agreement=len(first.members) / contest,
        conflict=conflict_of(sides, passages),
        sides=sides,
    )
    answer = Answer(
        text=begun(drafts[best].answer),
        citations=drafts[best].citations,
        confidence=min(1.0, first.strength / total),
    )
    return Ruling(drafts=drafts, decision=decision, answer=answer)


def _margin(pools: Sequence[_Pool], total: float) -> float:
    """The lead of the first answer as a share of the mass; 0 if the next one is not good enough to lead."""
    rival = _rival(pools)
    return max(0.0, pools[0].strength - (rival.strength if rival else 0.0)) / total


def _newer(
    pools: Sequence[_Pool], sides: Sequence[Side], passages: Sequence[Passage], *, within: float
) -> _Pool | None:
    """The answer with the newest source of a dispute, if it lies behind the first by a hair at most."""
    side = newest_side(sides, passages) if within > 0 else None
    pool = next((one for one in pools[1:] if side and one.members[0] == side.draft_index), None)
    return pool if pool and pools[0].strength - pool.strength <= within else None


def _rival(pools: Sequence[_Pool]) -> _Pool | None:
    """The strongest other answer, good enough or not; the first of equals."""
    return max(pools[1:], key=lambda pool: pool.strength, default=None)


def _sides(
    drafts: Sequence[Draft], pools: Sequence[_Pool], threshold: float, passages: Sequence[Passage]
) -> tuple[Side, ...]:
    """The dispute among the answers that come close to the chosen one, all their drafts or the best alone."""
    first = pools[0]

    def close(pool: _Pool) -> bool:
        best, chosen = drafts[pool.members[0]], drafts[first.members[0]]
        near = pool.strength >= CLOSE * first.strength or _mass(best) >= CLOSE * _mass(chosen)
        return near and _combined(best) >= threshold

    return sides_of(drafts, [first.members, *(pool.members for pool in pools[1:] if close(pool))], passages)


def _reason(drafts: Sequence[Draft], pools: Sequence[_Pool], total: float, threshold: float) -> str:
    """Why this draft, in words built from the numbers."""
    first = pools[0]
    best = first.members[0]
    others = _numbers(first.members[1:])
    share = f"{first.strength / total:.0%} of the score mass"
    score = drafts[best].scores.combined
    text = f"Draft {best + 1} {'has no score' if score is None else f'scores {score:.2f}'}"
    pooled = first.counted == first.members
    if others and pooled:
        text += f" and {others} the same answer; together they hold {share}"
    elif len(pools) > 1 or others:
        text += f" and holds {share}"
    else:
        text += "; no other draft gives an answer"
    rival = _rival(pools)
    if rival:
        other = rival.members[0]
        text += f", the next answer (draft {other + 1}) {rival.strength / total:.0%}"
        if _combined(drafts[other]) < threshold and rival.strength >= first.strength:
            text += f", which does not count: no draft of it reaches the threshold of {threshold:.2f}"
    text += "."
    if others and not pooled:
        text += (
            f" {others[0].upper()}{others[1:]} the same answer, which does not count towards it: no pooling."
        )
    left_out = sum(draft.usable and draft.abstained for draft in drafts)
    if left_out:
        text += f" {left_out} abstained." if left_out > 1 else " One abstained."
    return text


def _numbers(indices: Sequence[int]) -> str:
    """Which drafts give something: "draft 2 gives", "drafts 2 and 3 give"; empty for none."""
    if not indices:
        return ""
    return f"{_drafts(indices)} {'gives' if len(indices) == 1 else 'give'}"


def _drafts(indices: Sequence[int]) -> str:
    numbers = " and ".join(str(index + 1) for index in sorted(indices))
    return f"draft {numbers}" if len(indices) == 1 else f"drafts {numbers}"


def _missing(drafts: Sequence[Draft], contest: Sequence[int], weights: Weights) -> str:
    """Which scores have a weight and are not known, of all drafts of the contest or of some; mostly empty."""
    without: dict[str, list[int]] = {}
    for index in contest:
        for name in unknown(drafts[index].scores, weights):
            without.setdefault(name, []).append(index)
    named = [
        name if len(indices) == len(contest) else f"{name} of {_drafts(indices)}"
        for name, indices in without.items()
    ]
    return f" Not known, so not counted: {'; '.join(named)}." if named else ""
