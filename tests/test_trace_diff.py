"""Two runs compared: what a reader is told of the difference, and that no text of a run can write into the page."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.types import Answer, Subset
from specrag.ui.diff_cards import diff_card, more, more_ms, place, summary
from specrag.ui.diff_words import word_diff
from specrag.ui.trace_diff import Figure, diff_runs, paired
from tests.ui_html import find, read
from tests.ui_runs import RUNS
from tests.ui_traces import DISPUTED, FAILED, HOSTILE_TRACE, PASSAGES, SELECTED, STATES

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EVERY = {**STATES, **RUNS}


def test_a_word_that_changed_is_marked_and_the_others_are_not() -> None:
    told = word_diff("Three nights at the quay.", "Seven nights at the quay.")
    assert [(piece.text, piece.changed) for piece in told.before] == [
        ("Three", True),
        (" nights at the quay.", False),
    ]
    assert told.after[0].text == "Seven"


def test_a_phrase_that_changed_is_one_mark() -> None:
    """Each space between changed words stood unmarked, so that a new sentence looked like confetti."""
    told = word_diff("It may stay one two three nights.", "It may stay four five six nights.")
    assert [piece.text for piece in told.after if piece.changed] == ["four five six"]


def test_scripts_without_spaces_are_compared_by_character() -> None:
    told = word_diff("船は三泊できる", "船は七泊できる")
    assert [piece.text for piece in told.after if piece.changed] == ["七"]


@given(st.text(max_size=200), st.text(max_size=200))
def test_pieces_join_to_each_text_exactly(before: str, after: str) -> None:
    told = word_diff(before, after)
    assert "".join(piece.text for piece in told.before) == before
    assert "".join(piece.text for piece in told.after) == after
    assert told.changed == (before != after)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a " * 9000, "b " * 9000), ("a " * 9000, "a b " * 4500), ("ab" * 9000, "ba" * 9000)],
)
def test_long_texts_do_not_take_the_server(before: str, after: str) -> None:
    """Comparing all words of two long texts of an imported run took minutes."""
    begun = time.process_time()
    word_diff(before, after)
    assert time.process_time() - begun < 3


def test_a_run_beside_itself_differs_in_nothing() -> None:
    told = diff_runs(SELECTED, SELECTED)
    assert not told.settings
    assert told.same_passages
    assert told.same_result
    assert all(figure.difference in (0, None) for figure in (*told.times, *told.tokens))
    assert summary(told) == (
        "Both runs give the same answer, over the same passages. 0 settings differ; both took equally long."
    )


def test_settings_that_differ_are_named_in_words() -> None:
    before = replace(SELECTED, config={"drafts": 4, "weights": {"relevance": 4.0}, "seed": 0})
    after = replace(SELECTED, config={"drafts": 6, "weights": {"relevance": 0.0}, "seed": 0, "pool": True})
    told = {change.name: (change.before, change.after) for change in diff_runs(before, after).settings}
    assert told == {
        "drafts (m)": ("4", "6"),
        "weight of relevance": ("4", "0"),
        "equal answers add up": ("–", "yes"),
    }


def test_passages_say_where_they_stand_in_both_runs() -> None:
    first, second, third, fourth, *_ = PASSAGES
    before = replace(SELECTED, passages=(first, second, third))
    after = replace(SELECTED, passages=(second, first, fourth))
    told = {change.passage.id: place(change) for change in diff_runs(before, after).passages}
    assert told == {
        "p2": "up from 2 to 1",
        "p1": "down from 1 to 2",
        "p4": "only in the second, at 3",
        "p3": "only in the first, at 3",
    }


def test_drafts_are_put_beside_each_other_by_what_they_read() -> None:
    """Draft 2 stood beside draft 2 although it had read what draft 1 of the other run had."""
    swapped = (
        Subset(id="s1", perspective="notice", passage_ids=("p2", "p5")),
        Subset(id="s2", perspective="rules", passage_ids=("p1", "p3")),
    )
    after = replace(SELECTED, subsets=swapped, drafts=SELECTED.drafts[:2])
    pairs = [
        (change.before.number if change.before else None, change.after.number if change.after else None)
        for change in diff_runs(SELECTED, after).drafts
    ]
    assert pairs == [(1, 2), (2, 1), (3, None), (4, None)]


def test_what_shares_most_belongs_together() -> None:
    sets = [frozenset("abc"), frozenset("ab"), frozenset("x")]
    assert paired(sets, [frozenset("ab"), frozenset("abcd"), frozenset("y")]) == [
        (0, 1),
        (1, 0),
        (2, None),
        (None, 2),
    ]


def test_differences_have_a_sign_and_small_ones_are_none() -> None:
    assert more_ms(Figure(name="", before=1000, after=2500)) == "+1.5 s"
    assert more_ms(Figure(name="", before=300, after=100)) == "−200 ms"
    assert more_ms(Figure(name="", before=1.0, after=1.2)) == "same"
    assert more(Figure(name="", before=0.5, after=0.75)) == "+0.25"
    assert more(Figure(name="", before=None, after=0.75)) == "–"


def test_marks_are_told_without_colour() -> None:
    after = replace(SELECTED, answer=Answer(text="Four nights, since the 2025 notice."))
    html = diff_card(diff_runs(SELECTED, after), now=NOW)
    answer = next(one for one in find(html, "sr-diff-answer") if find(html, "ins"))
    assert answer.text.startswith("[only in the first: Three]")
    assert [one.text for one in find(html, "ins")][1] == "[only in the second: Four]"


def test_the_winner_of_each_run_is_named() -> None:
    assert len(find(diff_card(diff_runs(SELECTED, DISPUTED), now=NOW), "sr-diff-won")) == 2
    assert len(find(diff_card(diff_runs(SELECTED, FAILED), now=NOW), "sr-diff-won")) == 1


@pytest.mark.parametrize("name", EVERY)
def test_every_state_can_be_compared_and_no_text_becomes_markup(name: str) -> None:
    for pair in ((EVERY[name], HOSTILE_TRACE), (SELECTED, EVERY[name])):
        html = diff_card(diff_runs(*pair), now=NOW)
        assert not [one for one in read(html) if one.tag in ("script", "img", "style")]
        assert "${" not in html
        assert "{{" not in html
