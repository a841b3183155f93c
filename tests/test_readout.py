"""What a visitor sees of every pipeline, live and finished, and of a run that waits for its turn."""

from dataclasses import replace
from typing import Any

import pytest

from specrag.tracing.trace import Trace
from specrag.types import Answer
from specrag.ui import cards
from tests.ui_html import Element, find
from tests.ui_runs import (
    ADMITTED,
    ASKING,
    DRAFTER,
    DRAFTER_WRITING,
    FEW,
    FEW_WRITING,
    MULTIHOP,
    NOTING,
    QUEUED,
    SEARCHING,
    STANDARD,
    STANDARD_READING,
    STANDARD_WRITING,
    SYNTHESISED,
    SYNTHESISING,
)
from tests.ui_traces import SELECTED


def _texts(elements: list[Element]) -> list[str]:
    return [element.text for element in elements]


def _text(html: str, name: str) -> str:
    (one,) = find(html, name)
    return one.text


def _answer(trace: Trace) -> Answer:
    assert trace.answer is not None
    return trace.answer


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        (STANDARD_READING, "The verifier reads 8 passages"),
        (STANDARD_WRITING, "The verifier is writing the answer"),
        (STANDARD, "Done in 1.7 s: the verifier answered from all passages."),
        (DRAFTER_WRITING, "The drafter is writing the answer"),
        (DRAFTER, "Done in 1.7 s: the drafter answered from all passages."),
        (FEW, "Done in 1.6 s: the verifier answered from all passages."),
        (SYNTHESISING, "The verifier writes one answer from the drafts"),
        (SYNTHESISED, "Done in 3.8 s: one answer was written from 3 drafts."),
        (SEARCHING, "Hop 2: looking for passages"),
        (
            replace(NOTING, hops=(NOTING.hops[0], replace(NOTING.hops[1], note=""))),
            "Hop 2: reading what was found",
        ),
        (NOTING, "Hop 2: noting what was found"),
        (ASKING, "Hop 2: asking for what is missing"),
        (MULTIHOP, "Done in 3.6 s: the verifier answered after 2 hops."),
        (QUEUED, "2 runs are ahead of this one"),
        (replace(QUEUED, ahead=1), "1 run is ahead of this one"),
        (ADMITTED, "Looking for passages"),
    ],
)
def test_the_status_line_of_every_pipeline(trace: Trace, text: str) -> None:
    assert _text(cards.status_line(trace), "sr-status") == text


def test_the_status_line_says_who_else_uses_the_models() -> None:
    told = _text(cards.status_line(STANDARD_WRITING, sharing=3), "sr-status")
    assert told == "The verifier is writing the answer; shares the models with 3 other runs"
    one = _text(cards.status_line(STANDARD_WRITING, sharing=1), "sr-status")
    assert one.endswith("shares the models with 1 other run")
    later = replace(STANDARD_WRITING, elapsed_ms=99_999.0)
    assert cards.status_line(later, sharing=3) == cards.status_line(STANDARD_WRITING, sharing=3)


@pytest.mark.parametrize("trace", [QUEUED, STANDARD, SELECTED])
def test_a_run_that_waits_or_is_over_shares_nothing(trace: Trace) -> None:
    assert cards.status_line(trace, sharing=3) == cards.status_line(trace)


def test_a_waiting_run_says_so_on_card_and_board_and_keeps_no_places_for_drafts() -> None:
    board, answer = cards.board(QUEUED), cards.answer_card(QUEUED)
    assert _text(board, "sr-reader").startswith("2 runs are ahead of this one.")
    assert not find(board, "sr-card")
    assert _text(answer, "sr-eyebrow") == "Waiting for its turn"
    assert not find(answer, "sr-skeleton")
    assert not find(cards.passages_strip(QUEUED), "sr-skeleton")


def test_once_admitted_the_board_is_that_of_any_run() -> None:
    assert len(find(cards.board(ADMITTED), "sr-card-blank")) == 4
    assert "ahead" not in cards.board(ADMITTED) + cards.answer_card(ADMITTED)


def test_a_stopped_run_no_longer_waits() -> None:
    stopped = replace(QUEUED, status="cancelled")
    assert "ahead" not in cards.board(stopped) + cards.answer_card(stopped)


@pytest.mark.parametrize(
    ("trace", "line"),
    [
        (STANDARD, "Standard RAG: the verifier, large-1.7b, reads all 8 passages in one prompt"),
        (STANDARD_READING, "Standard RAG: the verifier, large-1.7b, reads all 8 passages in one prompt"),
        (DRAFTER, "Drafter only: the drafter, small-135m, reads all 8 passages in one prompt"),
        (FEW, "The verifier, large-1.7b, reads them all in one prompt and writes the answer itself"),
        (FEW_WRITING, "The verifier, large-1.7b, reads them all in one prompt"),
    ],
)
def test_without_drafts_one_line_says_which_model_reads_what(trace: Trace, line: str) -> None:
    board = cards.board(trace)
    assert _text(board, "sr-reader").startswith(line)
    assert not find(board, "sr-card")


def test_a_model_without_a_name_is_still_a_sentence() -> None:
    """The environment of an imported trace may hold anything."""
    odd: list[Any] = [None, [], {"verifier": None}, {"verifier": {"name": 7}}]
    for models in odd:
        line = _text(cards.board(replace(STANDARD, environment={"models": models})), "sr-reader")
        assert line.startswith("Standard RAG: the verifier reads all 8 passages")


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (STANDARD_WRITING, "The verifier is writing"),
        (DRAFTER_WRITING, "The drafter is writing"),
        (SYNTHESISING, "The verifier is writing one answer from the drafts"),
        (STANDARD, "Standard RAG, not verified"),
        (DRAFTER, "Drafter only, not verified"),
        (MULTIHOP, "Multi-hop RAG, 2 hops, not verified"),
        (FEW, "Few passages, answered at once, not verified"),
        (SYNTHESISED, "Synthesised: the verifier wrote one answer from 3 drafts"),
    ],
)
def test_the_answer_says_who_wrote_it_and_that_nobody_checked(trace: Trace, said: str) -> None:
    assert _text(cards.answer_card(trace), "sr-eyebrow") == said


def test_a_written_answer_streams_with_a_caret() -> None:
    html = cards.answer_card(STANDARD_WRITING)
    assert _text(html, "sr-answer-text").startswith("Three nights, as the notice says")
    assert find(html, "sr-caret")
    assert not find(cards.answer_card(STANDARD), "sr-caret")


def test_figures_keep_no_place_for_what_a_pipeline_never_has() -> None:
    standard = _texts(find(cards.answer_card(STANDARD_WRITING), "dt"))
    assert standard == ["first token", "so far", "verifier read / wrote", "models' share of the run"]
    drafter = _texts(find(cards.answer_card(DRAFTER), "dt"))
    assert drafter == ["first token", "total", "drafter read / wrote", "models' share of the run"]


def test_passages_of_a_baseline_are_all_chips_and_read_by_its_model() -> None:
    html = cards.passages_strip(STANDARD)
    chips = find(html, "sr-chip")
    assert len(chips) == 8
    assert all(one.text.endswith("read by the verifier") for one in chips)
    assert not find(html, "sr-dot")


def test_the_panel_marks_what_a_written_answer_repeats() -> None:
    told = replace(_answer(STANDARD), text="The stay is shortened to three nights.")
    marked = _texts(find(cards.passages_strip(replace(STANDARD, answer=told)), "mark"))
    assert any("shortened to three nights" in text for text in marked)
    assert not find(cards.passages_strip(STANDARD_WRITING), "mark")


def test_a_passage_that_is_its_own_cluster_says_that_every_draft_reads_it() -> None:
    html = cards.passages_strip(SYNTHESISED)
    flagged = [one for one in find(html, "sr-chip") if "in every draft" in one.text]
    assert [one.text.split()[0] for one in flagged] == ["2"]
    assert not find(cards.passages_strip(SELECTED), "sr-everywhere")


def test_an_answer_written_from_several_drafts_has_no_winner() -> None:
    html = cards.board(SYNTHESISED)
    assert not find(html, "sr-winner")
    ribbons = find(html, "sr-ribbon")
    assert _texts(ribbons) == ["in the answer"] * 3
    labels = [one.attributes["aria-label"] for one in find(html, "sr-card")]
    assert labels == [
        "Draft 1, in the answer",
        "Draft 2, in the answer",
        "Draft 3, in the answer",
        "Draft 4",
    ]


def test_only_drafts_that_the_answer_cites_are_in_it() -> None:
    """The verifier reads all of them and may use one."""
    one = replace(SYNTHESISED, answer=replace(_answer(SYNTHESISED), citations=("p1",)))
    assert [card.attributes["aria-label"] for card in find(cards.board(one), "sr-card")] == [
        "Draft 1, in the answer",
        "Draft 2",
        "Draft 3",
        "Draft 4",
    ]
    assert _texts(find(cards.answer_card(one), "li"))[0] == "rests on draft 1"
    none = replace(SYNTHESISED, answer=replace(_answer(SYNTHESISED), citations=()))
    assert not find(cards.board(none), "sr-ribbon")


def test_nothing_has_won_while_the_verifier_still_writes() -> None:
    """Before its text is there the decision names the best draft, which will not be the answer."""
    assert SYNTHESISING.decision is not None
    assert SYNTHESISING.decision.kind == "selected"
    assert not find(cards.board(SYNTHESISING), "sr-ribbon")


def test_a_selected_draft_that_stands_after_all_is_the_winner() -> None:
    assert SYNTHESISED.decision is not None
    stands = replace(SYNTHESISED, decision=replace(SYNTHESISED.decision, kind="selected"))
    (winner,) = find(cards.board(stands), "sr-winner")
    assert winner.attributes["aria-label"] == "Draft 2, winner"


def test_a_synthesised_answer_names_its_drafts_and_numbers_its_sources() -> None:
    html = cards.answer_card(SYNTHESISED)
    assert _texts(find(html, "sr-cite")) == ["[2]", "[5]", "[1]"]
    facts = _texts(find(html, "li"))
    assert facts[0] == "rests on drafts 1, 2, 3"
    assert "draft 4 abstained" in facts
    (card,) = find(html, "sr-look-synthesised")
    assert card.attributes["style"].count("var(--sr-hue-") == 3


def test_numbers_of_drafts_are_not_shown_as_if_they_were_passages() -> None:
    """The verifier cites drafts as [2] while it writes; on the page [2] is a passage."""
    assert SYNTHESISING.answer is not None
    assert "[2, 3]" in SYNTHESISING.answer.text
    shown = _text(cards.answer_card(SYNTHESISING), "sr-answer-text")
    assert shown == "Three nights since 2025, seven before."


@pytest.mark.parametrize("trace", [STANDARD, DRAFTER, SYNTHESISED, MULTIHOP])
def test_tokens_of_a_written_answer_join_to_it(trace: Trace) -> None:
    writer: cards.Colour = "drafter" if trace.pipeline == "drafter" else "verifier"
    html = cards.answer_card(trace, colour=writer)
    pieces = find(html, "sr-token")
    assert len(pieces) > 3
    assert "".join("".join(one.pieces) for one in pieces) == _answer(trace).text
    assert pieces[0].attributes["title"] == "p = 0.9048"
    assert f"to the {writer}, who wrote it" in _text(html, "sr-legend")


def test_tokens_are_coloured_only_by_the_model_that_wrote_them() -> None:
    assert not find(cards.answer_card(STANDARD, colour="drafter"), "sr-token")
    assert not find(cards.answer_card(STANDARD), "sr-token")


def test_tokens_of_a_text_that_was_put_aside_do_not_colour_the_answer() -> None:
    """A verifier that writes nothing of use leaves its tokens in the trace; the draft is the answer."""
    stands = replace(
        SYNTHESISED, answer=replace(_answer(SYNTHESISED), text="Three nights, since the notice.")
    )
    html = cards.answer_card(stands, colour="verifier")
    assert not find(html, "sr-token")
    assert _text(html, "sr-answer-text").startswith("Three nights, since the notice.")
