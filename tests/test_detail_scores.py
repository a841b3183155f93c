"""The breakdown of scores adds up: every number is checked against one that was computed by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.config import ScoreWeights
from specrag.decide import decide
from specrag.scoring import combine
from specrag.tracing.trace import Trace
from specrag.types import Draft, LogSums, Scores
from specrag.ui.detail.numbers import exact, logarithm, plain, share
from specrag.ui.detail.score_card import score_table
from specrag.ui.detail.scores import components_of, standings, sums_of
from specrag.ui.detail.terms import COMPONENTS, Terms, terms_of
from tests.detail_runs import run_of
from tests.ui_html import find, read
from tests.ui_runs import RUNS
from tests.ui_traces import HOSTILE_TRACE, STARTED, STATES

ONES = {"draft": 1.0, "self_containment": 1.0, "self_reflection": 1.0, "grounded": 0.0, "relevance": 1.0}


def draft(number: int, answer: str, scores: Scores, **more: Any) -> Draft:
    made = Draft(subset_id=f"s{number}", answer=answer, finish_reason="stop", scores=scores)
    return replace(made, **more)


def judged(*drafts: Draft, pool: bool = True, weights: dict[str, float] = ONES) -> Trace:
    """These drafts, decided."""
    ruling = decide(drafts, weights=ScoreWeights(**weights), threshold=0.0, pool=pool)
    return replace(
        STARTED,
        status="done",
        config={"weights": weights, "threshold": 0.0, "pool": pool},
        drafts=ruling.drafts,
        decision=ruling.decision,
        answer=ruling.answer,
    )


# combined: fourth root of 0.5 * 0.4 * 0.8 * 0.9 = 0.144, and of 0.6 * 0.5 * 0.5 * 0.4 = 0.06
FIRST = Scores(draft=0.5, self_containment=0.4, self_reflection=0.8, relevance=0.9)
SECOND = Scores(draft=0.6, self_containment=0.5, self_reflection=0.5, relevance=0.4)
THREE = judged(draft(1, "Seven", FIRST), draft(2, "Three", SECOND), draft(3, "three.", SECOND))


def test_the_contributions_add_up_to_the_logarithm_of_the_combined_score() -> None:
    one = standings(THREE).drafts[0]
    assert [row.share for row in one.components] == [0.25] * 4
    assert [row.adds for row in one.components] == pytest.approx(
        [math.log(0.5) / 4, math.log(0.4) / 4, math.log(0.8) / 4, math.log(0.9) / 4]
    )
    assert one.log_combined == pytest.approx(math.log(0.144) / 4)
    assert one.combined == pytest.approx(0.144**0.25)
    assert one.stated


def test_mass_is_the_third_power_and_equal_answers_add_theirs() -> None:
    """0.144 ** (3/4) = 0.23376, twice 0.06 ** (3/4) = 0.24246: together the two outweigh the better one."""
    found = standings(THREE)
    assert [one.mass for one in found.drafts] == pytest.approx([0.23376, 0.12123, 0.12123], abs=1e-5)
    assert found.total == pytest.approx(0.47622, abs=1e-5)
    assert [(pool.members, pool.chosen) for pool in found.pools] == [((2, 3), True), ((1,), False)]
    assert [pool.share for pool in found.pools] == pytest.approx([0.5091, 0.4909], abs=1e-4)
    assert [one.number for one in found.ranking] == [1, 2, 3]
    assert [one.winner for one in found.drafts] == [False, True, False]
    assert THREE.decision is not None
    assert THREE.decision.margin == pytest.approx(found.pools[0].share - found.pools[1].share)


def test_without_pooling_the_best_draft_wins_and_the_card_says_that_one_does_not_count() -> None:
    alone = judged(*THREE.drafts, pool=False)
    found = standings(alone)
    assert [(pool.members, pool.counted, pool.chosen) for pool in found.pools] == [
        ((1,), (1,), True),
        ((2, 3), (2,), False),
    ]
    assert "only draft 2 counts" in score_table(alone)
    assert "Without pooling" in score_table(alone)


def test_the_papers_three_scores_give_the_papers_product() -> None:
    """Section 3.3 multiplies them; the mass at weight 1 has to be that product."""
    paper = {**ONES, "relevance": 0.0}
    one = standings(judged(draft(1, "Seven", FIRST), weights=paper)).drafts[0]
    assert one.mass == pytest.approx(0.5 * 0.4 * 0.8)
    left_out = one.components[-1]
    assert (left_out.key, left_out.share, left_out.adds) == ("relevance", None, None)


def test_a_component_that_is_not_known_leaves_its_share_to_the_others() -> None:
    lacking = replace(FIRST, self_containment=None)
    trace = judged(draft(1, "Seven", lacking))
    one = standings(trace).drafts[0]
    assert [row.share for row in one.components] == [pytest.approx(1 / 3), None, *[pytest.approx(1 / 3)] * 2]
    assert one.unknown == ("self-containment",)
    assert one.combined == pytest.approx((0.5 * 0.8 * 0.9) ** (1 / 3))
    html = score_table(trace)
    assert "Not known, so not counted: self-containment" in html
    assert "not known" in [cell.text for cell in find(html, "td")]


@given(
    st.builds(
        Scores,
        draft=st.none() | st.floats(1e-6, 1),
        self_containment=st.none() | st.floats(1e-6, 1),
        self_reflection=st.none() | st.floats(1e-6, 1),
        grounded=st.none() | st.floats(1e-6, 1),
        relevance=st.none() | st.floats(1e-6, 1),
    ),
    st.fixed_dictionaries({name: st.sampled_from([0.0, 0.5, 1.0, 4.0]) for name in COMPONENTS}),
)
def test_the_breakdown_is_what_the_program_combines(scores: Scores, weights: dict[str, float]) -> None:
    """Two formulas for one number would drift apart."""
    terms = Terms(weights=weights, threshold=0.0, pool=True)
    rows = components_of(draft(1, "x", scores), terms)
    unchecked: Any = ScoreWeights.model_construct
    combined = combine(scores, unchecked(**weights))
    added = [row.adds for row in rows if row.adds is not None]
    assert (combined is None) == (not added)
    if combined is not None:
        assert math.exp(math.fsum(added)) == pytest.approx(combined)
        assert math.fsum(row.share for row in rows if row.share is not None) == pytest.approx(1)


def test_log_sums_come_to_the_scores_that_were_made_from_them() -> None:
    sums = LogSums(rationale=-4.0, rationale_tokens=8, answer=-1.0, answer_tokens=4, self_containment=-12.0)
    rationale, answer = sums_of(sums)
    assert [rationale.mean, answer.mean] == pytest.approx([math.exp(-0.5), math.exp(-0.25)])
    assert [one.tokens for one in (rationale, answer)] == [8, 4]
    whole = sums_of(replace(sums, self_containment_tokens=12))[2]
    assert whole.mean == pytest.approx(math.exp(-1))
    assert sums_of(LogSums()) == ()


def test_of_a_real_shaped_run_every_sum_explains_its_score() -> None:
    for one in standings(run_of(drafts=5, words=30)).drafts:
        rationale, answer, contained = one.sums
        assert (rationale.mean + answer.mean) / 2 == pytest.approx(one.draft.scores.draft)
        assert contained.mean == pytest.approx(one.draft.scores.self_containment)
        assert one.stated


def test_an_abstention_and_a_failure_are_told_and_have_no_mass() -> None:
    trace = judged(
        draft(1, "Seven", FIRST),
        draft(2, "Not in the passages", SECOND, abstained=True),
        draft(3, "", Scores(), finish_reason="error", error="Out of memory."),
    )
    found = standings(trace)
    assert [(one.standing, one.mass is None) for one in found.drafts] == [
        ("", False),
        ("abstained", True),
        ("failed", True),
    ]
    assert found.drafts[0].share == 1
    assert found.ranking[0].number == 1
    assert "abstained" in score_table(trace)


def test_the_bars_of_the_ranking_are_the_logarithms() -> None:
    """The longest stands for the worst draft; within a draft they have the lengths of its contributions."""
    html = score_table(THREE)
    bars = [_widths(html, place) for place in range(3)]
    worst = -math.log(0.06) / 4
    assert sum(bars[1]) == pytest.approx(100, abs=0.05)
    assert bars[0] == pytest.approx(
        [100 * -math.log(value) / 4 / worst for value in (0.5, 0.4, 0.8, 0.9)], abs=0.01
    )


def _widths(html: str, place: int) -> list[float]:
    elements = read(html)
    track = [one for one in elements if "sr-lost" in one.classes][place]
    styles = [one.attributes["style"] for one in elements if track in one.parents and one.tag == "i"]
    return [float(style.removeprefix("width:").removesuffix("%")) for style in styles]


def test_the_table_shows_numbers_that_a_reader_can_add() -> None:
    html = score_table(THREE)
    cells = [cell.text for cell in find(html, "td")]
    for text in ("0.2500", "0.5000", "0.4000", "−0.173", "−0.229", "−0.056", "−0.026", "−0.484", "0.6160"):
        assert text in cells, text
    assert "section 3.3" in html
    assert "leads the next one by 1.8 % of the mass" in html


def test_a_score_that_its_components_do_not_give_is_told() -> None:
    """A file from outside may state anything."""
    forged = replace(THREE.drafts[0], scores=replace(FIRST, combined=0.99))
    assert "The trace states a combined score" in score_table(replace(THREE, drafts=(forged,)))
    assert "The trace states a combined score" not in score_table(THREE)


def test_settings_that_cannot_be_read_are_one_sentence() -> None:
    for config in ({"weights": "many"}, {"weights": {"draft": "x"}}, {"threshold": -3}, {"threshold": None}):
        html = score_table(replace(THREE, config=config))
        assert [one.attributes["role"] for one in find(html, "sr-notice")] == ["alert"]
        assert "cannot be read" in html
    assert terms_of(replace(THREE, config={})).weights["relevance"] == 4


@pytest.mark.parametrize("state", ["started", "retrieved", "failed", "cancelled"])
def test_a_run_without_scores_says_why(state: str) -> None:
    assert find(score_table(STATES[state]), "sr-empty")
    assert "no drafts to score" in score_table(RUNS["standard"])


def test_nothing_of_a_hostile_trace_becomes_markup() -> None:
    html = score_table(HOSTILE_TRACE)
    assert not {"script", "img"} & {element.tag for element in read(html)}
    assert "${" not in html
    assert len(html) < 200_000


def test_numbers_are_written_so_that_they_can_be_checked() -> None:
    assert (exact(0.12345), exact(0.0000123), exact(None)) == ("0.1235", "1.23e-05", "–")
    assert (logarithm(-0.12345), logarithm(-0.0001), logarithm(None)) == ("−0.123", "0.000", "–")
    assert (share(0.5091), plain(4.0), plain(0.25)) == ("50.9 %", "4", "0.25")
