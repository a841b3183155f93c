"""What BM25 counts: words of every script, numbers and codes, and nothing that a hostile text can blow up."""

import time

import pytest

from specrag.retrieval.words import LONGEST, asked, words


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("batteries", "The battery"),
        ("X-100", "the X-100 costs"),
        ("X100", "the X-100 costs"),
        ("x 100", "the X-100 costs"),
        ("15.50", "15,50 €"),
        ("1000000", "1,000,000 people"),
        ("1.000.000", "1,000,000 people"),
        ("version v2.1", "since V2.1"),
        ("cafe", "Das Café"),
        ("Strasse", "Straße"),
        ("John", "John's bike"),
        ("eau", "l'eau"),
        ("USA", "the U.S.A. and"),
        ("well known", "well-known"),
        ("ﬁne", "fine"),
        ("велосипеды", "о велосипедах"),
        ("елка", "ёлка"),
        ("المدينة", "في مدينة كبيرة"),
        ("كتاب", "كِتَابٌ"),
        ("שלום", "שָׁלוֹם"),
        ("电池", "这辆车的电池容量"),
        ("猫", "我的猫很大"),
        ("バッテリー", "このバッテリーは"),
        ("배터리", "배터리는 무겁다"),
        ("แบตเตอรี่", "น้ำหนักแบตเตอรี่ของรถ"),
        ("हिन्दी", "हिन्दी भाषा"),
        ("istanbul", "İstanbul"),
        ("ISPARTA", "ısparta"),
        ("Lodz", "Łódź"),
        ("Bronshoj", "Brønshøj"),
        ("Da Nang", "Đà Nẵng"),
        ("Aero", "Ærø"),
        ("640", "تسع البطارية ٦٤٠"),
        ("15,50", "السعر ١٥٫٥٠"),
        ("640", "क्षमता ६४०"),
        ("2566", "ปี๒๕๖๖"),
        ("c++", "written in C++11"),
        ("C#", "C#-Code"),
        ("C", "C++"),
    ],
)
def test_question_and_document_meet(question: str, text: str) -> None:
    """Each pair is written differently and means the same; all but the codes share every word."""
    assert set(words(question)) & set(words(text))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("X-100", "X-200"),
        ("v2.1", "v3.4"),
        ("15,50", "17,30"),
        ("电池", "容量"),
        ("640", "64"),
        ("C++", "C"),
        ("C#", "C++"),
    ],
)
def test_different_codes_and_words_stay_apart(first: str, second: str) -> None:
    assert words(first)[0] not in words(second)


def test_a_code_is_kept_whole() -> None:
    """As parts alone, "X-100" would be found in every text with an x and a hundred."""
    assert words("X-100")[0] == "x100"
    assert words("v2.1")[0] == "v2.1"
    assert words("15,50") == ["15.50"]


def test_words_that_only_ask_are_left_out() -> None:
    """No answer repeats "what was the"; they took the first places from the words that tell."""
    assert asked("What is the weight of the bike? The weight!") == ["the", "weight", "of", "bike"]


def test_a_name_in_capitals_is_no_word_that_asks() -> None:
    """The passages about the WHO came in no order, since nothing of its name was left."""
    assert asked("What did the WHO say?") == ["the", "who", "say"]
    assert asked("WHO WAS ADA?") == ["ada"]


def test_a_link_to_a_place_in_a_page_has_no_sign() -> None:
    """Otherwise each would be a rare word of its own."""
    assert not any("#" in word for word in words("example.com/guide#load"))


def test_a_question_of_such_words_only_keeps_them() -> None:
    assert asked("Who are Why?") == ["who", "are", "whi"]


@pytest.mark.parametrize("text", ["", " \n", "?!…", "\u0301\u0301", "\ud800"])
def test_nothing_to_count(text: str) -> None:
    """Marks and half characters alone are no words, and no crash."""
    assert all(isinstance(word, str) for word in words(text))


def test_a_long_word_is_cut_and_a_long_address_is_split() -> None:
    """The words of a long link are still found."""
    assert max(len(word) for word in words("a" * 1000)) == LONGEST
    link = "https://example.com/" + "-".join(["charging", "station"] * 10)
    assert {"charg", "station"} <= set(words(link))


@pytest.mark.parametrize(
    "unit", ["a", "漢", "a\u0301\u0316", "\u0301\u0316", "a-", "1,", "'", "ก", "a#", "a++", "a+", "+", "é#"]
)
def test_time_grows_with_the_text_only(unit: str) -> None:
    """A million characters of one kind took the square of their number to sort, or to match."""
    text = unit * (400_000 // len(unit))
    begin = time.process_time()
    words(text)
    assert time.process_time() - begin < 10
