"""Same, contradictory, or about something else: pairs of answers as drafts write them."""

import pytest

from specrag.claims import agree, contradict, holds

SAME = [
    ("160 kilograms", "at most 160 kilograms since March"),
    ("160 kilograms.", "the maximum load of the Larkspur 3 is 160 kg"),
    ("640 Wh", "its capacity is 640 watt-hours"),
    ("the battery holds 640 watt-hours", "640 watt-hours is what it stores"),
    ("five years", "The warranty on the frame is 5 years."),
    ("one year", "1 year from the sale"),
    ("not more than 160 kilograms", "160 kg"),
    ("not 180 kilograms but 160 kilograms", "160 kilograms"),
    ("3,890 euros", "€3,890 since 8 January 2025"),
    ("3.40 kg", "3.4 kilograms"),
    ("5h", "5 hours with the standard charger"),
    ("March 2025", "10 March 2025"),
    ("Ada Brennick", "the firm was founded by Ada Brennick"),
    ("a weld can crack in the rear rack", "because the weld of the rear rack can crack"),
    ("No", "No, it is not covered."),
    ("the Larkspur 3 can carry 160 kilograms", "since 2025, 160 kilograms"),
]
OPPOSED = [
    ("160 kilograms", "180 kilograms"),
    ("180 kilograms", "160 kilograms; the older figure of 180 kilograms is no longer valid"),
    ("160 kilograms", "160 kilograms until 2024, 180 kilograms since"),
    ("the limit is 160 kilograms", "the limit is not 160 kilograms"),
    ("five years", "two years"),
    ("one year", "two years"),
    ("5 hours", "5 minutes"),
    ("3.4 kilograms", "34 kilograms"),
    ("3,890 euros", "3,640 euros in 2024"),
    ("2023", "2025"),
    ("10 March 2025", "12 March 2025"),
    ("Ada Brennick", "Tomas Iveland"),
    ("it was founded by Ada Brennick in 2011", "it was founded by Tomas Iveland in 2011"),
    ("Paris, France", "Paris, Texas"),
    ("the Larkspur 2", "the Larkspur 3"),
    ("it is covered", "it is not covered"),
    ("yes", "no"),
    ("東京", "京都"),
]
APART = [
    ("640 watt-hours", "180 kilograms of energy"),
    ("160 kilograms", "an electric cargo bike"),
    ("five years", "the warranty belongs to the first owner"),
    (
        "the warranty ends when the bike is raced or hired out",
        "receipts must be kept by the owner for a claim",
    ),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_other_words_for_the_same_are_no_contradiction(first: str, second: str) -> None:
    assert agree(first, second)
    assert agree(second, first)
    assert not contradict(first, second)
    assert not contradict(second, first)


@pytest.mark.parametrize(("first", "second"), OPPOSED)
def test_other_numbers_names_and_denials_contradict(first: str, second: str) -> None:
    assert contradict(first, second)
    assert contradict(second, first)
    assert not agree(first, second)
    assert not agree(second, first)


@pytest.mark.parametrize(("first", "second"), APART)
def test_answers_of_two_kinds_neither_agree_nor_contradict(first: str, second: str) -> None:
    assert not agree(first, second)
    assert not contradict(first, second)
    assert not contradict(second, first)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The maximum load is 180 kilograms.", "the load of the Larkspur 3 is 180 kg"),
        ("The warranty was two years.", "the warranty on the Larkspur 3 frame is 2 years"),
        ("| Second battery | 690 |", "690 euros"),
        ("Larkspur Works was founded by Ada Brennick in 2011.", "Ada Brennick, in 2011"),
        ("The rack has a brace.", "a brace"),
    ],
)
def test_a_source_holds_what_it_says(text: str, answer: str) -> None:
    assert holds([text], answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The range is 70 kilometres.", "70 kilowatt-hours"),
        ("A rider claimed 9 hours.", "2.5 hours"),
        ("It was founded by Ada Brennick in 2011.", "Tomas Iveland"),
        ("It was founded by Ada Brennick in 2011.", "Ada Brennick, in 2012"),
    ],
)
def test_a_source_does_not_hold_what_the_draft_made_up(text: str, answer: str) -> None:
    assert not holds([text], answer)


def test_a_long_run_of_letters_is_read_at_once() -> None:
    """A passage of a hostile file: an amount is looked for from the start of words only."""
    assert not holds(["x" * 200_000], "160 kilograms")
