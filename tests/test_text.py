"""Sentences, equal answers and abstentions."""

import pytest

from specrag.sentences import sentences
from specrag.text import (
    asking_words,
    cited_numbers,
    content_words,
    is_abstention,
    is_hollow,
    normalise_answer,
    overlap,
    without_citations,
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
        "there is no information about the founder.",
        "there is no specific information on this",
        "there are no details about the founder.",
        "there is no mention of a founder.",
        "no mention of the founder is made.",
        "the founder is not mentioned.",
        "the founder of the firm isn’t mentioned here.",
        "the weight of the battery is not explicitly stated.",
        "the founder's name is not provided.",
        "the information is not provided",
        "none of the passages mention the founder.",
        "none of the passages provided mentions it",
        "no passage mentions the founder.",
        "the passages don't mention it",
        "the documents do not explicitly say who founded it.",
        "the text doesn't say",
        "I don't know",
        "We do not know who it was.",
        "it is not clear who founded the firm.",
        "it's unclear",
        "it is unclear when it happened.",
        "no evidence.",
        "there is no evidence in the passages that he did.",
        "it can't be determined",
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
        "No evidence of water was found on the Moon",
        "No information is collected from visitors.",
        "No answer was received from the second probe.",
        "There is no speed limit on this road.",
        "There is no charger in the box.",
        "It can't be used in the rain.",
        "It isn't waterproof.",
        "The charger is not provided.",
        "They did not know the code.",
        "None of the passengers were hurt.",
        "None of the documents are signed.",
        "The battery holds 640 Wh, but its weight is not mentioned.",
        "It weighs 3.4 kilograms. The price is not given.",
        "The water is not clear.",
        "He is not known to have married.",
        "Information desks are on the first floor.",
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


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The defendant is Dr. Josef Mengele. He fled.", "The defendant is Dr. Josef Mengele."),
        (
            "Both Korematsu v. United States and the other do. Yes.",
            "Both Korematsu v. United States and the other do.",
        ),
        ("It was named after William L. Moody. He sold it.", "It was named after William L. Moody."),
        ("It is played by Dr. Who. He is away.", "It is played by Dr. Who."),  # a function word, but a title
        ("The U.S. Army built it. It stands.", "The U.S. Army built it."),
        ("It lies in the U.S. The rest is in Canada.", "It lies in the U.S."),
        ("It belongs to Acme Inc. and to Bolt. No more.", "It belongs to Acme Inc. and to Bolt."),
        ("It belongs to Acme Inc. In 1990 it closed.", "It belongs to Acme Inc."),
        ("It opens at 9 a.m. on Mondays. It closes.", "It opens at 9 a.m. on Mondays."),
        ("Ask the Dr.\nHe knows.", "Ask the Dr."),
        ("He sings in a bass. Yes.", "He sings in a bass."),
        ("The plan is Dr", "The plan is Dr"),
    ],
)
def test_an_abbreviation_ends_no_sentence(text: str, first: str) -> None:
    """“Both Korematsu v.” was a whole answer."""
    assert sentences(text)[0] == first


def test_numbers_in_brackets_are_citations_alone_or_several_at_once() -> None:
    text = "It holds 640 Wh [1], and weighs 3.4 kg [2; 12] [year]."
    assert cited_numbers(text) == {1, 2, 12}
    assert without_citations(text) == "It holds 640 Wh, and weighs 3.4 kg [year]."
    assert without_citations("[1] 640 Wh") == "640 Wh"


def test_overlap_is_the_share_of_distinct_words() -> None:
    assert overlap(content_words("battery battery charger"), "A Battery of 640 Wh") == 0.5
    assert overlap([], "text") == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " . ",
        "The answer is:",
        "Answer:",
        "The answer to the question is",
        'The answer to the question "Who is it?" is:',
    ],
)
def test_an_announcement_without_an_answer_is_hollow(answer: str) -> None:
    assert is_hollow(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "No",
        "The Who",
        "42",
        "The answer is 42.",
        'The answer to the question "Who is it?" is: Bo',
        "Answer Me (film)",
    ],
)
def test_an_answer_is_not_hollow(answer: str) -> None:
    assert not is_hollow(answer)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("when did the first train run?", {"when"}),
        ("Who founded it?", {"who"}),
        ("“What” is it?", {"what"}),
        ("The Who: where from?", set()),
        ("Did they tour together?", {"did"}),
        ("Larkspur 3 battery", set()),
        ("?", set()),
    ],
)
def test_only_a_word_that_asks_is_not_to_begin_an_answer(question: str, words: set[str]) -> None:
    assert asking_words(question) == words
