"""Of passages that say the same one stays; what differs in a figure, a name or a "not" stays on both sides."""

import random
import time

import pytest

from specrag.retrieval.duplicates import Text, distinct, near_duplicates

TEXT = (
    "The bike carries at most 180 kilograms on roads that are flat and dry, and the rear rack made by Ortlieb "
    "holds a further box of moderate size, which the rider should fix with both straps before each ride."
)


def text(words: str, *, title: str = "Load", name: str = "a", date: str | None = None) -> Text:
    return Text(id=name, title=title, text=words, date=date)


@pytest.mark.parametrize(
    "other",
    [
        TEXT,
        TEXT.upper(),
        TEXT.replace(" ", "\n", 5),
        TEXT.replace(",", ""),
        TEXT.replace("straps", "strap"),
        TEXT.replace("moderate size", "moderate-size"),
        TEXT.replace("a further box", "also a further box"),
        f"{TEXT} see elsewhere",
    ],
    ids=["equal", "capitals", "lines", "commas", "a form", "a hyphen", "more inside", "more at the end"],
)
def test_nearly_the_same_words(other: str) -> None:
    assert near_duplicates(text(TEXT), text(other))


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("180", "160"),
        TEXT.replace("180 kilograms", "180,5 kilograms"),
        TEXT.replace("Ortlieb", "Racktime"),
        TEXT.replace("should fix", "should not fix"),
        TEXT.replace("should fix", "shouldn't fix"),
        TEXT.replace("at most", "at least"),
        TEXT.replace("180", "≤180"),
        "The bike is built in Bremen by a firm of 180 people who hold most of its shares.",
    ],
    ids=["figure", "decimal", "name", "not", "n't", "most", "symbol", "another text"],
)
def test_a_contradiction_is_no_duplicate(other: str) -> None:
    """Dropping one of two pages that differ in a figure would hide the very dispute that is to be shown."""
    assert not near_duplicates(text(TEXT), text(other))


HOURS = (
    "The museum keeps old lamps, and its house by the river is closed to visitors during the winter months, when "
    "the guards clean every lamp with soft cloth and the gardener feeds the fish in the large pond behind it."
)


@pytest.mark.parametrize(
    "other",
    [
        HOURS.replace("winter", "summer"),
        HOURS.replace("old", "new"),
        HOURS.replace("fish", "frogs"),
        HOURS.replace("winter", "hot summer"),
        HOURS.replace("guards clean every lamp", "lamp clean every guards"),
        HOURS.replace("keeps old lamps", "keeps lamps old"),
    ],
    ids=["season", "age", "animal", "two for one", "swap", "move"],
)
def test_a_contradiction_in_lower_case_is_no_duplicate(other: str) -> None:
    """The page about the summer was left out as "the same" as the page about the winter."""
    assert not near_duplicates(text(HOURS), text(other))
    assert not near_duplicates(text(other), text(HOURS))


def test_a_denial_elsewhere_is_a_contradiction() -> None:
    """What is denied changes, though both texts hold the same words, and one "not" each."""
    first = HOURS.replace("keeps old lamps", "keeps not old lamps")
    assert not near_duplicates(text(first), text(HOURS.replace("keeps old lamps", "keeps old not lamps")))
    assert not near_duplicates(text(first), text(HOURS.replace("feeds the fish", "feeds not the fish")))


def test_a_window_moved_on_by_some_words_is_a_duplicate() -> None:
    """Overlapping chunks share nearly everything, and lose and win words at their ends."""
    both = f"{HOURS} {TEXT}".casefold()
    assert near_duplicates(
        text(both.removeprefix("the museum keeps ")), text(both.removesuffix(" each ride."))
    )


def test_long_texts_of_two_words_take_no_time() -> None:
    """A text may be made so that aligning it takes more than the square of its length."""
    draw = random.Random(1)
    first, second = (text(" ".join(draw.choices("ab", k=5_000))) for _ in range(2))
    begin = time.process_time()
    assert not near_duplicates(first, second)
    assert time.process_time() - begin < 0.5


def test_a_hundred_near_duplicates_are_told_at_once() -> None:
    """Every question does this, before anybody sees a passage."""
    base = [f"w{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(130)]
    made = [text(" ".join([*base[:at], "also", *base[at:]]), name=str(at)) for at in range(1, 101)]
    begin = time.process_time()
    found = distinct(made, 8)
    assert time.process_time() - begin < 2
    assert len(found.dropped) > 50


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Load 2023", "Load 2025", False),
        ("X-100", "X-200", False),
        ("Alpha", "Beta", False),
        ("Battery", "Battery guide", True),
        ("report", "report (1)", True),
        ("report\nLimits", "report (1)\nLimits", True),
        ("report\nPart 1", "report\nPart 2", False),
        ("report", "Copy of report", True),
    ],
)
def test_titles_that_name_two_things(first: str, second: str, *, same: bool) -> None:
    """That both of two models hold 640 Wh is two facts, though the sentences are equal."""
    assert near_duplicates(text(TEXT, title=first), text(TEXT, title=second)) is same


def test_scripts_without_capitals_are_compared_word_by_word() -> None:
    """A name cannot be told from another word there."""
    first = "يحمل هذا الدراجة ما يصل إلى مئة كيلوغرام على الطرق المستوية والجافة في مدينة بريمن كل يوم"
    assert near_duplicates(text(first), text(f"{first}."))
    assert not near_duplicates(text(first), text(first.replace("بريمن", "برلين")))


def test_the_better_one_stays_and_the_next_best_moves_up() -> None:
    found = distinct([text(TEXT, name="a"), text(TEXT, name="b"), text("Something else.", name="c")], 2)
    assert found.ids == ("a", "c")
    assert found.dropped == {"b": "a"}


def test_the_newer_one_stays_at_the_better_place() -> None:
    found = distinct(
        [
            text(TEXT, name="old", date="2021-01-01"),
            text("Something else.", name="c"),
            text(TEXT, name="new", date="2024-01-01"),
            text(TEXT, name="undated"),
        ],
        3,
    )
    assert found.ids == ("new", "c")
    assert found.dropped == {"old": "new", "undated": "new"}
