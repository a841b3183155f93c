"""Sentences, equal answers and abstentions."""

import pytest

from specrag.text import (
    content_words,
    is_abstention,
    is_hollow,
    normalise_answer,
    overlap,
    sentences,
)


@pytest.mark.parametrize(
    "answer",
    [
        "Not in the passages.",
        "The answer is not provided.",
        "No information is given.",
        "The passages do not say.",
        "It cannot be determined.",
        "Unknown",
        "Not provided.",
        "The answer to the question is not provided.",
        "This is not mentioned in any of the passages.",
    ],
)
def test_abstentions_are_recognised(answer: str) -> None:
    assert is_abstention(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "640 watt-hours",
        "Ada Brennick",
        "Notting Hill",
        "No",
        "The Known World",
        "The charger is not in the box.",
        "The battery does not contain cobalt.",
        "It is not available in red.",
        "The motor was not given a name.",
        "Its author is unknown to most readers.",
    ],
)
def test_answers_are_not_abstentions(answer: str) -> None:
    assert not is_abstention(answer)


def test_equal_answers_differ_in_case_articles_and_punctuation_only() -> None:
    assert normalise_answer("The Three  nights.") == normalise_answer("three nights")
    assert normalise_answer("160 kilograms") != normalise_answer("180 kilograms")


def test_sentences_of_several_scripts() -> None:
    assert sentences("One. Two! 三つ。四つ？ خمسة؟ ستة") == [
        "One.",
        "Two!",
        "三つ。",
        "四つ？",
        "خمسة؟",
        "ستة",
    ]
    assert sentences("It weighs 3.4 kilograms.") == ["It weighs 3.4 kilograms."]


def test_overlap_is_the_share_of_distinct_words() -> None:
    assert overlap(content_words("battery battery charger"), "A Battery of 640 Wh") == 0.5
    assert overlap([], "text") == 0.0


@pytest.mark.parametrize("answer", ["", " . ", "The answer is:", "Answer:", "The answer to the question is"])
def test_an_announcement_without_an_answer_is_hollow(answer: str) -> None:
    assert is_hollow(answer)


@pytest.mark.parametrize("answer", ["No", "The Who", "42", "The answer is 42.", "Answer Me (film)"])
def test_an_answer_is_not_hollow(answer: str) -> None:
    assert not is_hollow(answer)
