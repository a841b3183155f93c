"""The sample collection must stay what the example questions need: dated, small, and in contradiction once."""

import json
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "assets" / "sample"
FRONT_MATTER = re.compile(
    r"\A---\ntitle: (?P<title>[^\n]+)\ndate: (?P<date>\d{4}-\d\d-\d\d)\n---\n\n(?P<body>.+)\Z", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePage:
    title: str
    published: date
    body: str


def _read(path: Path) -> SamplePage:
    match = FRONT_MATTER.match(path.read_text(encoding="utf-8"))
    assert match is not None, f"{path.name} has no front matter of exactly a title and a date"
    return SamplePage(title=match["title"], published=date.fromisoformat(match["date"]), body=match["body"])


def _pages() -> dict[str, SamplePage]:
    return {path.name: _read(path) for path in sorted(FOLDER.glob("*.md"))}


def _questions() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
    return content


def _dates_of(sentence: str) -> list[date]:
    return [page.published for page in _pages().values() if sentence in page.body]


def test_there_are_enough_pages_for_several_subsets() -> None:
    assert len(_pages()) >= 10


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.md")))
def test_a_page_is_short_and_opens_with_its_title(name: str) -> None:
    page = _pages()[name]
    assert 150 <= len(page.body.split()) <= 300
    assert page.body.startswith("# ")
    assert date(2022, 1, 1) <= page.published <= date(2025, 12, 31)


def test_titles_are_unique() -> None:
    titles = [page.title for page in _pages().values()]
    assert len(set(titles)) == len(titles)


def test_every_accepted_answer_stands_in_some_page() -> None:
    text = "\n".join(page.body for page in _pages().values())
    questions = _questions()["questions"]
    assert len(questions) == 6
    for item in questions:
        assert item["question"].endswith("?")
        assert item["note"]
        assert item["answers"]
        for answer in item["answers"]:
            assert answer in text, f"{answer!r} stands in no page"


def test_the_load_limit_is_contradicted_by_a_newer_page() -> None:
    old = _dates_of("The maximum load of the Larkspur 3 is 180 kilograms.")
    new = _dates_of("Since 10 March 2025 the maximum load of the Larkspur 3 is 160 kilograms.")
    assert old == [date(2023, 9, 4)]
    assert new == [date(2025, 3, 10)]


def test_the_warranty_of_2022_is_superseded() -> None:
    old = _dates_of("In 2022 the warranty on the frame of a Larkspur bike was two years.")
    new = _dates_of("The warranty on the frame of the Larkspur 3 is five years.")
    assert old < new
    assert len(old) == len(new) == 1


def test_no_page_answers_the_unanswerable_question() -> None:
    """The question is about colours: a page that mentions one of the bike would make it answerable."""
    unanswerable = _questions()["unanswerable"]
    assert unanswerable["answers"] == []
    assert "colour" in unanswerable["question"]
    assert not [
        name for name, page in _pages().items() if re.search("colou?r|painted", page.body, re.IGNORECASE)
    ]
