"""The guided template, token by token, with a tokenizer small enough to read."""

from collections.abc import Sequence

import pytest

from specrag.models.base import End, Line, Output, Piece
from specrag.models.rows import Row

LINES = (Line(part="rationale", max_tokens=5, label="R:"), Line(part="answer", max_tokens=3, label="A:"))


class Letters:
    """One token per character; id 0 ends a turn; id 1 and 2 are the two halves of a character."""

    eos_token_id = 0
    pad_token_id = None
    all_special_ids = (0,)

    def decode(self, ids: Sequence[int]) -> str:
        text = "".join("\x01" if i == 1 else "\x02" if i == 2 else chr(i) for i in ids)
        return text.replace("\x01\x02", "é").replace("\x01", "\ufffd")


def write(tokens: str | Sequence[int], lines: Sequence[Line] = LINES) -> tuple[list[Output], str]:
    """What a row emits for the model's wishes, and what it feeds back."""
    out: list[Output] = []
    row = Row(7, (), lines, tokenizer=Letters(), encode=lambda text: [ord(letter) for letter in text])
    wishes = iter([ord(token) if isinstance(token, str) else token for token in tokens])
    fed = ""
    # the model's second choice is always "z"
    while (
        token := row.advance([(next(wishes, 0), -0.5), (ord("z"), -3.0)], lambda item: out.append(item[1]))
    ) is not None:
        fed += chr(token)
    return out, fed


def text(out: Sequence[Output], part: str) -> str:
    return "".join(item.text for item in out if isinstance(item, Piece) and item.part == part)


def test_a_newline_ends_the_line_and_the_label_is_forced_and_not_counted() -> None:
    """Labels counted inside the spans inflate the score."""
    # while the label "\nA:" is fed, the model's wishes (xxx) are ignored
    out, fed = write("ab\nxxcd\n")
    assert (text(out, "rationale"), text(out, "answer")) == ("ab", "cd")
    assert fed == "ab\nA:cd"
    assert out[-1] == End(finish_reason="stop", completion_tokens=4)


def test_the_end_token_ends_a_line_as_well() -> None:
    out, _ = write([97, 0, 120, 120, 98, 0])
    assert (text(out, "rationale"), text(out, "answer")) == ("a", "b")


def test_a_line_that_is_too_long_is_cut_and_said() -> None:
    out, fed = write("abcde" + "fgx" + "hijklm")  # three wishes are ignored while the label is fed
    assert text(out, "rationale") == "abcde"
    assert text(out, "answer") == "hij"
    assert fed.startswith("abcde\nA:")
    assert isinstance(out[-1], End)
    assert out[-1].finish_reason == "length"


def test_a_line_is_not_left_empty_when_the_model_would_end_it_at_once() -> None:
    """A small model writes its rationale and then nothing; the likeliest visible token begins the answer."""
    out, fed = write([97, 10, 120, 120, 0, 0])
    assert text(out, "answer") == "z"
    assert fed == "a\nA:z"
    assert [item.logprob for item in out if isinstance(item, Piece)] == [-0.5, -3.0]


def test_a_character_of_two_tokens_is_shown_when_it_is_complete_and_counts_twice() -> None:
    out, _ = write([97, 1, 2, 10])
    pieces = [item.text for item in out if isinstance(item, Piece)]
    assert pieces[:3] == ["a", "", "é"]


@pytest.mark.parametrize("tokens", ["", "a", "a\nxxb", "\n\n\n\n\n\n"])
def test_a_row_always_ends_exactly_once(tokens: str) -> None:
    out, _ = write(tokens)
    assert [isinstance(item, End) for item in out].count(True) == 1
    assert isinstance(out[-1], End)


def test_a_line_ends_with_its_sentence_and_not_inside_a_number() -> None:
    """A rationale cut in mid-sentence makes a small model answer nothing."""
    one = (Line(part="rationale", max_tokens=60, sentences=1), LINES[1])
    out, _ = write("It weighs 3.4 kilos. And more\nxxA\n", one)
    assert text(out, "rationale") == "It weighs 3.4 kilos."


def test_a_line_does_not_end_with_an_abbreviation() -> None:
    lines = (Line(part="answer", max_tokens=60, sentences=1),)
    out, _ = write("It was Dr. Bo L. Moody, v. Acme Inc. of it. Then", lines)
    assert text(out, "answer") == "It was Dr. Bo L. Moody, v. Acme Inc. of it."
    two = (Line(part="answer", max_tokens=60, sentences=2),)
    out, _ = write("It was Dr. Bo of Ohio. He sold it. Then", two)
    assert text(out, "answer") == "It was Dr. Bo of Ohio. He sold it."


def test_a_list_number_is_not_a_sentence() -> None:
    one = (Line(part="rationale", max_tokens=60, sentences=1), LINES[1])
    out, _ = write("1. The bike is red. It\nxxA\n", one)
    assert text(out, "rationale") == "1. The bike is red."
    out, _ = write("The answer is: 1. The bike. It\nxxA\n", one)
    assert text(out, "rationale") == "The answer is: 1. The bike."


def test_an_announcement_goes_on_with_the_answer() -> None:
    """“The answer is:” and then a newline is no answer."""
    lines = (Line(part="answer", max_tokens=40, sentences=1),)
    out, _ = write("The answer is:\n", lines)
    assert text(out, "answer") == "The answer is:z"


def test_an_answer_does_not_begin_by_asking_again() -> None:
    """A small model would rather write the question: the likeliest token that does not begin it is taken."""
    lines = (Line(part="answer", max_tokens=40, sentences=1, not_first=frozenset({"w"})),)
    out, fed = write("waw\n", lines)
    assert text(out, "answer") == fed == "zaw"
    assert [item.logprob for item in out if isinstance(item, Piece)] == [-3.0, -0.5, -0.5]
