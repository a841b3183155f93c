"""What a run was worth and what else could have been chosen, on hand-written traces."""

from dataclasses import replace

import pytest

from specrag.decide import NO_ANSWER
from specrag.evaluation.choices import choices, judgements
from specrag.evaluation.judging import claimed, marks, right, score
from specrag.evaluation.questions import Question, seen
from specrag.tracing.trace import Trace
from specrag.types import Answer, Decision, Draft, Passage, Scores, Side

BATTERY, BELL = seen("Battery", "It weighs 3.4 kilograms."), seen("Bell", "It is small.")
SHORT = Question(
    id="q", question="How heavy?", answers=("3.4 kilograms", "3.4 kg"), passages=(BATTERY, BELL),
    gold=frozenset({BATTERY.id}),
)  # fmt: skip
NONE = replace(SHORT, answers=(), gold=frozenset())
CLAIM = replace(SHORT, answers=("false",))
LONG = replace(SHORT, answers=("the battery of the bike weighs three kilograms",), task="long_form_qa")


def draft(
    number: int, answer: str, *, abstained: bool = False, failed: bool = False, **scores: float
) -> Draft:
    return Draft(
        subset_id=f"s{number}",
        answer="" if failed else answer,
        abstained=abstained,
        finish_reason="error" if failed else "stop",
        scores=Scores(**scores),
    )


def run(answer: str, *drafts: Draft, citations: tuple[str, ...] = (), **decision: object) -> Trace:
    """A finished run that gave this answer from these drafts."""
    made = {"kind": "selected" if drafts else "direct", "draft_index": None, "reason": "", **decision}
    return Trace(
        run_id="r", status="done", pipeline="speculative", question="How heavy?", created_at="",
        passages=tuple(
            Passage(id=one.id, document_id="d", title=one.title, text=one.text, page=None, source="",
                    published_at=None, score=0.5)
            for one in SHORT.passages
        ),
        drafts=drafts,
        decision=Decision(**made),  # type: ignore[arg-type]  # fields of a decision
        answer=Answer(text=answer, citations=citations, confidence=0.8),
        config={"weights": {"draft": 1.0, "self_reflection": 1.0, "relevance": 4.0}},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("question", "answer", "worth"),
    [
        (SHORT, "It weighs 3.4 kg in all.", 1.0),
        (SHORT, "About 34 kg.", 0.0),
        (SHORT, NO_ANSWER, 0.0),
        (SHORT, "", 0.0),
        (NONE, NO_ANSWER, 1.0),
        (NONE, "", 1.0),
        (NONE, "3.4 kg", 0.0),
        (CLAIM, "No, the claim is not true.", 1.0),
        (CLAIM, "It is true.", 0.0),
        (LONG, "the battery weighs three kilograms", 0.8),
    ],
)
def test_the_score_of_an_answer(question: Question, answer: str, worth: float) -> None:
    """Articles do not count, so the long one shares its four words with six: 2 * 4 / 10."""
    assert score(question, answer) == pytest.approx(worth)
    assert right(question, score(question, answer)) == (worth > 0)


def test_all_figures_of_a_right_answer() -> None:
    made = marks(SHORT, run("3.4 kg", citations=(BATTERY.id, BELL.id)))
    assert made == {
        "score": 1.0, "abstained_wrong": 0.0, "exact_match": 1.0, "f1": 1.0, "contained": 1.0,
        "citation_precision": 0.5, "citation_recall": 1.0, "words": 2.0,
    }  # fmt: skip


def test_declining_is_right_only_where_nothing_answers() -> None:
    """Words of an abstention must not earn an overlap with an accepted answer."""
    said = marks(SHORT, run("The passages do not say whether it weighs 3.4 kg.", kind="abstained"))
    assert (said["score"], said["f1"], said["abstained_wrong"]) == (0.0, 0.0, 1.0)
    assert "citation_recall" not in said
    assert marks(NONE, run(NO_ANSWER)) == {"score": 1.0, "abstained_right": 1.0}
    assert marks(NONE, run("3.4 kg")) == {"score": 0.0, "abstained_right": 0.0}


def test_a_failed_run_earns_nothing() -> None:
    """Left out of the mean, a pipeline that fails on hard questions would look better for it.

    Counted as declining, it would even be right where nothing answers. It has found none of the evidence, which
    lowers recall; and it did not choose to answer, so it must not lower the share that is declined wrongly.
    """
    assert marks(NONE, None) == {"score": 0.0, "abstained_right": 0.0}
    nothing = {"score": 0.0, "exact_match": 0.0, "f1": 0.0, "contained": 0.0}
    assert marks(SHORT, None) == {**nothing, "citation_recall": 0.0}
    assert marks(replace(SHORT, gold=frozenset()), None) == nothing
    assert (
        marks(SHORT, None, reads=False) == nothing
    )  # the closed book cites nothing when it ends well either


def test_all_answers_may_be_in_the_dispute() -> None:
    """A run that shows both sides has told both, though its answer is one of them."""
    both = replace(SHORT, answers=("160", "180"), all_required=True)
    sides = (Side(draft_index=0, answer="It is 160."), Side(draft_index=1, answer="180 kilograms."))
    assert marks(both, run("It is 160."))["all_answers"] == 0.0
    assert marks(both, run("It is 160.", sides=sides))["all_answers"] == 1.0


def test_confidence_is_judged_with_its_answer() -> None:
    assert claimed(SHORT, run("3.4 kg")) == (0.8, True)
    assert claimed(SHORT, run("34 kg")) == (0.8, False)
    assert claimed(SHORT, replace(run("3.4 kg"), answer=Answer(text="3.4 kg"))) is None


DRAFTS = (
    draft(1, "640 onions", draft=0.9, self_reflection=0.2, relevance=0.1, combined=0.2),
    draft(2, NO_ANSWER, abstained=True, draft=0.99, self_reflection=0.99, relevance=0.9),
    draft(3, "3.4 kg", draft=0.5, self_reflection=0.4, relevance=0.8, combined=0.7),
    draft(4, "34 kilograms at the very most", draft=0.4, self_reflection=0.5, relevance=0.5, combined=0.4),
    draft(5, "34 kilograms at the very most", draft=0.3, self_reflection=0.3, relevance=0.4, combined=0.3),
    draft(6, "", failed=True),
)


def test_every_way_of_choosing_from_the_same_drafts() -> None:
    """One of four answers is right: relevance finds it, every other score alone prefers another draft."""
    found = choices(SHORT, run("3.4 kg", *DRAFTS))
    assert found["selected"] == found["oracle"] == 1.0
    assert found["random"] == 0.25  # exactly, and not one draw
    assert found["first"] == found["majority"] == found["longest"] == 0.0
    assert found["alone: relevance"] == found["preset: default"] == 1.0
    assert found["alone: draft"] == found["without: relevance"] == 0.0
    assert (found["first 1 drafts"], found["first 3 drafts"]) == (0.0, 1.0)
    assert "alone: grounded" not in found  # the run did not find it out
    assert "without: grounded" not in found  # it had no weight
    assert "first 6 drafts" not in found


def test_nothing_was_chosen_where_one_model_answered() -> None:
    assert choices(SHORT, run("3.4 kg")) == {}


def test_an_abstention_is_no_choice_for_others() -> None:
    """Picking the abstention as "first" or "random" would make every selection look good beside them."""
    found = choices(SHORT, run("3.4 kg", DRAFTS[1], DRAFTS[2]))
    assert found["first"] == found["random"] == found["oracle"] == 1.0
    assert choices(NONE, run(NO_ANSWER, DRAFTS[1], draft(6, "", failed=True), kind="abstained")) == {}


def test_drafts_are_judged_for_the_separation() -> None:
    found = judgements(SHORT, run("3.4 kg", *DRAFTS))
    assert [one.right for one in found] == [False, True, False, False]
    assert found[0].scores == {"draft": 0.9, "self_reflection": 0.2, "relevance": 0.1, "combined": 0.2}
