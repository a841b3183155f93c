"""Laws of the scores, of the decision and of disputes, for any numbers and any texts."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specrag.claims import agree, contradict
from specrag.config import ScoreWeights
from specrag.decide import Ruling, decide, in_contest
from specrag.scoring import combine, geometric_mean, mass
from specrag.text import normalise_answer
from specrag.types import Draft, Scores

COMPONENTS = ("draft", "self_containment", "self_reflection", "grounded", "relevance")
probability = st.floats(min_value=1e-6, max_value=1.0)
scores = st.builds(Scores, **{name: st.none() | probability for name in COMPONENTS})
full_scores = st.builds(Scores, **dict.fromkeys(COMPONENTS, probability))
weights = st.builds(
    lambda values: ScoreWeights(**dict(zip(COMPONENTS, values, strict=True))),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0]), min_size=5, max_size=5).filter(any),
)
ANSWERS = ("160 kilograms", "The 160 kilograms.", "180 kilograms", "at most 160 kg", "Ada", "no", "Tomas")


@st.composite
def drafts(draw: st.DrawFn) -> tuple[Draft, ...]:
    """Up to six drafts, of which at least one is in the contest."""
    made = tuple(
        Draft(
            subset_id=f"s{number}",
            answer=draw(st.sampled_from(ANSWERS)),
            citations=draw(st.sampled_from([(), ("p1",), ("p2",), ("p1", "p3")])),
            abstained=draw(st.sampled_from([False, False, False, True])),
            finish_reason=draw(st.sampled_from(["stop", "stop", "length", "error"])),
            scores=draw(full_scores),
        )
        for number in range(draw(st.integers(1, 6)))
    )
    assume(in_contest(made))
    return made


def chosen(ruling: Ruling) -> Draft:
    assert ruling.decision.draft_index is not None
    return ruling.drafts[ruling.decision.draft_index]


@given(st.lists(probability, min_size=1, max_size=30))
def test_a_score_lies_between_its_tokens(values: list[float]) -> None:
    mean = geometric_mean([math.log(value) for value in values])
    assert mean is not None
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert 0 < mean <= 1


@given(st.sampled_from(COMPONENTS), scores, probability, probability, weights)
def test_raising_a_component_never_lowers_the_combined_score(
    name: str, known: Scores, one: float, other: float, chosen_weights: ScoreWeights
) -> None:
    low, high = sorted((one, other))
    below = combine(replace(known, **{name: low}), chosen_weights)
    above = combine(replace(known, **{name: high}), chosen_weights)
    if below is None or above is None:
        assert below is above
        return
    assert 0 < below <= above * (1 + 1e-12)
    if getattr(chosen_weights, name) == 0:
        assert below == above


@given(scores, weights)
def test_the_combined_score_lies_between_its_weighted_components(
    known: Scores, chosen_weights: ScoreWeights
) -> None:
    parts = [getattr(known, name) for name in COMPONENTS if getattr(chosen_weights, name) > 0]
    counted = [part for part in parts if part is not None]
    combined = combine(known, chosen_weights)
    if not counted:
        assert combined is None
        return
    assert combined is not None
    assert min(counted) * (1 - 1e-9) <= combined <= max(counted) * (1 + 1e-9)


@given(drafts(), weights, st.sampled_from([0.5, 2.0]), st.booleans())
def test_weights_times_a_constant_change_nothing(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights, factor: float, pool: bool
) -> None:
    scaled = ScoreWeights(**{name: getattr(chosen_weights, name) * factor for name in COMPONENTS})
    one = decide(made, weights=chosen_weights, threshold=0, pool=pool)
    two = decide(made, weights=scaled, threshold=0, pool=pool)
    assert one == two


@given(drafts(), weights, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_drafts_decides_nothing(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights, pool: bool, random: Random
) -> None:
    """`argmax` over a generator returns 0: the first draft always won elsewhere."""
    masses = [mass(combine(draft.scores, chosen_weights)) for draft in made]
    assume(len(set(masses)) == len(masses))
    mixed = list(made)
    random.shuffle(mixed)
    one = decide(made, weights=chosen_weights, threshold=0, pool=pool)
    two = decide(mixed, weights=chosen_weights, threshold=0, pool=pool)
    assert chosen(one).subset_id == chosen(two).subset_id
    assert one.answer == two.answer
    assert (one.decision.margin, one.decision.agreement) == (two.decision.margin, two.decision.agreement)


@given(drafts(), weights, st.booleans(), probability)
def test_a_winner_that_scores_better_still_wins(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights, pool: bool, more: float
) -> None:
    before = decide(made, weights=chosen_weights, threshold=0, pool=pool)
    winner = chosen(before)
    raised = {name: max(more, getattr(winner.scores, name)) for name in COMPONENTS}
    better = replace(winner, scores=replace(winner.scores, combined=None, **raised))
    again = tuple(better if draft.subset_id == winner.subset_id else draft for draft in made)
    after = decide(again, weights=chosen_weights, threshold=0, pool=pool)
    assert chosen(after).subset_id == winner.subset_id


@given(drafts(), weights, st.booleans())
def test_margin_agreement_and_confidence_are_shares(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights, pool: bool
) -> None:
    ruling = decide(made, weights=chosen_weights, threshold=0, pool=pool)
    decision, answer = ruling.decision, ruling.answer
    assert answer is not None
    assert decision.margin is not None
    assert decision.agreement is not None
    assert answer.confidence is not None
    assert 0 <= decision.margin <= answer.confidence + 1e-12 <= 1 + 1e-12
    assert 0 < decision.agreement <= 1
    assert answer.citations == chosen(ruling).citations
    assert not chosen(ruling).abstained
    assert chosen(ruling).usable
    if len(in_contest(made)) == 1:
        assert (decision.margin, decision.agreement, answer.confidence) == (1, 1, 1)


@given(drafts(), weights)
def test_without_pooling_no_draft_in_the_contest_beats_the_chosen_one(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights
) -> None:
    ruling = decide(made, weights=chosen_weights, threshold=0, pool=False)
    best = max(ruling.drafts[index].scores.combined or 0 for index in in_contest(made))
    assert chosen(ruling).scores.combined == best


@given(drafts(), weights, st.booleans(), st.floats(0, 1))
def test_the_verifier_starts_afresh_if_and_only_if_no_draft_reaches_the_threshold(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights, pool: bool, threshold: float
) -> None:
    ruling = decide(made, weights=chosen_weights, threshold=threshold, pool=pool)
    best = max(ruling.drafts[index].scores.combined or 0 for index in in_contest(made))
    assert (ruling.decision.kind == "fallback") == (best < threshold) == (ruling.answer is None)
    if ruling.answer is not None:
        assert (chosen(ruling).scores.combined or 0) >= threshold


@given(st.lists(st.sampled_from(["abstained", "empty", "error"]), min_size=1, max_size=6), st.floats(0, 1))
def test_there_is_no_answer_if_and_only_if_every_draft_says_so(outcomes: list[str], threshold: float) -> None:
    """A draft that failed or stayed empty has not read that its passages hold nothing."""
    made = [
        Draft(
            subset_id=f"s{number}",
            answer="Not in the passages." if outcome == "abstained" else "",
            abstained=outcome == "abstained",
            finish_reason="error" if outcome == "error" else "stop",
            error="out of memory" if outcome == "error" else None,
        )
        for number, outcome in enumerate(outcomes)
    ]
    decision = decide(made, weights=ScoreWeights(), threshold=threshold).decision
    assert decision.kind == ("abstained" if set(outcomes) == {"abstained"} else "fallback")
    for outcome, word in (("abstained", "abstained"), ("empty", "wrote no answer"), ("error", "failed")):
        count = outcomes.count(outcome)
        assert (word in decision.reason) == (count > 0 and decision.kind == "fallback")
        if 0 < count < len(outcomes):
            assert f"{count} {word}" in decision.reason


@given(drafts(), weights, st.booleans(), st.integers(0, 5))
def test_the_margin_is_the_lead_over_the_strongest_other_answer(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights, pool: bool, rank: int
) -> None:
    """An answer that is strong and yet below the threshold is the next one all the same."""
    reached = sorted(combine(made[index].scores, chosen_weights) or 0 for index in in_contest(made))
    threshold = reached[rank % len(reached)]  # some drafts stay below it, never all
    ruling = decide(made, weights=chosen_weights, threshold=threshold, pool=pool)
    masses: dict[str, list[float]] = {}
    for index in in_contest(made):
        draft = ruling.drafts[index]
        masses.setdefault(normalise_answer(draft.answer), []).append(mass(draft.scores.combined))
    total = math.fsum(one for group in masses.values() for one in group)
    held = {said: math.fsum(group) if pool else max(group) for said, group in masses.items()}
    own = held.pop(normalise_answer(chosen(ruling).answer))
    assert ruling.decision.margin == pytest.approx(max(0.0, own - max(held.values(), default=0.0)) / total)


@given(drafts(), weights, st.booleans())
def test_a_dispute_has_sides_a_sentence_and_different_answers_or_nothing(
    made: tuple[Draft, ...], chosen_weights: ScoreWeights, pool: bool
) -> None:
    decision = decide(made, weights=chosen_weights, threshold=0, pool=pool).decision
    if decision.conflict is None:
        assert decision.sides == ()
        return
    assert len(decision.sides) >= 2
    assert decision.sides[0].draft_index == decision.draft_index
    for side in decision.sides:
        assert side.answer.rstrip(" .") in decision.conflict
        assert side.passage_ids
    for other in decision.sides[1:]:
        assert contradict(decision.sides[0].answer, other.answer)


said = st.text(max_size=40) | st.lists(
    st.sampled_from(
        ["160", "180", "kilograms", "kg", "not", "Ada", "Tomas", "five", "years", "since", "2025"]
    ),
    max_size=6,
).map(" ".join)


@given(said, said)
def test_two_answers_agree_or_contradict_each_other_or_neither_from_both_sides(one: str, two: str) -> None:
    assert agree(one, two) == agree(two, one)
    assert contradict(one, two) == contradict(two, one)
    assert not (agree(one, two) and contradict(one, two))


@given(said)
def test_nothing_contradicts_itself(text: str) -> None:
    assert not contradict(text, text)


def test_a_weight_that_counts_is_felt() -> None:
    """The laws above would hold for a score that ignores everything."""
    scores_of = Scores(**dict.fromkeys(COMPONENTS, 0.5))
    for name in COMPONENTS:
        only = ScoreWeights(**{other: float(other == name) for other in COMPONENTS})
        assert combine(replace(scores_of, **{name: 0.25}), only) == pytest.approx(0.25)
