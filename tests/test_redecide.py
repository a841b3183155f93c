"""Deciding a stored run again: the same settings give the same run, others what they would have given."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from specrag.config import ScoreWeights
from specrag.errors import ModelError, TraceError, UsageError
from specrag.models.base import ScoreRequest, TokenScores
from specrag.models.scripted import ScriptedModel, Written
from specrag.redecide import decide_again
from specrag.retrieval.chroma import ChromaStore
from specrag.tracing.codec import from_json, to_json
from specrag.tracing.trace import Trace, fold
from specrag.types import Answer, Decision, Draft, Scores
from tests.toys import events_of, filled_store, pipeline

QUESTION = "What is the most that the bike carries?"
SELF = ScoreWeights(draft=0, self_containment=0, self_reflection=1, relevance=0)


@pytest.fixture(scope="module")
def store() -> Iterator[ChromaStore]:
    filled = filled_store()
    yield filled
    filled.close()


def extract(text: str) -> Written:
    """A drafter that reads one figure, the older one if both are there, and abstains without any."""
    for figure in ("180 kilograms", "160 kilograms"):
        if figure in text:
            return {"rationale": f" The bike carries {figure}.", "answer": f" {figure}"}
    if "onions" in text:
        return {"answer": " 640 onions"}
    return {"answer": " Not in the passages."}


def judge(text: str) -> float:
    return 0.9 if "160" in text else 0.4


def verifier(text: str) -> Written:
    return {"answer": " 160 kilograms [2]" if "Put the number" in text else " It carries 160 kilograms."}


async def run(store: ChromaStore, verify: ScriptedModel | None = None, **settings: Any) -> Trace:
    """A whole run, stored and read back, as what-if meets it."""
    wanted = {"drafts": 6, **settings}
    made = pipeline(store, ScriptedModel(extract), verify or ScriptedModel(verifier, judge=judge), **wanted)
    return from_json(to_json(fold(await events_of(made, QUESTION))))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pool": False},
        {"threshold": 0.3},
        {"threshold": 0.99},
        {"preset": "paper"},
        {"weights": SELF},
        {"partition": "contiguous", "drafts": 3},
        {"decision": "synthesise"},
        {"decision": "synthesise", "threshold": 0.99},
    ],
)
async def test_the_same_settings_give_the_same_run(store: ChromaStore, settings: dict[str, Any]) -> None:
    trace = await run(store, **settings)
    assert trace.status == "done"
    assert trace.decision is not None
    assert decide_again(trace) == trace


async def test_the_runs_above_are_not_all_alike(store: ChromaStore) -> None:
    """What the test above compares is a selection with margin and dispute, a fallback, and a synthesis."""
    selected = (await run(store)).decision
    assert selected is not None
    assert selected.kind == "selected"
    assert selected.margin is not None
    assert 0 < selected.margin < 1
    assert selected.agreement is not None
    assert 0 < selected.agreement < 1
    fallback = (await run(store, threshold=0.99)).decision
    assert fallback is not None
    assert fallback.kind == "fallback"
    written = (await run(store, decision="synthesise")).decision
    assert written is not None
    assert written.kind == "synthesised"


@pytest.mark.parametrize("text", ["", " Not in the passages."])
async def test_a_synthesis_that_failed_is_the_same_again(store: ChromaStore, text: str) -> None:
    empty = ScriptedModel(lambda _: {"answer": text}, judge=judge)
    trace = await run(store, empty, decision="synthesise")
    again = decide_again(trace)
    assert trace.decision is not None
    assert "wrote no answer" in trace.decision.reason
    assert (again.decision, again.answer) == (trace.decision, trace.answer)


async def test_other_weights_choose_another_draft(store: ChromaStore) -> None:
    weights = ScoreWeights(draft=0, self_containment=0, self_reflection=0, relevance=1)
    trace = await run(store, weights=weights)
    again = decide_again(trace, weights=SELF)
    assert again.answer is not None
    assert again.answer.text == "160 kilograms"
    for draft in again.drafts:
        if draft.usable:
            assert draft.scores.combined == pytest.approx(draft.scores.self_reflection)
    assert again.config["weights"]["self_reflection"] == 1
    assert decide_again(again) == again
    back = decide_again(again, weights=weights)
    assert (back.decision, back.answer, back.drafts) == (trace.decision, trace.answer, trace.drafts)


async def test_dates_decide_near_ties_again_as_they_did_in_the_run(store: ChromaStore) -> None:
    """What-if without it would have shown the outdated answer under the very settings of the run."""
    older = ScriptedModel(verifier, judge=lambda text: 0.9 if "180" in text else 0.88)
    trace = await run(store, older, weights=SELF)
    assert trace.answer is not None
    assert trace.answer.text == "180 kilograms"
    dated = tuple(replace(one, published_at=one.published_at or "2023-09-04") for one in trace.passages)
    before = replace(trace, passages=dated, config={**trace.config, "newer_within": 0.0})
    after = replace(before, config={**trace.config, "newer_within": 1.0})
    answers = [decide_again(one).answer for one in (before, after)]
    assert [answer.text for answer in answers if answer] == ["180 kilograms", "160 kilograms"]
    without = {name: value for name, value in trace.config.items() if name != "newer_within"}
    assert decide_again(replace(before, config=without)).answer == trace.answer


async def test_only_the_first_drafts_are_kept(store: ChromaStore) -> None:
    trace = await run(store)
    again = decide_again(trace, drafts=2)
    assert [draft.subset_id for draft in again.drafts] == ["s1", "s2"]
    assert [subset.id for subset in again.subsets] == ["s1", "s2"]
    assert again.config["drafts"] == 2
    assert again.decision is not None
    assert again.decision.draft_index in (0, 1)
    assert decide_again(trace, drafts=99) == trace


async def test_a_run_that_would_fall_back_now_has_no_answer_and_says_so(store: ChromaStore) -> None:
    again = decide_again(await run(store), threshold=0.99)
    assert again.answer is None
    assert again.answer_tokens == ()
    assert again.decision is not None
    assert (again.decision.kind, again.decision.draft_index) == ("fallback", None)
    assert again.decision.reason.endswith("In this run it has not, so there is no answer to show.")


async def test_a_fallback_keeps_its_own_answer_at_another_threshold(store: ChromaStore) -> None:
    trace = await run(store, threshold=0.99)
    again = decide_again(trace, threshold=0.98)
    assert again.answer == trace.answer
    assert again.answer_tokens == trace.answer_tokens
    assert again.decision is not None
    assert again.decision.kind == "fallback"
    assert "threshold of 0.98" in again.decision.reason


async def test_a_fallback_becomes_a_selection_when_the_threshold_falls(store: ChromaStore) -> None:
    trace = await run(store, threshold=0.99)
    again = decide_again(trace, threshold=0.0)
    assert again.decision is not None
    assert again.decision.kind == "selected"
    assert again.answer is not None
    assert again.answer.text in ("160 kilograms", "180 kilograms")
    assert again.answer_tokens == ()


async def test_a_synthesis_keeps_its_text_while_the_verifier_would_read_the_same_drafts(
    store: ChromaStore,
) -> None:
    trace = await run(store, decision="synthesise")
    again = decide_again(trace, weights=SELF, pool=False)
    assert trace.answer is not None
    assert again.answer is not None
    assert again.decision is not None
    assert (again.decision.kind, again.answer.text) == ("synthesised", trace.answer.text)
    assert again.answer.citations == trace.answer.citations
    assert again.decision != trace.decision


async def test_a_synthesis_from_fewer_drafts_has_not_been_written(store: ChromaStore) -> None:
    trace = await run(store, decision="synthesise")
    again = decide_again(trace, drafts=1)
    assert again.answer is None
    assert again.decision is not None
    assert again.decision.kind == "synthesised"
    assert again.decision.draft_index == 0
    assert again.decision.reason.startswith("The verifier would write one answer from 1 draft. In this run")


def made(*drafts: Draft, decision: Decision | None = None, **config: Any) -> Trace:
    return Trace(
        run_id="r",
        status="done",
        pipeline="speculative",
        question=QUESTION,
        created_at="",
        config=config,
        drafts=drafts,
        decision=decision or Decision(kind="selected", draft_index=0, reason=""),
        answer=Answer(text="old"),
    )


GOOD = Draft(subset_id="a", answer="A", finish_reason="stop", scores=Scores(draft=0.5))
FAILED = Draft(subset_id="b", finish_reason="error", error="out of memory")


def test_what_was_not_decided_between_drafts_comes_back_as_it_is() -> None:
    """Standard RAG has no drafts, a run with few passages is direct, and a failed run decided nothing."""
    direct = Decision(kind="direct", draft_index=None, reason="Few passages.")
    for trace in (made(), made(GOOD, decision=direct), replace(made(GOOD), decision=None)):
        assert decide_again(trace, weights=SELF, threshold=0.9, pool=False, drafts=1) is trace


def test_a_trace_of_an_older_version_is_decided_by_what_it_knows() -> None:
    """Before groundedness and pooling could be set, both had one value."""
    weights = {"draft": 1.0, "self_containment": 0.0, "self_reflection": 0.0, "relevance": 0.0}
    again = decide_again(made(GOOD, weights=weights))
    assert again.drafts[0].scores.combined == pytest.approx(0.5)
    assert again.config["pool"] is True
    assert decide_again(made(GOOD)).answer == Answer(text="A", confidence=1.0)


def test_what_the_fallback_added_to_its_reason_stays() -> None:
    """The verifier could not read all passages; that holds at another threshold too."""
    reason = (
        "The best draft scores 0.50, below the threshold of 0.90, so the verifier answers from all passages."
    )
    stored = Decision(kind="fallback", draft_index=None, reason=f"{reason} The last one was left out.")
    trace = made(GOOD, decision=stored, threshold=0.9, weights={"draft": 1.0})
    assert decide_again(trace).decision == stored
    again = decide_again(trace, threshold=0.8).decision
    assert again is not None
    assert "threshold of 0.80" in again.reason
    assert again.reason.endswith("all passages. The last one was left out.")


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is decided by its own weights, whatever variables this process was started with."""
    monkeypatch.setenv("SPECRAG_WEIGHT_DRAFT", "0")
    monkeypatch.setenv("SPECRAG_WEIGHT_RELEVANCE", "9")
    draft = replace(GOOD, scores=Scores(draft=0.5, relevance=0.1))
    again = decide_again(made(draft, weights={"draft": 1.0}))
    assert again.drafts[0].scores.combined == pytest.approx(0.5)


@pytest.mark.parametrize(
    "config",
    [
        {"weights": "heavy"},
        {"weights": {"draft": -1}},
        {"weights": {"draft": "much"}},
        {"weights": {"draft": 0}},
        {"threshold": "high"},
        {"threshold": None},
    ],
)
def test_settings_that_cannot_be_read_are_said(config: dict[str, Any]) -> None:
    with pytest.raises(TraceError, match="weights and the threshold"):
        decide_again(made(GOOD, **config))


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(UsageError, match="At least one draft"):
        decide_again(made(GOOD), drafts=0)
    with pytest.raises(UsageError, match="between 0 and 1"):
        decide_again(made(GOOD), threshold=1.5)


def test_when_only_failed_drafts_are_kept_the_verifier_would_have_to_answer() -> None:
    again = decide_again(made(FAILED, GOOD), drafts=1)
    assert again.answer is None
    assert again.decision is not None
    assert again.decision.kind == "fallback"
    assert again.decision.reason == (
        "The only draft failed: out of memory, so the verifier answers from all passages. "
        "In this run it has not, so there is no answer to show."
    )


async def test_weights_on_what_was_not_measured_are_refused(store: ChromaStore) -> None:
    """Groundedness is only scored on request; without it the first draft won with a score of 0.00."""
    only = ScoreWeights(draft=0, self_containment=0, self_reflection=0, relevance=0, grounded=1)
    trace = await run(store)
    with pytest.raises(UsageError, match="count only groundedness, which this run did not find out"):
        decide_again(trace, weights=only)
    assert decide_again(await run(store, grounded=True), weights=only).answer is not None


async def test_a_score_that_was_not_measured_is_named_beside_the_others(store: ChromaStore) -> None:
    again = decide_again(await run(store), weights=SELF.model_copy(update={"grounded": 2.0}))
    alone = decide_again(await run(store), weights=SELF)
    assert again.decision is not None
    assert alone.decision is not None
    assert again.decision.reason == f"{alone.decision.reason} Not known, so not counted: groundedness."
    assert again.answer == alone.answer


class CannotScore(ScriptedModel):
    """A verifier that writes, and refuses to score."""

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        raise ModelError(f"{len(requests)} drafts are too many for this server.")


@pytest.mark.parametrize("settings", [{}, {"threshold": 0.99}, {"decision": "synthesise"}, {"weights": SELF}])
async def test_drafts_that_nobody_verified_are_decided_the_same_again(
    store: ChromaStore, settings: dict[str, Any]
) -> None:
    trace = await run(store, CannotScore(verifier), **settings)
    assert trace.decision is not None
    assert "too many for this server" in trace.decision.reason
    assert decide_again(trace) == trace


@pytest.mark.parametrize("decision", ["select", "synthesise"])
async def test_a_draft_that_stands_for_a_fallback_stands_again(store: ChromaStore, decision: str) -> None:
    """The verifier could not answer afresh, so the best draft did although it is below the threshold."""

    def gone(_: str) -> Written:
        raise ModelError("the server went away")

    trace = await run(store, ScriptedModel(gone, judge=judge), threshold=0.99, decision=decision)
    assert trace.decision is not None
    assert trace.decision.kind == "selected"
    assert decide_again(trace) == trace
    again = decide_again(trace, threshold=0.98)
    assert again.answer == trace.answer
    assert again.decision is not None
    assert again.decision.reason == trace.decision.reason.replace("threshold of 0.99", "threshold of 0.98")
