"""Ways of choosing are compared on runs that chose, and with answers that somebody wrote."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.config import PRESETS, ScoreWeights
from specrag.decide import NO_ANSWER, decide
from specrag.evaluation.choices import by_no_draft, choices, judgements
from specrag.evaluation.document import Origin, document
from specrag.evaluation.markdown import markdown
from specrag.evaluation.outcome import Outcome
from specrag.evaluation.questions import Question
from specrag.evaluation.summary import summary
from specrag.tracing.trace import Trace
from specrag.types import Answer, Decision, Draft, Scores
from tests.evaluation_rig import plan

QUESTION = Question(id="q", question="How heavy?", answers=("3.4 kg",), passages=())
UNANSWERABLE = replace(QUESTION, answers=())
ABSTAINED = Draft(subset_id="s0", answer=NO_ANSWER, abstained=True, finish_reason="stop")
FAILED = Draft(subset_id="s1", answer="", finish_reason="error")
WRONG = Draft(subset_id="s2", answer="34 kg", finish_reason="stop", scores=Scores(draft=0.1, relevance=0.9))
RIGHT = Draft(subset_id="s3", answer="3.4 kg", finish_reason="stop", scores=Scores(draft=0.2, relevance=0.2))


def ran(*drafts: Draft, threshold: float = 0.0, fallback: str = "3.4 kg") -> Trace:
    """A run that decided between these drafts as every run does; its verifier knows the answer by itself."""
    config = {"weights": PRESETS["default"], "threshold": threshold}
    weights = ScoreWeights(**PRESETS["default"])
    ruling = decide(drafts, weights=weights, threshold=threshold)
    return Trace(
        run_id="r", status="done", pipeline="speculative", question="How heavy?", created_at="",
        drafts=ruling.drafts, decision=ruling.decision, answer=ruling.answer or Answer(text=fallback),
        config=config,
    )  # fmt: skip


@pytest.mark.parametrize(
    "trace",
    [
        ran(FAILED, ABSTAINED),  # nothing in the contest
        ran(WRONG, threshold=0.99),  # none good enough
        replace(ran(WRONG, RIGHT), decision=Decision(kind="synthesised", draft_index=None, reason="")),
        ran(ABSTAINED, ABSTAINED),
    ],
)
def test_a_run_that_no_draft_answered_is_no_choice(trace: Trace) -> None:
    """What the verifier wrote afresh was booked as a gain of the scores over their own oracle, which had 0."""
    assert by_no_draft(trace)
    assert choices(QUESTION, trace) == {}


def test_an_answer_that_nobody_wrote_is_unknown() -> None:
    """Other weights put all drafts below the threshold: a model would have to write, which is no declining.

    Of an unanswerable question it was even counted as right.
    """
    trace = ran(WRONG, RIGHT, threshold=0.5)
    for question in (QUESTION, UNANSWERABLE):
        found = choices(question, trace)
        assert "alone: draft" not in found
        assert {"selected", "alone: relevance"} <= set(found)
    # the only draft of the first one failed, so the verifier would answer
    assert "first 1 drafts" not in choices(UNANSWERABLE, ran(FAILED, RIGHT))
    assert choices(UNANSWERABLE, ran(ABSTAINED, RIGHT))["first 1 drafts"] == 1.0  # this one was written


SCORE = st.sampled_from([0.01, 0.2, 0.5, 0.9, 1.0])
DRAFTS = st.builds(
    Draft,
    subset_id=st.uuids().map(str),
    answer=st.sampled_from(["3.4 kg", "It is 3.4 kg.", "34 kg", "640 onions"]),
    abstained=st.sampled_from([False, False, True]),
    finish_reason=st.sampled_from(["stop", "stop", "error"]),
    scores=st.builds(Scores, draft=SCORE, self_containment=SCORE, self_reflection=SCORE, relevance=SCORE),
)


@given(st.lists(DRAFTS, min_size=1, max_size=5), st.sampled_from([0.0, 0.3, 0.6]), st.booleans())
def test_nothing_is_above_the_oracle(drafts: list[Draft], threshold: float, answerable: bool) -> None:
    """The oracle takes the best draft, so no way of choosing among the same drafts can be worth more."""
    trace = ran(*drafts, threshold=threshold)
    found = choices(QUESTION if answerable else UNANSWERABLE, trace)
    assert bool(found) != by_no_draft(trace)
    same = {name: value for name, value in found.items() if not name.startswith("first ")}
    assert all(value <= found["oracle"] for value in same.values())


def outcome(number: int, trace: Trace) -> Outcome:
    return Outcome(
        dataset="bikes",
        question=str(number),
        system="speculative",
        marks={"score": 1.0},
        choices=choices(QUESTION, trace),
        drafts=judgements(QUESTION, trace),
        by_no_draft=by_no_draft(trace),
    )


def test_runs_that_chose_nothing_are_counted() -> None:
    """Left out without a word, the table would seem to be of all runs; their scores still tell right from wrong."""
    runs = [outcome(0, ran(WRONG, RIGHT)), outcome(1, ran(WRONG, RIGHT, threshold=0.99))]
    found = summary(runs, seed=0).choices
    assert found is not None
    assert (found.n, found.by_no_draft, found.worth["selected"].n) == (1, 1, 1)
    assert found.separation["draft"].drafts == 4
    made = document(plan("speculative"), runs, Origin(command=(), environment={}, config={}))
    assert made["pipelines"]["speculative"]["choices"]["by_no_draft"] == 1
    assert "Answered by no draft: 1" in markdown(made)


def test_where_no_run_chose_there_is_still_a_report() -> None:
    made = document(
        plan("speculative"), [outcome(0, ran(FAILED))], Origin(command=(), environment={}, config={})
    )
    assert "Answered by no draft: 1" in markdown(made)
