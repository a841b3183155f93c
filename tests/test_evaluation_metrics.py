"""Figures of an answer, against values computed by hand and the published definitions of the scorers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrag.evaluation import metrics
from specrag.evaluation.metrics import contained, exact_match, f1, holds, rouge_l, squad_normalised, yes_or_no

TEXTS = st.text(alphabet="abc the.,-漢字 é", max_size=30)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Eiffel-Tower, a tower!", "eiffeltower tower"),
        ("An answer", "answer"),
        ("theatre", "theatre"),
        ("A.", ""),
    ],
)
def test_texts_are_normalised_as_squad_does_it(text: str, normal: str) -> None:
    """Punctuation goes before articles and is not replaced by a space: "Eiffel-Tower" becomes one word."""
    assert squad_normalised(text) == normal


@pytest.mark.parametrize(
    ("answer", "accepted", "em", "overlap"),
    [
        ("the Denver Broncos", ["Denver Broncos", "Carolina Panthers"], 1.0, 1.0),
        ("Denver Broncos of Colorado", ["Denver Broncos"], 0.0, 2 * 0.5 * 1.0 / 1.5),
        ("Broncos Broncos", ["Denver Broncos"], 0.0, 0.5),  # a word counts as often as it stands in both
        ("Santa Clara", ["Levi's Stadium"], 0.0, 0.0),
        ("yes", ["yes"], 1.0, 1.0),
        ("yes it is", ["yes"], 0.0, 0.0),  # HotpotQA: yes, no and noanswer count only alone
        ("no", ["no one"], 0.0, 0.0),
        ("noanswer", ["Paris"], 0.0, 0.0),
        ("", ["Paris"], 0.0, 0.0),
    ],
)
def test_exact_match_and_f1_by_hand(answer: str, accepted: list[str], em: float, overlap: float) -> None:
    assert exact_match(answer, accepted) == em
    assert f1(answer, accepted) == pytest.approx(overlap)


def test_the_best_accepted_answer_counts() -> None:
    assert f1("blue whale", ["whale", "blue whale", "shark"]) == 1.0


def test_scripts_without_spaces_overlap_by_character() -> None:
    """Split at spaces, two Chinese answers that share three of four signs had nothing in common."""
    assert f1("東京都区", ["東京都心"]) == pytest.approx(0.75)
    assert holds("首都は東京都です。", "東京都")
    assert not holds("京都", "東京都")


def test_an_answer_within_a_sentence_is_found_as_whole_words() -> None:
    """As a substring, "art" would stand in "party"."""
    assert contained("It was founded in Bern, in 1848.", ["bern"]) == 1.0
    assert contained("the party", ["art"]) == 0.0
    assert contained("“Bern”, they say", ["Bern"]) == 1.0
    assert contained("anything", ["the"]) == 0.0
    assert contained("anything", []) == 0.0


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("Yes, it does.", True),
        ("The claim is true.", True),
        ("That is not true.", False),
        ("It isn't really correct", False),
        ("False: it was 1900.", False),
        ("No", False),
        ("Nobody knows", None),
        ("", None),
    ],
)
def test_yes_and_no_are_read_in_sentences(answer: str, says: bool | None) -> None:
    """What is "not true" holds the word "true" and says the opposite."""
    assert yes_or_no(answer) is says
    assert metrics.agrees(answer, ["true"]) == float(says is True)


def test_rouge_l_by_hand() -> None:
    """Lin 2004: "police killed the gunman" against "police kill the gunman" shares three of four in order."""
    assert rouge_l("police kill gunman now", ["police killed gunman now"]) == pytest.approx(0.75)
    assert rouge_l("gunman police", ["police gunman"]) == pytest.approx(0.5)
    assert rouge_l("one two three four five", ["one five"]) == pytest.approx(2 * 2 / 7)


def test_citations() -> None:
    assert metrics.precision(["a", "b", "b"], {"b", "c"}) == 0.5
    assert metrics.recall(["a", "b"], {"b", "c", "d"}) == pytest.approx(1 / 3)
    assert metrics.precision([], {"b"}) is None
    assert metrics.recall(["a"], set()) is None


def test_all_answers_may_stand_in_several_texts() -> None:
    assert metrics.share_said(["It is 160.", "It is 180."], ["160", "180"]) == 1.0
    assert metrics.share_said(["It is 160."], ["160", "180"]) == 0.5


@given(TEXTS, TEXTS)
def test_overlaps_are_shares_and_symmetric(one: str, other: str) -> None:
    for score in (f1, rouge_l):
        assert 0.0 <= score(one, [other]) <= 1.0
        assert score(one, [other]) == pytest.approx(score(other, [one]))
    assert rouge_l(one, [other]) <= f1(one, [other]) + 1e-9  # in order is never more than in any order


@given(TEXTS)
def test_a_text_agrees_with_itself(text: str) -> None:
    assert exact_match(text, [text]) == f1(text, [text]) == rouge_l(text, [text]) == 1.0
