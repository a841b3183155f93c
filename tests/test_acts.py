"""What our own HTML tells the server: read as far as it can be what the page sends, refused otherwise."""

import json

import pytest

from specrag.ui.acts import MOST_IDS, Act, parse


def _message(**told: object) -> str:
    return json.dumps(told)


@pytest.mark.parametrize(
    ("told", "act"),
    [
        ({"action": "delete", "id": "ab12"}, Act(action="delete", id="ab12")),
        ({"action": "open", "id": "document:ab", "value": ""}, Act(action="open", id="document:ab")),
        (
            {"action": "retry", "id": "j", "value": "pass wörd"},
            Act(action="retry", id="j", value="pass wörd"),
        ),
        (
            {"action": "delete-ticked", "id": "", "value": ["a", "b", "a"]},
            Act(action="delete-ticked", values=("a", "b")),
        ),
    ],
)
def test_a_message_of_the_page_is_understood(told: dict[str, object], act: Act) -> None:
    assert parse(_message(**told)) == act


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "delete",
        "[]",
        "null",
        "[" * 100_000,
        _message(id="a"),
        _message(action="Delete Everything", id="a"),
        _message(action="delete", id=7),
        _message(action="delete", id=None),
        _message(action="delete", id="a\nb"),
        _message(action="delete", id="a\ud800"),
        _message(action="delete", id="a" * 201),
        _message(action="delete", id="a", value={"a": 1}),
        _message(action="delete", id="a", value=[["a"]]),
        _message(action="delete", id="a", value=["a"] * (MOST_IDS + 1)),
        _message(action="delete", id="a", value="b" * 300_000),
    ],
)
def test_anything_else_is_no_message(text: object) -> None:
    """Whoever can open the page can write into the box."""
    assert parse(text) is None
