"""AUC, calibration and intervals against values computed by hand."""

from collections.abc import Sequence
from itertools import product
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.evaluation.bootstrap import difference, estimate
from specrag.evaluation.randomisation import randomisation_test
from specrag.evaluation.ranking import auc, auc_within, calibration

JUDGED = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), max_size=12)


def test_auc_by_hand() -> None:
    """Pairs of right and wrong: 0.9>0.2, 0.9>0.5, 0.5>0.2 and one tie of four."""
    judged = [(0.9, True), (0.5, True), (0.2, False), (0.5, False)]
    assert auc(judged) == pytest.approx(3.5 / 4)
    assert auc([(0.5, True), (0.5, False)]) == 0.5
    assert auc([(0.1, True), (0.9, False)]) == 0.0
    assert auc([(0.1, True)]) is None


@given(JUDGED)
def test_auc_is_the_share_of_pairs(judged: Sequence[tuple[float, bool]]) -> None:
    right = [score for score, good in judged if good]
    wrong = [score for score, good in judged if not good]
    pairs = [(a > b) + 0.5 * (a == b) for a in right for b in wrong]
    expected = sum(pairs) / len(pairs) if pairs else None
    assert auc(judged) == (None if expected is None else pytest.approx(expected))


def test_within_questions_easy_ones_do_not_count_for_the_score() -> None:
    """Pooled, a score that only tells easy questions from hard ones looked like a good verifier."""
    easy, hard = [(0.9, True), (0.8, True), (0.85, False)], [(0.2, False), (0.1, False), (0.15, True)]
    assert auc([*easy, *hard]) == pytest.approx(6 / 9)
    assert auc_within([easy, hard, [(0.7, True)]]) == pytest.approx(0.5)
    assert auc_within([]) is None


def test_calibration_by_hand() -> None:
    """0.95 claimed and half right; 0.25 claimed and all right."""
    found = calibration([(0.95, True), (0.95, False), (0.25, True), (1.0, False)])
    assert [(one.low, one.n, one.accuracy) for one in found.bins] == [
        (0.2, 1, 1.0),
        (0.9, 3, pytest.approx(1 / 3)),
    ]
    assert found.error == pytest.approx((1 * 0.75 + 3 * abs(2.9 / 3 - 1 / 3)) / 4)
    assert calibration([]).error is None


def test_an_interval_holds_the_mean_and_shrinks_with_n() -> None:
    few, many = estimate([0.0, 1.0] * 10), estimate([0.0, 1.0] * 1000)
    assert few is not None
    assert many is not None
    assert few.mean == many.mean == 0.5
    # of 20 tosses of a coin 95 of 100 times 0.3 to 0.7 are heads (binomial), of 2,000 tosses 0.478 to 0.522
    assert [few.low, few.high] == pytest.approx([0.3, 0.7], abs=0.051)
    assert [many.low, many.high] == pytest.approx([0.478, 0.522], abs=0.005)
    assert (few.n, estimate([])) == (20, None)


@pytest.mark.parametrize(
    ("values", "p"),
    [
        ([], 1.0),
        ([0.0, 0.0], 1.0),
        ([1.0], 1.0),
        ([1.0, 0.5], 0.5),  # 2 ways of 4
        ([1.0, -0.5], 1.0),  # no way gives less than 0.5
        ([0.75, -0.25, -0.25], 1.0),  # 0.25 is the least there is
        ([0.75, 0.75, -0.25, -0.25], 0.5),  # 8 of 16 ways: 0.75 + 0.75 is at least 1 whatever the rest
        ([1.0] * 4 + [0.0] * 36, 0.125),  # 2 * 1 / 16
        ([-1.0] * 5, 0.0625),  # 2 * 1 / 32
        ([0.1] * 6 + [0.0] * 34, 0.03125),  # 2 * 1 / 64
        ([1.0] * 7 + [-1.0] * 2, 2 * (1 + 9 + 36) / 512),
        ([1.0, -1.0] * 3, 1.0),
    ],
)
def test_the_randomisation_test_by_hand(values: list[float], p: float) -> None:
    assert randomisation_test(values) == pytest.approx(p)


def test_what_is_too_much_to_try_is_tossed() -> None:
    """Of 15 differences all 32,768 ways are known; 10,000 tosses come near their share."""
    values = [0.5, -0.25, 1.0] * 5
    ways = [abs(sum(map(mul, values, signs))) >= sum(values) - 1e-9 for signs in product((1, -1), repeat=15)]
    assert randomisation_test(values) == pytest.approx(sum(ways) / len(ways), abs=0.006)
    assert randomisation_test([1.0, 0.5] * 20) == pytest.approx(2 / 10_001)


def test_many_small_losses_do_not_outvote_a_gain() -> None:
    """Against a draft at random (its score is a mean) a sign test saw 20 losses of 0.25 and 18 gains of 0.75."""
    found = difference([1.0] * 18 + [0.0] * 20, [0.25] * 38)
    assert found is not None
    assert found.mean == pytest.approx((18 * 0.75 - 20 * 0.25) / 38)
    assert found.clear


def test_the_randomisation_test_of_very_many() -> None:
    """As a quotient of whole numbers it took minutes; the normal law says 0.0455 for two deviations."""
    half, more = 50_000, 316  # of 100,000 tosses a deviation is 158.1
    assert randomisation_test([1.0] * (half + more) + [-1.0] * (half - more)) == pytest.approx(
        0.0455, abs=5e-4
    )


@pytest.mark.parametrize(
    ("values", "clear"),
    [
        ([1.0], False),
        ([1.0, 1.0], False),
        ([1.0] * 4 + [0.0] * 36, False),
        ([1.0] * 6 + [0.0] * 34, True),
        ([-1.0] * 6 + [0.0] * 34, True),
    ],
)
def test_few_questions_show_nothing(values: list[float], clear: bool) -> None:
    """One question gave an interval without width, and a report that called its pipeline better."""
    found = difference(values, [0.0] * len(values))
    assert found is not None
    assert found.clear == clear
    assert min(abs(found.low), abs(found.high)) > 0 or not clear


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [float(number % 7) for number in range(50)]
    assert estimate(values, seed=3) == estimate(values, seed=3)
    assert estimate(values, seed=3) != estimate(values, seed=4)


def test_many_questions_are_drawn_in_pieces() -> None:
    """All draws at once over 200,000 questions would take 16 GB."""
    found = estimate([1.0, 0.0] * 50_000, draws=200)
    assert found is not None
    assert found.low < 0.5 < found.high


def test_a_difference_is_taken_on_the_same_questions() -> None:
    """Both are right on a random half; one is right on ten more. Unpaired, that drowned in the noise."""
    base = [float(number % 2) for number in range(200)]
    better = [1.0 if number < 20 else value for number, value in enumerate(base)]
    found = difference(better, base)
    assert found is not None
    assert found.mean == pytest.approx(0.05)
    assert found.clear
    assert found.low > 0
    same = difference(base, base)
    assert same is not None
    assert not same.clear
    with pytest.raises(ValueError, match="zip"):
        difference([1.0], [])
