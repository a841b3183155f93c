"""The walkthrough's recordings, and what is made of them: no browser, no model."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from specrag.errors import TraceError
from specrag.sample import FOLDER as SAMPLE_FOLDER
from specrag.sample import questions
from specrag.tracing.trace import fold
from specrag.ui import cards
from specrag.ui.tour import NAMES, Recorded, recordings, script
from specrag.ui.tour_frames import film, parts_of
from specrag.ui.tour_steps import steps

RECORDED = {run.name: run for run in recordings()}
BOTH = pytest.mark.parametrize("run", RECORDED.values(), ids=RECORDED.keys())


def text_of(run: Recorded) -> str:
    """Everything that the steps say."""
    told = steps(fold(run.events), events=len(run.events))
    return " ".join(" ".join((step.title, *step.sentences)) for step in told)


@BOTH
def test_a_recording_loads_and_has_what_the_steps_speak_of(run: Recorded) -> None:
    """A change of the events or of the trace that the shipped recordings do not survive is found here."""
    trace = fold(run.events)
    assert (trace.status, trace.pipeline) == ("done", "speculative")
    assert trace.passages
    assert len(trace.drafts) == len(trace.subsets) >= 2
    assert all(draft.usable and draft.scores.combined for draft in trace.drafts)
    assert trace.decision is not None
    assert trace.decision.kind == "selected"
    assert trace.answer is not None
    assert trace.answer.citations
    assert trace.usage.verifier.forward_passes == 1
    assert {span.name for span in trace.spans} >= {"retrieve", "partition", "draft", "verify", "decide"}


@BOTH
def test_a_recording_says_with_what_and_when_it_was_made(run: Recorded) -> None:
    trace = fold(run.events)
    assert set(trace.environment["versions"]) >= {"specrag", "python", "torch", "transformers"}
    assert trace.environment["device"]
    assert trace.environment["models"]["drafter"]["name"] in text_of(run)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*", trace.created_at)


@BOTH
def test_a_recording_asks_what_the_page_offers_and_shows_passages_that_are_still_in_the_sample(
    run: Recorded,
) -> None:
    """An edited sample page would leave the tour with texts that nobody can find in the documents."""
    trace = fold(run.events)
    assert trace.question in {item.question for item in questions()}
    for passage in trace.passages:
        page = (SAMPLE_FOLDER / passage.source).read_text(encoding="utf-8")
        assert words(passage.text) in words(page), passage.title


def words(text: str) -> str:
    """The words alone: a chunk leaves the marks of headings and the breaks of lines out."""
    return " ".join(re.findall(r"\w+", text))


def test_one_recording_is_disputed_and_the_other_is_not() -> None:
    sides = {name: fold(run.events).decision for name, run in RECORDED.items()}
    assert {name: bool(decision and decision.sides) for name, decision in sides.items()} == {
        "disputed": True,
        "plain": False,
    }


def test_recordings_hold_no_path_of_the_machine_that_made_them() -> None:
    for run in RECORDED.values():
        assert "/home" not in str(fold(run.events).config)
        assert "/tmp" not in str(fold(run.events))  # noqa: S108 - that it is not there


# What is said


@BOTH
def test_every_number_that_is_said_is_one_of_the_run(run: Recorded) -> None:
    """Nothing is invented: another run in the same words would say other numbers."""
    trace = fold(run.events)
    slower = replace(trace, spans=tuple(replace(s, end_ms=(s.end_ms or 0) * 3) for s in trace.spans))
    before, after = (steps(one, events=7) for one in (trace, slower))
    assert before[1].sentences[0] != after[1].sentences[0]
    scores = next(step for step in before if step.key == "scores")
    best = max(draft.scores.combined or 0.0 for draft in trace.drafts)
    assert f"{best:.2f} for draft" in scores.sentences[-1]
    assert f"{trace.usage.verifier.prompt_tokens:,} tokens" in scores.sentences[0]
    assert f"{sum(len(draft.tokens) for draft in trace.drafts):,} tokens" in before[3].sentences[1]


@BOTH
def test_there_are_seven_steps_of_two_or_three_sentences_each(run: Recorded) -> None:
    told = steps(fold(run.events), events=len(run.events))
    assert [step.key for step in told] == [
        "question", "passages", "subsets", "drafts", "scores", "decision", "trace",
    ]  # fmt: skip
    assert all(2 <= len(step.sentences) <= 3 for step in told)
    assert all(step.title and all(step.sentences) for step in told)


def test_the_decision_is_told_with_its_dispute_or_without_one() -> None:
    disputed, plain = text_of(RECORDED["disputed"]), text_of(RECORDED["plain"])
    assert "the dispute is shown" in disputed
    assert "two sides" in disputed
    assert "disput" not in plain


@BOTH
def test_what_if_is_the_arithmetic_of_the_traces_tab(run: Recorded) -> None:
    """The last sentence says which draft would win without a score, or that the same one would."""
    said = steps(fold(run.events), events=1)[-1].sentences[-1]
    assert re.search(
        r"without .+, draft \d would have won\.|leave out any one of .+, and draft \d still wins\.", said
    )


# What is shown


@BOTH
def test_the_last_frame_is_the_page_of_the_finished_run(run: Recorded) -> None:
    frames = film(run.events).frames
    shown: dict[str, str] = {}
    for frame in frames:
        shown |= frame.parts
    assert shown == parts_of(fold(run.events))
    assert cards.status_line(fold(run.events)) == shown["status"]


@BOTH
def test_the_stops_come_in_order_and_the_drafts_grow_between_them(run: Recorded) -> None:
    pictures = film(run.events)
    stops = list(pictures.stops.values())
    assert stops == sorted(stops)
    assert [frame.at_ms for frame in pictures.frames] == sorted(frame.at_ms for frame in pictures.frames)
    between = pictures.frames[pictures.stops["subsets"] : pictures.stops["drafts"] + 1]
    assert sum("board" in frame.parts for frame in between) >= 8, "the drafts are not seen growing"


@BOTH
def test_a_step_shows_what_it_speaks_of_and_not_yet_what_comes_later(run: Recorded) -> None:
    pictures = film(run.events)

    def at(stop: str) -> dict[str, str]:
        shown: dict[str, str] = {}
        for frame in pictures.frames[: pictures.stops[stop] + 1]:  # type: ignore[index]  # a key of the tour
            shown |= frame.parts
        return {part: readable(markup) for part, markup in shown.items()}

    trace = fold(run.events)
    assert trace.question in at("question")["question"]
    assert not at("question")["passages"]
    assert trace.passages[0].title in at("passages")["passages"]
    assert trace.subsets[0].perspective in at("subsets")["board"]
    assert "combined" not in at("drafts")["board"]
    assert "combined" in at("scores")["board"]
    assert "winner" not in at("scores")["board"]
    assert trace.answer is not None
    assert trace.answer.text in at("decision")["answer"]


def readable(markup: str) -> str:
    """What a person reads of it."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def test_the_script_is_small_enough_to_be_fetched_at_once() -> None:
    assert set(NAMES) == set(RECORDED)
    assert len(json.dumps(script(recordings()))) < 1_500_000


def test_a_broken_recording_is_refused_with_a_sentence(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.json").write_text('[["NoSuchEvent", {}]]', encoding="utf-8")
    with pytest.raises(TraceError, match="cannot be read"):
        recordings(tmp_path)
