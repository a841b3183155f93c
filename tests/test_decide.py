"""The decision, under every trap that another implementation fell into."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from specrag.config import ScoreWeights
from specrag.decide import NO_ANSWER, begun, decide
from specrag.types import Draft, FinishReason, Passage, Scores

ONE = ScoreWeights(draft=1, self_containment=0, self_reflection=0, relevance=0)


def draft(
    number: int, answer: str, score: float, *, abstained: bool = False, finish: FinishReason = "stop"
) -> Draft:
    return Draft(
        subset_id=f"s{number}",
        answer=answer,
        citations=(f"p{number}",),
        abstained=abstained,
        finish_reason=finish,
        error="out of memory" if finish == "error" else None,
        scores=Scores(draft=score),
    )


def contest(scores: Sequence[float]) -> list[Draft]:
    return [draft(number, f"Answer {number}", score) for number, score in enumerate(scores)]


@pytest.mark.parametrize("place", range(4))
def test_the_best_draft_wins_in_every_position(place: int) -> None:
    """`argmax` over a generator returns 0: the first draft always won elsewhere."""
    scores = [0.2, 0.3, 0.4, 0.5]
    scores[place], scores[3] = scores[3], scores[place]
    ruling = decide(contest(scores), weights=ONE, threshold=0)
    assert ruling.decision.draft_index == place
    assert ruling.answer is not None
    assert ruling.answer.text == f"Answer {place}"
    assert ruling.answer.citations == (f"p{place}",)


def test_equal_answers_are_pooled_and_the_best_of_them_speaks() -> None:
    drafts = [
        draft(0, "Seven nights", 0.5),
        draft(1, "The three nights.", 0.3),
        draft(2, "three nights", 0.4),
    ]
    ruling = decide(drafts, weights=ONE, threshold=0)
    # masses are cubes: 0.125 for seven; 0.027 + 0.064 = 0.091 for three
    assert ruling.decision.draft_index == 0
    drafts[2] = draft(2, "three nights", 0.48)  # 0.027 + 0.110592 = 0.137592
    ruling = decide(drafts, weights=ONE, threshold=0)
    assert ruling.decision.draft_index == 2
    assert ruling.decision.margin == pytest.approx((0.137592 - 0.125) / 0.262592)
    assert ruling.decision.agreement == pytest.approx(2 / 3)
    assert ruling.answer is not None
    assert ruling.answer.confidence == pytest.approx(0.137592 / 0.262592)
    assert ruling.answer.text == "Three nights"
    assert "draft 2 gives the same answer; together they hold 52%" in ruling.decision.reason


def test_an_abstention_never_wins_by_likelihood() -> None:
    drafts = [draft(0, "Not in the passages.", 0.99, abstained=True), draft(1, "Ada", 0.1)]
    ruling = decide(drafts, weights=ONE, threshold=0)
    assert ruling.decision.draft_index == 1
    assert "One abstained" in ruling.decision.reason


def test_when_all_abstain_the_answer_says_so() -> None:
    drafts = [draft(number, "Not in the passages.", 0.9, abstained=True) for number in range(3)]
    ruling = decide(drafts, weights=ONE, threshold=0)
    assert (ruling.decision.kind, ruling.decision.draft_index) == ("abstained", None)
    assert ruling.answer is not None
    assert ruling.answer.text == NO_ANSWER
    assert ruling.decision.reason == "All 3 drafts say that their passages do not hold the answer."
    alone = decide(drafts[:1], weights=ONE, threshold=0).decision
    assert alone.kind == "abstained"
    assert alone.reason == "The only draft says that its passages do not hold the answer."


def test_one_abstention_does_not_speak_for_drafts_that_went_wrong() -> None:
    """One abstention beside three drafts without an answer was told as "all drafts abstained"."""
    drafts = [
        draft(0, "Not in the passages.", 0.9, abstained=True),
        draft(1, "", 0.9),
        draft(2, "", 0.9, finish="error"),
        draft(3, "", 0.9, finish="error"),
    ]
    ruling = decide(drafts, weights=ONE, threshold=0)
    assert (ruling.decision.kind, ruling.answer) == ("fallback", None)
    assert ruling.decision.reason == (
        "None of the 4 drafts gives an answer (1 abstained, 1 wrote no answer, 2 failed: out of memory), so "
        "the verifier answers from all passages."
    )


def test_a_failed_draft_does_not_sink_the_others() -> None:
    drafts = [draft(0, "", 0.9, finish="error"), draft(1, "Ada", 0.2)]
    assert decide(drafts, weights=ONE, threshold=0).decision.draft_index == 1


def test_when_all_failed_the_verifier_still_answers() -> None:
    """Drafts that are too long for the drafter say nothing of the verifier, which may read a shorter prompt."""
    ruling = decide([draft(number, "", 0.9, finish="error") for number in range(2)], weights=ONE, threshold=0)
    assert (ruling.decision.kind, ruling.answer) == ("fallback", None)
    assert "(2 failed: out of memory), so the verifier answers" in ruling.decision.reason


def test_below_the_threshold_the_verifier_must_answer() -> None:
    ruling = decide(contest([0.2, 0.3]), weights=ONE, threshold=0.31)
    assert ruling.decision.kind == "fallback"
    assert ruling.answer is None
    assert "0.30" in ruling.decision.reason
    assert "0.31" in ruling.decision.reason


def test_only_empty_drafts_fall_back() -> None:
    ruling = decide([draft(0, "", 0.5), draft(1, " ", 0.5)], weights=ONE, threshold=0)
    assert ruling.decision.kind == "fallback"


def test_deciding_again_under_other_weights_needs_no_model() -> None:
    first = Draft(
        subset_id="a", answer="A", finish_reason="stop", scores=Scores(draft=0.9, self_reflection=0.1)
    )
    second = Draft(
        subset_id="b", answer="B", finish_reason="stop", scores=Scores(draft=0.2, self_reflection=0.8)
    )
    reflection = ScoreWeights(draft=0, self_containment=0, self_reflection=1, relevance=0)
    assert decide([first, second], weights=ONE, threshold=0).decision.draft_index == 0
    assert decide([first, second], weights=reflection, threshold=0).decision.draft_index == 1


def test_the_reason_names_the_numbers() -> None:
    reason = decide(contest([0.25, 0.5]), weights=ONE, threshold=0).decision.reason
    assert reason == "Draft 2 scores 0.50 and holds 89% of the score mass, the next answer (draft 1) 11%."


def test_a_close_answer_from_other_passages_is_a_conflict() -> None:
    """The planted contradiction: an old and a new page differ, and neither is preferred silently."""
    ruling = decide([draft(0, "180 kg", 0.70), draft(1, "160 kg", 0.72)], weights=ONE, threshold=0)
    assert ruling.decision.conflict is not None
    assert "160 kg" in ruling.decision.conflict
    assert "180 kg" in ruling.decision.conflict


def test_a_distant_answer_or_one_from_the_same_passages_is_no_conflict() -> None:
    assert decide(contest([0.3, 0.7]), weights=ONE, threshold=0).decision.conflict is None
    same = [replace(draft(number, f"A{number}", 0.7), citations=("p",)) for number in range(2)]
    assert decide(same, weights=ONE, threshold=0).decision.conflict is None


def test_drafts_whose_scores_are_all_unknown_still_end_in_a_decision() -> None:
    unknown = [replace(item, scores=Scores()) for item in contest([0.5, 0.5])]
    ruling = decide(unknown, weights=ONE, threshold=0)
    assert ruling.decision.kind == "selected"
    assert ruling.decision.reason.startswith("Draft 1 has no score and holds 50% of the score mass")
    assert ruling.decision.reason.endswith(" Not known, so not counted: the draft's own probability.")
    reason = decide(unknown, weights=ONE, threshold=0.2).decision.reason
    assert reason.startswith("No draft has a score to reach the threshold of 0.20, so the verifier answers")


def test_a_score_that_one_draft_lacks_is_named() -> None:
    both = ScoreWeights(draft=1, self_containment=0, self_reflection=1, relevance=0)
    known = replace(draft(1, "B", 0.5), scores=Scores(draft=0.5, self_reflection=0.9))
    reason = decide([draft(0, "A", 0.5), known], weights=both, threshold=0).decision.reason
    assert reason.endswith("%. Not known, so not counted: self-reflection of draft 1.")
    assert "Not known" not in decide([known], weights=both, threshold=0).decision.reason


def test_a_dispute_has_its_sides_in_the_decision_the_chosen_one_first() -> None:
    decision = decide([draft(0, "180 kg", 0.70), draft(1, "160 kg", 0.72)], weights=ONE, threshold=0).decision
    assert [(side.draft_index, side.answer, side.passage_ids) for side in decision.sides] == [
        (1, "160 kg", ("p1",)),
        (0, "180 kg", ("p0",)),
    ]


def test_several_sides_may_dispute() -> None:
    drafts = [draft(0, "180 kg", 0.7), draft(1, "160 kg", 0.72), draft(2, "170 kg", 0.71)]
    decision = decide(drafts, weights=ONE, threshold=0).decision
    assert [side.draft_index for side in decision.sides] == [1, 2, 0]


def test_one_good_draft_disputes_an_answer_that_won_by_numbers() -> None:
    """Three drafts that read the same page must not drown the one that read another."""
    drafts = [draft(0, "180 kg", 0.8), *(draft(number, "160 kg", 0.75) for number in (1, 2, 3))]
    decision = decide(drafts, weights=ONE, threshold=0).decision
    assert decision.draft_index == 1
    assert [side.answer for side in decision.sides] == ["160 kg", "180 kg"]
    assert decision.sides[0].passage_ids == ("p1", "p2", "p3")


def test_many_middling_drafts_dispute_an_answer_that_won_by_one() -> None:
    # masses: 0.8^3 = 0.512 against 0.6^3 + 0.6^3 = 0.432, which is 84%; one alone would be 42%
    drafts = [draft(0, "180 kg", 0.8), draft(1, "160 kg", 0.6), draft(2, "160 kg", 0.6)]
    assert len(decide(drafts, weights=ONE, threshold=0).decision.sides) == 2
    assert decide(drafts[:2], weights=ONE, threshold=0).decision.sides == ()


def test_a_side_below_the_threshold_is_not_well_scored() -> None:
    drafts = [draft(0, "180 kg", 0.70), draft(1, "160 kg", 0.72)]
    assert decide(drafts, weights=ONE, threshold=0.71).decision.sides == ()


def test_the_same_in_other_words_is_not_pooled_and_not_disputed() -> None:
    drafts = [draft(0, "160 kilograms", 0.7), draft(1, "at most 160 kilograms since March", 0.71)]
    decision = decide(drafts, weights=ONE, threshold=0).decision
    assert (decision.draft_index, decision.agreement, decision.conflict) == (1, 0.5, None)


def test_without_pooling_the_best_single_draft_wins() -> None:
    drafts = [draft(0, "Two", 0.5), draft(1, "Three", 0.6), draft(2, "Two", 0.55), draft(3, "Four", 0.2)]
    # cubes: 0.125, 0.216, 0.166375, 0.008; together 0.515375; Two holds 0.291375
    pooled = decide(drafts, weights=ONE, threshold=0)
    single = decide(drafts, weights=ONE, threshold=0, pool=False)
    assert pooled.decision.draft_index == 2
    assert pooled.decision.margin == pytest.approx((0.291375 - 0.216) / 0.515375)
    assert single.decision.draft_index == 1
    assert single.decision.margin == pytest.approx((0.216 - 0.166375) / 0.515375)
    assert single.decision.agreement == pytest.approx(1 / 4)
    assert single.answer is not None
    assert single.answer.confidence == pytest.approx(0.216 / 0.515375)
    assert "Draft 2 scores 0.60 and holds 42% of the score mass, the next answer (draft 3) 32%." in (
        single.decision.reason
    )


def test_without_pooling_an_equal_answer_is_named_but_does_not_count() -> None:
    drafts = [draft(0, "Two", 0.5), draft(1, "Two", 0.6)]
    ruling = decide(drafts, weights=ONE, threshold=0, pool=False)
    # cubes: 0.125 and 0.216; 0.216 of 0.341 is 63%
    assert ruling.decision.reason == (
        "Draft 2 scores 0.60 and holds 63% of the score mass. "
        "Draft 1 gives the same answer, which does not count towards it: no pooling."
    )
    assert ruling.decision.agreement == 1.0


def test_any_draft_above_the_threshold_is_good_enough() -> None:
    """Two poor equal answers outweigh a better one, but only the better one may be the answer."""
    drafts = [draft(0, "Two", 0.5), draft(1, "Two", 0.5), draft(2, "Three", 0.6)]
    # cubes: 0.125 + 0.125 = 0.25 against 0.216
    assert decide(drafts, weights=ONE, threshold=0).decision.draft_index == 0
    ruling = decide(drafts, weights=ONE, threshold=0.55)
    assert (ruling.decision.kind, ruling.decision.draft_index) == ("selected", 2)
    assert ruling.decision.margin == 0.0
    assert ruling.decision.reason == (
        "Draft 3 scores 0.60 and holds 46% of the score mass, the next answer (draft 1) 54%, which does not "
        "count: no draft of it reaches the threshold of 0.55."
    )


def test_the_next_answer_is_the_strongest_other_one_good_enough_or_not() -> None:
    drafts = [
        draft(0, "One", 0.7),
        *(draft(number, "Two", 0.55) for number in (1, 2)),
        draft(3, "Three", 0.6),
    ]
    # cubes: 0.343; 0.166375 twice, together 0.33275; 0.216; all together 0.89175
    decision = decide(drafts, weights=ONE, threshold=0.6).decision
    assert decision.draft_index == 0
    assert decision.margin == pytest.approx((0.343 - 0.33275) / 0.89175)
    assert decision.reason.endswith("holds 38% of the score mass, the next answer (draft 2) 37%.")


def pages(*told: tuple[str, str | None, int]) -> list[Passage]:
    """Passages p0, p1, ... by title, date and the load that they state."""
    return [
        Passage(
            id=f"p{number}",
            document_id="d",
            title=title,
            text=f"At most {load} kg.",
            page=None,
            source="d.md",
            published_at=date,
            score=0.5,
        )
        for number, (title, date, load) in enumerate(told)
    ]


MANUAL, BULLETIN = ("Manual", "2023-09-04", 180), ("Bulletin", "2025-03-10", 160)


def test_titles_and_dates_come_from_the_passages() -> None:
    passages = pages(MANUAL, BULLETIN)
    drafts = [draft(0, "180 kg", 0.72), draft(1, "160 kg", 0.70)]
    assert decide(drafts, weights=ONE, threshold=0, passages=passages).decision.conflict == (
        "Sources disagree: Manual (2023-09-04) says “180 kg”, but Bulletin (2025-03-10) says “160 kg”. "
        "The source of 2025-03-10 is the newer one."
    )


def test_where_the_scores_hardly_decide_a_dispute_the_newer_source_wins() -> None:
    """The sample's outdated manual won over its bulletin by 2 points of 100 (seed 003: by publication date)."""
    drafts = [draft(0, "180 kg", 0.50), draft(1, "160 kg", 0.49)]
    # masses 0.125 and 0.117649 of 0.242649: 51.5 % and 48.5 %, 3.03 points apart
    ruling = decide(drafts, weights=ONE, threshold=0, passages=pages(MANUAL, BULLETIN), newer_within=0.0304)
    decision = ruling.decision
    assert decision.draft_index == 1
    assert ruling.answer is not None
    assert ruling.answer.text == "160 kg"
    assert ruling.answer.citations == ("p1",)
    assert ruling.answer.confidence == pytest.approx(0.117649 / 0.242649)
    assert (decision.margin, decision.agreement) == (None, 0.5)  # it does not lead: 48.5 % against 51.5 %
    assert [side.answer for side in decision.sides] == ["160 kg", "180 kg"]
    assert decision.conflict == (
        "Sources disagree: Bulletin (2025-03-10) says “160 kg”, but Manual (2023-09-04) says “180 kg”. "
        "The source of 2025-03-10 is the newer one."
    )
    assert decision.reason == (
        "Draft 1 scores 0.50 and holds 52% of the score mass, the next answer (draft 2) 48%. So close, the newer "
        "source decides: draft 2 rests on the one of 2025-03-10."
    )


@pytest.mark.parametrize(
    ("within", "passages"),
    [
        (0.0302, pages(MANUAL, BULLETIN)),
        (0.0, pages(MANUAL, BULLETIN)),
        (1.0, pages(("Manual", "2025-03-10", 180), ("Bulletin", "2023-09-04", 160))),
        (1.0, pages(MANUAL, ("Bulletin", None, 160))),
        (1.0, pages(("Manual", None, 180), BULLETIN)),
        (1.0, pages(("Manual", "2025", 180), BULLETIN)),
        (1.0, []),
    ],
)
def test_dates_do_not_decide_otherwise(within: float, passages: list[Passage]) -> None:
    """Not beyond the margin, not for an older source, not where a side is undated or not clearly before."""
    drafts = [draft(0, "180 kg", 0.50), draft(1, "160 kg", 0.49)]
    decision = decide(drafts, weights=ONE, threshold=0, passages=passages, newer_within=within).decision
    assert decision.draft_index == 0
    assert "newer source decides" not in decision.reason


def test_a_newer_answer_below_the_threshold_does_not_win_by_its_date() -> None:
    drafts = [draft(0, "180 kg", 0.50), draft(1, "160 kg", 0.49)]
    decision = decide(
        drafts, weights=ONE, threshold=0.495, passages=pages(MANUAL, BULLETIN), newer_within=1
    ).decision
    assert decision.draft_index == 0


def test_of_several_newer_sources_the_newest_wins_with_all_who_say_the_same() -> None:
    passages = pages(MANUAL, BULLETIN, ("Notice", "2026-01-02", 150), ("Notice again", "2026-01-02", 150))
    drafts = [
        draft(0, "180 kg", 0.50),
        draft(1, "160 kg", 0.49),
        draft(2, "150 kg", 0.38),
        draft(3, "150 kg", 0.39),
    ]  # masses 0.125, 0.117649, and 0.054872 + 0.059319 = 0.114191
    decision = decide(drafts, weights=ONE, threshold=0, passages=passages, newer_within=0.05).decision
    assert decision.draft_index == 3
    assert decision.agreement == pytest.approx(0.5)
    assert [side.draft_index for side in decision.sides] == [3, 0, 1]


@pytest.mark.parametrize(
    ("third", "scores", "masses"),
    [
        # masses 0.125 and 0.042875 + 0.079507 = 0.122382 of 0.247382, 1.06 points apart
        ("160 kg", (0.50, 0.43, 0.35), "51% of the score mass, the next answer (draft 2) 49%"),
        # masses 0.125, 0.117649 and 0.110592 of 0.353241: 35.4 %, 33.3 % and 31.3 %
        ("160 kg since March", (0.50, 0.49, 0.48), "35% of the score mass, the next answer (draft 2) 33%"),
    ],
    ids=["another draft of the answer", "another answer of the same claim"],
)
def test_a_draft_is_not_said_to_rest_on_a_source_that_it_never_read(
    third: str, scores: tuple[float, float, float], masses: str
) -> None:
    """A side has the sources of all who make its claim; its best draft was named for each of them."""
    passages = pages(MANUAL, ("Leaflet", "2024-01-01", 160), BULLETIN)
    drafts = [
        draft(number, answer, score)
        for number, (answer, score) in enumerate(zip(("180 kg", "160 kg", third), scores, strict=True))
    ]
    decision = decide(drafts, weights=ONE, threshold=0, passages=passages, newer_within=0.03).decision
    assert decision.draft_index == 1
    assert decision.sides[0].passage_ids == ("p1", "p2")
    assert decision.reason == (
        f"Draft 1 scores 0.50 and holds {masses}. So close, the newer source decides: draft 2 says the same as "
        "draft 3, which rests on the one of 2025-03-10."
    )


@pytest.mark.parametrize(
    ("draft_text", "answer"),
    [
        ("the firm was sold.", "The firm was sold."),
        ("a", "A"),
        ("", ""),
        ("640 Wh", "640 Wh"),
        ("e-mail", "E-mail"),
        ("élan", "Élan"),
        ("mRNA vaccines", "mRNA vaccines"),
        ("iPhone", "iPhone"),
        ("pH 7", "pH 7"),
        ("Ada Brennick", "Ada Brennick"),
    ],
)
def test_an_answer_begins_like_a_sentence_unless_its_first_word_is_spelled_otherwise(
    draft_text: str, answer: str
) -> None:
    assert begun(draft_text) == answer
