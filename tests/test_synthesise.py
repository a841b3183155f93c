"""Synthesis: one answer that the verifier writes from the drafts, and what happens when it cannot."""

import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

import pytest

from specrag.config import ScoreWeights
from specrag.decide import Ruling, decide
from specrag.errors import ModelError
from specrag.events import Answered, AnswerToken, Decided, Event, UsageCounted
from specrag.models.base import Conversation, Line, Output, Read
from specrag.models.scripted import ScriptedModel, Written
from specrag.synthesise import synthesise
from specrag.timeline import Timeline
from specrag.types import Answer, Decision, Draft, Passage, Scores

QUESTION = "What is the maximum load?"
WEIGHTS = ScoreWeights(draft=1, self_containment=0, self_reflection=0, relevance=0)


def passage(name: str, title: str, text: str, date: str | None = None) -> Passage:
    return Passage(
        id=name,
        document_id=name,
        title=title,
        text=text,
        page=None,
        source=f"{name}.md",
        published_at=date,
        score=0.5,
    )


PASSAGES = (
    passage("manual", "Manual", "SECRET The load is at most 180 kilograms.", "2023-09-04"),
    passage("bulletin", "Bulletin", "SECRET The load is now 160 kilograms.", "2025-03-10"),
    passage("notice", "Notice", "SECRET Never more than 160 kilograms."),
)


def draft(answer: str, score: float, *cited: str, abstained: bool = False) -> Draft:
    return Draft(
        subset_id=f"s{cited}{answer}",
        rationale=f"It is written: {answer}.",
        answer=answer,
        citations=cited,
        abstained=abstained,
        finish_reason="stop",
        scores=Scores(draft=score),
    )


DRAFTS = (
    draft("Not in the passages.", 0.95, abstained=True),
    draft("180 kilograms", 0.70, "manual"),
    Draft(subset_id="failed", finish_reason="error", error="out of memory"),
    draft("160 kilograms", 0.72, "bulletin"),
    draft("160 kilograms.", 0.60, "notice"),
)


def ruled(drafts: tuple[Draft, ...] = DRAFTS) -> Ruling:
    return decide(drafts, weights=WEIGHTS, threshold=0, passages=PASSAGES)


async def events(
    write: Callable[[str], Written], ruling: Ruling | None = None, max_tokens: int = 50
) -> list[Event]:
    made = ruled() if ruling is None else ruling
    ticks = itertools.count()
    timeline = Timeline(lambda: next(ticks) / 1000)
    model = ScriptedModel(write, logprob=-0.25)
    stream = synthesise(
        model, QUESTION, made.drafts, made, PASSAGES, max_tokens=max_tokens, timeline=timeline
    )
    return [event async for event in stream]


async def outcome(write: Callable[[str], Written], ruling: Ruling | None = None) -> tuple[Decision, Answer]:
    *_, decided, answered = await events(write, ruling)
    assert isinstance(decided, Decided)
    assert isinstance(answered, Answered)
    return decided.decision, answered.answer


def says(text: str) -> Callable[[str], Written]:
    return lambda _: {"answer": text}


async def test_the_verifier_reads_drafts_with_sources_and_dates_and_no_passages() -> None:
    read: list[str] = []

    def write(text: str) -> Written:
        read.append(text)
        return {"answer": " 160 kilograms"}

    await events(write)
    (prompt,) = read
    assert QUESTION in prompt
    assert (
        "[4] 160 kilograms\nEvidence: It is written: 160 kilograms.\nSource: Bulletin (2025-03-10)" in prompt
    )
    assert "[5] 160 kilograms." in prompt
    assert "Source: Notice\n" in prompt
    assert "SECRET" not in prompt
    # the chosen draft stands first; those that abstained or failed do not stand at all
    assert prompt.index("[4] 160") < prompt.index("[2] 180") < prompt.index("[5] 160")
    assert "Not in the passages" not in prompt
    assert "[1]" not in prompt
    assert "[3]" not in prompt


async def test_numbers_in_a_draft_do_not_read_like_drafts() -> None:
    """A draft numbers its own passages: "[4] 160 kilograms" with the evidence "[1] says so" cites no draft 1."""
    read: list[str] = []

    def write(text: str) -> Written:
        read.append(text)
        return {"answer": " 160 kilograms"}

    cited = replace(DRAFTS[3], rationale="It is written in the bulletin [1, 2].")
    await events(write, ruled((cited, DRAFTS[1])))
    assert "[1] 160 kilograms\nEvidence: It is written in the bulletin.\nSource:" in read[0]


async def test_the_chosen_draft_stands_first_though_another_scores_higher() -> None:
    """Two equal answers may win over one that scores better than each of them."""
    read: list[str] = []

    def write(text: str) -> Written:
        read.append(text)
        return {"answer": " 160 kilograms"}

    # cubes: 0.343 against 0.314 + 0.216
    pooled = (draft("180 kilograms", 0.70, "manual"), DRAFTS[4], draft("160 kilograms", 0.68, "bulletin"))
    await events(write, ruled(pooled))
    assert read[0].index("[3] 160") < read[0].index("[1] 180") < read[0].index("[2] 160")


async def test_the_prompt_names_the_dispute_and_asks_for_both_sides() -> None:
    read: list[str] = []

    def write(text: str) -> Written:
        read.append(text)
        return {"answer": " 160 kilograms"}

    await events(write)
    assert "Sources disagree: " in read[0]
    assert "Manual (2023-09-04) says “180 kilograms”" in read[0]
    assert "Show both sides" in read[0]
    await events(write, ruled((DRAFTS[3], DRAFTS[4])))
    assert "Show both sides" not in read[1]


async def test_the_text_streams_and_is_counted_then_decided_then_answered() -> None:
    found = await events(says(" it is 160 kilograms [4]"))
    tokens = [event for event in found if isinstance(event, AnswerToken)]
    assert [token.text for token in tokens] == [" it", " is", " 160", " kilograms", " [4]"]
    assert {token.logprob for token in tokens} == {-0.25}
    usage = [event for event in found if isinstance(event, UsageCounted)]
    assert {event.role for event in usage} == {"verifier"}
    assert sum(event.completion_tokens for event in usage) == 5
    assert sum(event.prompt_tokens for event in usage) > 20
    assert [type(event) for event in found[-2:]] == [Decided, Answered]
    assert [event.at_ms for event in found] == sorted(event.at_ms for event in found)


async def test_no_more_is_written_than_asked() -> None:
    found = await events(says(" a b c d e f"), max_tokens=3)
    assert sum(isinstance(event, AnswerToken) for event in found) == 3


async def test_numbers_of_drafts_become_citations_of_their_passages() -> None:
    """On the page a number in brackets is a passage, so those of the drafts must not stay in the text."""
    decision, answer = await outcome(says(" now 160 kilograms [4, 5], before 180 kilograms [2]."))
    assert answer.text == "Now 160 kilograms, before 180 kilograms."
    assert answer.citations == ("bulletin", "manual", "notice")
    assert decision.kind == "synthesised"


async def test_only_the_drafts_that_it_cites_are_its_sources() -> None:
    _, answer = await outcome(says(" 180 kilograms [2]"))
    assert answer.citations == ("manual",)


@pytest.mark.parametrize("text", [" 160 kilograms", " 160 kilograms [1]", " 160 kilograms [9]"])
async def test_without_a_number_of_a_shown_draft_the_winners_are_cited(text: str) -> None:
    _, answer = await outcome(says(text))
    assert answer.citations == ("bulletin", "notice")


@pytest.mark.parametrize(
    ("text", "cited"),
    [(" never more than 175 kilograms", ("notice",)), (" 17 tonnes of onions [9]", ())],
)
async def test_a_text_that_says_something_else_is_not_given_the_winners_sources(
    text: str, cited: tuple[str, ...]
) -> None:
    _, answer = await outcome(says(text))
    assert answer.citations == cited


async def test_the_share_of_the_mass_is_kept_only_where_the_text_says_the_same() -> None:
    share = ruled().answer
    assert share is not None
    _, same = await outcome(says(" at most 160 kilograms"))
    _, both = await outcome(says(" 160 kilograms, formerly 180 kilograms"))
    assert same.confidence == share.confidence
    assert both.confidence is None


async def test_the_decision_says_who_wrote_from_what_and_who_disputes() -> None:
    decision, _ = await outcome(says(" 160 kilograms"))
    before = ruled().decision
    assert decision.reason.startswith(
        "The verifier wrote one answer from 3 drafts; drafts 4 and 2 contradict each other, so it was asked to "
        "show both sides. Draft 4 scores 0.72"
    )
    assert (decision.kind, decision.draft_index) == ("synthesised", 3)
    assert (decision.margin, decision.agreement) == (before.margin, before.agreement)
    assert (decision.conflict, decision.sides) == (before.conflict, before.sides)
    peaceful, _ = await outcome(says(" 160 kilograms"), ruled((DRAFTS[3],)))
    assert peaceful.reason.startswith("The verifier wrote one answer from 1 draft. Draft 1 scores 0.72")


@pytest.mark.parametrize("text", ["", " The answer is:", " [4]", " Not in the passages.", " Unknown"])
async def test_a_text_that_says_nothing_leaves_the_selected_draft(text: str) -> None:
    decision, answer = await outcome(says(text))
    assert (decision.kind, decision.draft_index) == ("selected", 3)
    assert decision.reason.endswith("The verifier wrote no answer, so this draft stands.")
    assert answer == ruled().answer


def broken(_: str) -> Written:
    raise ModelError("the prompt is longer than the context.")


async def test_a_verifier_that_fails_does_not_sink_a_run_that_has_an_answer() -> None:
    decision, answer = await outcome(broken)
    assert decision.kind == "selected"
    assert decision.reason.endswith(
        "The verifier could not write one answer from the drafts (the prompt is longer than the context), so "
        "this draft stands."
    )
    assert answer == ruled().answer


class Unreachable(ScriptedModel):
    """A server that is gone before it has said anything."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        if conversations:
            raise ModelError("The server does not answer.")
        yield 0, Read()


async def test_a_verifier_that_is_gone_does_not_either() -> None:
    ruling = ruled()
    ticks = itertools.count()
    stream = synthesise(
        Unreachable(says("")),
        QUESTION,
        ruling.drafts,
        ruling,
        PASSAGES,
        max_tokens=9,
        timeline=Timeline(lambda: float(next(ticks))),
    )
    decided, answered = [event async for event in stream]
    assert isinstance(decided, Decided)
    assert "(The server does not answer), so this draft stands." in decided.decision.reason
    assert isinstance(answered, Answered)
    assert answered.answer == ruling.answer


async def test_closing_the_stream_closes_the_model() -> None:
    model = ScriptedModel(says(" one two three"))
    ruling = ruled()
    ticks = itertools.count()
    stream = synthesise(
        model,
        QUESTION,
        ruling.drafts,
        ruling,
        PASSAGES,
        max_tokens=9,
        timeline=Timeline(lambda: float(next(ticks))),
    )
    async for event in stream:
        if isinstance(event, AnswerToken):
            break
    await stream.aclose()
    assert model.closed == 1
