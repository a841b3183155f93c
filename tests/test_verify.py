"""One pass over all drafts: what the verifier is shown, and what is made of its numbers."""

import math
from collections.abc import Sequence

import pytest

from specrag.errors import ContextTooLong, ModelError
from specrag.models.base import LanguageModel, ScoredToken, ScoreRequest, TokenScores
from specrag.models.scripted import ScriptedModel
from specrag.tracing.trace import fold
from specrag.types import Draft, LogSums, Passage, Scores
from specrag.verify import verify_drafts
from tests.toys import events_of, filled_store, pipeline

QUESTION = "How much does the bike carry?"
HALF = math.log(0.5)


def draft(subset: str, *, answer: str = "160 kilograms", reason: str = "stop") -> Draft:
    return Draft(
        subset_id=subset,
        rationale="The bulletin says so.",
        answer=answer,
        finish_reason=reason,  # type: ignore[arg-type]  # the parametrised tests pass words
        scores=Scores(draft=0.5),
        log_sums=LogSums(rationale=-1.0, rationale_tokens=2, answer=-2.0, answer_tokens=4),
    )


def passage(text: str) -> Passage:
    return Passage(
        id=text, document_id="d", title="T", text=text, page=None, source="", published_at=None, score=0.5
    )


class Recording:
    """A verifier that gives every token one half, or one quarter behind a passage, and keeps what it read."""

    def __init__(self) -> None:
        self.calls: list[list[ScoreRequest]] = []
        self._model = ScriptedModel(lambda _: {})

    @property
    def info(self) -> object:
        return self._model.info

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        self.calls.append(list(requests))
        return [self._scores(request) for request in requests]

    def _scores(self, request: ScoreRequest) -> TokenScores:
        text = shown(request)
        logprob = 2 * HALF if "160 in the passage" in text else HALF
        return TokenScores(
            spans={
                "answer": (ScoredToken(text=" 160", logprob=logprob),) * 2,
                "rationale": (ScoredToken(text=" so", logprob=3 * logprob),),
            },
            choice={"yes": 0.3, "no": 0.1} if request.choice else {},
            prompt_tokens=10,
        )


def shown(request: ScoreRequest) -> str:
    turns = request.conversation.turns
    return "\n".join("".join(segment.text for segment in turn.segments) for turn in turns)


def verifier() -> tuple[Recording, LanguageModel]:
    made = Recording()
    return made, made  # type: ignore[return-value]  # it never generates


async def test_all_drafts_are_read_in_one_call_and_without_passages() -> None:
    record, model = verifier()
    found = await verify_drafts(model, QUESTION, [draft("s1"), draft("s2")])
    assert len(record.calls) == 1
    assert found.usage.forward_passes == 1
    assert found.usage.prompt_tokens == 20
    assert [verdict.subset_id for verdict in found.verdicts] == ["s1", "s2"]
    assert found.note is None
    assert all("passage" not in shown(request).replace("passages", "") for request in record.calls[0])


async def test_the_scores_are_these_numbers() -> None:
    """Answer 2 tokens at 1/2, rationale 1 at 1/8: the mean log is 5/3 ln 1/2; Yes is 0.3 of 0.4."""
    _, model = verifier()
    (verdict,) = (await verify_drafts(model, QUESTION, [draft("s1")])).verdicts
    assert verdict.scores.self_containment == pytest.approx(0.5 ** (5 / 3))
    assert verdict.scores.self_reflection == pytest.approx(0.75)
    assert verdict.scores.draft == 0.5, "the drafter's own score stays"
    assert verdict.scores.grounded is None
    assert verdict.log_sums.self_containment == pytest.approx(5 * HALF)
    assert verdict.log_sums.self_containment_tokens == 3
    assert [token.part for token in verdict.verifier_tokens] == ["rationale", "answer", "answer"]


async def test_groundedness_on_request_joins_the_same_call_and_reads_what_the_draft_read() -> None:
    record, model = verifier()
    passages = {"s1": [passage("160 in the passage")], "s2": [passage("nothing")]}
    found = await verify_drafts(model, QUESTION, [draft("s1"), draft("s2")], passages_of=passages)
    verdicts = found.verdicts
    assert len(record.calls) == 1
    assert found.usage.forward_passes == 1
    assert found.usage.prompt_tokens == 40
    assert verdicts[0].scores.grounded == pytest.approx(0.25 ** (5 / 3))
    assert verdicts[1].scores.grounded == pytest.approx(0.5 ** (5 / 3))
    assert all(verdict.scores.self_containment == pytest.approx(0.5 ** (5 / 3)) for verdict in verdicts)
    behind = shown(record.calls[0][2])
    assert behind.index(QUESTION) < behind.index("160 in the passage") < behind.index("The bulletin says so.")


async def test_failed_and_empty_drafts_are_not_read() -> None:
    record, model = verifier()
    drafts = [draft("s1", reason="error"), draft("s2"), draft("s3", answer=" ")]
    verdicts = (await verify_drafts(model, QUESTION, drafts)).verdicts
    assert [verdict.subset_id for verdict in verdicts] == ["s2"]
    assert len(record.calls[0]) == 1


async def test_without_a_usable_draft_the_verifier_is_not_asked() -> None:
    record, model = verifier()
    found = await verify_drafts(model, QUESTION, [draft("s1", reason="error")])
    assert found.verdicts == ()
    assert found.usage.forward_passes == 0
    assert record.calls == []


# a verifier that fails must not sink drafts that are written


class Short(Recording):
    """Reads at most so many characters, as a model with a smaller context than the drafter's would."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self._characters = characters

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        if any(len(shown(request)) > self._characters for request in requests):
            raise ContextTooLong("too long for it")
        return await super().score(requests)


class Broken(Recording):
    """Cannot score, or scores too few."""

    def __init__(self, error: str | None) -> None:
        super().__init__()
        self._error = error

    async def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        if self._error is None:
            return (await super().score(requests))[:-1]
        raise ModelError(self._error)


async def test_a_draft_that_alone_is_too_long_is_left_out_and_the_others_are_verified() -> None:
    made = Short(600)
    drafts = [draft("s1"), draft("s2", answer="word " * 200)]
    found = await verify_drafts(made, QUESTION, drafts)  # type: ignore[arg-type]
    assert [verdict.subset_id for verdict in found.verdicts] == ["s1"]
    assert found.verdicts[0].scores.self_containment is not None
    assert "too long for it" in found.unread["s2"]
    assert found.usage.forward_passes == 1


async def test_passages_that_are_too_long_cost_groundedness_and_nothing_else() -> None:
    made = Short(600)
    passages = {"s1": [passage("word " * 200)]}
    found = await verify_drafts(made, QUESTION, [draft("s1")], passages_of=passages)  # type: ignore[arg-type]
    assert found.verdicts[0].scores.grounded is None
    assert found.verdicts[0].scores.self_containment is not None
    assert "Groundedness is not known" in (found.note or "")


@pytest.mark.parametrize(("error", "sentence"), [("it broke", "it broke"), (None, "scored 1 of 2 drafts")])
async def test_drafts_that_cannot_be_verified_keep_their_own_scores_and_it_is_said(
    error: str | None, sentence: str
) -> None:
    made = Broken(error)
    found = await verify_drafts(made, QUESTION, [draft("s1"), draft("s2")])  # type: ignore[arg-type]
    assert [verdict.scores for verdict in found.verdicts] == [Scores(draft=0.5)] * 2
    assert "not verified" in (found.note or "")
    assert sentence in (found.note or "")


async def test_a_run_whose_verifier_fails_answers_from_its_drafts_and_says_so() -> None:
    store = filled_store()
    drafter = ScriptedModel(lambda _: {"rationale": " It says so.", "answer": " 640 watt-hours"})
    made = pipeline(store, drafter, Broken("it broke"))  # type: ignore[arg-type]
    trace = fold(await events_of(made, "How much energy does the battery hold?"))
    store.close()
    assert trace.status == "done"
    assert trace.answer is not None
    assert trace.answer.text == "640 watt-hours"
    assert trace.decision is not None
    assert "not verified" in trace.decision.reason
    assert all(one.scores.relevance and one.scores.combined for one in trace.drafts)
