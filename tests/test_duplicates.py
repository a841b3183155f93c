"""Of passages that say the same one stays; what differs in a figure, a name or a "not" stays on both sides."""

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
        TEXT.replace("moderate", "medium"),
        f"{TEXT} see elsewhere",
    ],
    ids=["equal", "capitals", "lines", "commas", "a word", "more at the end"],
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
