"""Drafts: what is kept of a text, which passages it rests on, and what a drafter that breaks off leaves."""

import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import pytest

from specrag.draft import cite, write_drafts
from specrag.errors import ModelError
from specrag.events import DraftFinished, DraftStarted, Event, SpanEnded, SpanStarted, UsageCounted
from specrag.models.base import Begin, Conversation, End, LanguageModel, Line, Output
from specrag.models.scripted import ScriptedModel, Written
from specrag.timeline import Timeline
from specrag.types import Draft, Passage, Subset

QUESTION = "How much does the battery hold?"


def passage(name: str, text: str) -> Passage:
    return Passage(
        id=name,
        document_id=name,
        title=name,
        text=text,
        page=None,
        source=f"{name}.md",
        published_at=None,
        score=0.5,
    )


BATTERY = passage("battery", "The battery holds 640 watt-hours.")
HISTORY = passage("history", "The firm was founded in Halden in 1987.[1] Its bridge was sold.")
SUBSETS = tuple(Subset(id=f"s{number}", perspective="", passage_ids=("battery",)) for number in (1, 2, 3))
PASSAGES_OF = {"s1": (BATTERY, HISTORY), "s2": (HISTORY, BATTERY), "s3": (BATTERY,)}


async def events(model: LanguageModel) -> list[Event]:
    ticks = itertools.count()
    timeline = Timeline(lambda: next(ticks) / 1000)
    parent = timeline.start("draft")
    stream = write_drafts(
        model,
        QUESTION,
        SUBSETS,
        PASSAGES_OF,
        rationale_tokens=20,
        answer_tokens=20,
        timeline=timeline,
        parent=parent,
    )
    async with aclosing(stream):
        return [event async for event in stream]


async def drafts(model: LanguageModel) -> dict[str, Draft]:
    """The drafts by subset; every subset has exactly one."""
    found = [event.draft for event in await events(model) if isinstance(event, DraftFinished)]
    assert sorted(draft.subset_id for draft in found) == ["s1", "s2", "s3"]
    return {draft.subset_id: draft for draft in found}


def says(rationale: str, answer: str) -> Callable[[str], Written]:
    return lambda _: {"rationale": rationale, "answer": answer}


def numbered(text: str) -> Written:
    """A drafter that cites the battery by the number that it has in its own prompt."""
    number = 1 if text.index("battery holds") < text.find("founded") or "founded" not in text else 2
    return {"rationale": f" the battery holds 640 watt-hours [{number}].", "answer": f" 640 Wh [{number}]"}


async def test_a_number_of_the_prompt_becomes_a_citation_and_leaves_the_answer() -> None:
    """Two drafts, "640 Wh [1]" and "640 Wh [2]", give one answer from one passage and do not disagree."""
    found = await drafts(ScriptedModel(numbered))
    assert {draft.answer for draft in found.values()} == {"640 Wh"}
    assert {draft.citations for draft in found.values()} == {("battery",)}
    assert "".join(token.text for token in found["s2"].tokens if token.part == "answer") == " 640 Wh [2]"
    assert found["s2"].log_sums.answer_tokens == 3, "what the drafter wrote is scored, numbers included"


async def test_an_answer_that_is_a_number_in_brackets_is_none() -> None:
    found = await drafts(ScriptedModel(says(" it says so", " [1]")))
    assert {(draft.answer, draft.error) for draft in found.values()} == {("", "The drafter wrote no answer.")}
    assert not any(draft.usable for draft in found.values())


@pytest.mark.parametrize(
    ("rationale", "answer", "cited"),
    [
        ("the battery holds 640 watt-hours.", "640 watt-hours [1]", ("battery",)),
        ("the battery holds 640 watt-hours [1] and the firm was founded in Halden in 1987 [2].", "", None),
        ("the battery holds 640 watt-hours and the firm was founded in Halden in 1987.", "both [1, 2]", None),
        ("the battery holds 640 watt-hours and the firm was founded in Halden in 1987.", "both [1; 2]", None),
        ("the firm was founded in Halden in 1987.[1]", "1987.[1]", ("history",)),
        ("the firm was founded in Halden in 1987.", "1987 [9]", ("history",)),
        ("quite another thing altogether [1]", "who knows [2]", ()),
        ("the battery holds 640 watt-hours [1]", "Not in the passages.", ()),
    ],
)
def test_a_number_counts_where_its_passage_holds_the_words(
    rationale: str, answer: str, cited: tuple[str, ...] | None
) -> None:
    """A footnote copied from a passage is no citation of the passage with that number; None means both."""
    assert cite(rationale, answer, (BATTERY, HISTORY)) == (("battery", "history") if cited is None else cited)


class BreaksOff(ScriptedModel):
    """Ends the first `ended` conversations and then goes away, with an error or without."""

    def __init__(self, ended: int, error: str | None) -> None:
        super().__init__(lambda text: {"answer": " 640 Wh" if "founded" in text else " 640 Wh it may be"})
        self._ended = ended
        self._error = error

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        ends = 0
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for index, output in outputs:
                if isinstance(output, End):
                    if ends == self._ended:
                        break
                    ends += 1
                yield index, output
        if self._error:
            raise ModelError(self._error)


@pytest.mark.parametrize("error", [None, "The server of the drafter went away."])
async def test_a_drafter_that_breaks_off_leaves_what_it_had_finished(error: str | None) -> None:
    found = await events(BreaksOff(2, error))
    finished = {event.draft.subset_id: event.draft for event in found if isinstance(event, DraftFinished)}
    assert [finished[name].usable for name in ("s1", "s2", "s3")] == [True, True, False]
    assert finished["s3"].error == (error or "The drafter ended before this draft was finished.")
    assert finished["s3"].finish_reason == "error"
    times = [event.at_ms for event in found]
    assert times == sorted(times)
    begun = {event.span_id for event in found if isinstance(event, SpanStarted)}
    assert begun == {event.span_id for event in found if isinstance(event, SpanEnded)}
    usage = [event for event in found if isinstance(event, UsageCounted)]
    written = [event.completion_tokens for event in usage if event.completion_tokens]
    assert written == [2, 2, 5], "what was written of the broken draft was decoded too"


class Refuses(ScriptedModel):
    """Refuses every prompt as too long, before it reads it."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        for index in range(len(conversations)):
            yield index, Begin(prompt="long", prompt_tokens=9_000)
            yield (
                index,
                End(finish_reason="error", completion_tokens=0, error=f"{len(lines)} lines do not fit."),
            )


async def test_a_prompt_that_was_refused_costs_nothing() -> None:
    found = await events(Refuses(says("", "")))
    assert not any(isinstance(event, UsageCounted) for event in found)
    assert [event.draft.prompt_tokens for event in found if isinstance(event, DraftFinished)] == [9_000] * 3


async def test_a_drafter_that_never_ends_a_draft_still_gives_one_for_every_subset() -> None:
    found = await drafts(BreaksOff(0, None))
    assert not any(draft.usable for draft in found.values())


async def test_a_drafter_that_finished_nothing_is_an_error() -> None:
    with pytest.raises(ModelError, match="went away"):
        await events(BreaksOff(0, "The server of the drafter went away."))


async def test_closing_the_stream_closes_the_model_and_finishes_nothing() -> None:
    model = ScriptedModel(says(" one two", " three"))
    ticks = itertools.count()
    timeline = Timeline(lambda: float(next(ticks)))
    stream = write_drafts(
        model,
        QUESTION,
        SUBSETS,
        PASSAGES_OF,
        rationale_tokens=9,
        answer_tokens=9,
        timeline=timeline,
        parent=timeline.start("draft"),
    )
    async for event in stream:
        if isinstance(event, DraftStarted):
            break
    await stream.aclose()
    assert model.closed == 1
