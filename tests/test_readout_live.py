"""What the Ask tab is sent while a run goes on: only what is new, and colours only of models that spoke."""

from dataclasses import replace
from typing import Any

import pytest

from specrag.tracing.trace import Trace
from specrag.ui.live import NAMES, Show, Updates
from tests.ui_runs import DRAFTER, MULTIHOP, STANDARD, STANDARD_WRITING, SYNTHESISED
from tests.ui_traces import SELECTED


def _sent(updates: Updates) -> dict[str, Any]:
    skipped = {"__type__": "update"}
    return {name: value for name, value in zip(NAMES, updates, strict=True) if value != skipped}


def _offered(trace: Trace, colour: str = "none") -> tuple[list[str], str]:
    update = _sent(Show(colour).trace(trace))["colour"]
    return [name for _, name in update["choices"]], update["value"]


@pytest.mark.parametrize(
    ("trace", "roles"),
    [
        (SELECTED, ["none", "drafter", "verifier"]),
        (STANDARD, ["none", "verifier"]),
        (DRAFTER, ["none", "drafter"]),
        (MULTIHOP, ["none", "verifier"]),
        (SYNTHESISED, ["none", "drafter", "verifier"]),
    ],
)
def test_only_colours_that_the_run_has_are_offered(trace: Trace, roles: list[str]) -> None:
    assert _offered(trace) == (roles, "none")


def test_a_colour_stays_chosen_as_long_as_the_run_has_it() -> None:
    assert _offered(STANDARD, "verifier")[1] == "verifier"
    assert _offered(STANDARD, "drafter")[1] == "none"


def test_colours_are_hidden_while_a_run_goes_on() -> None:
    assert _sent(Show("verifier").trace(STANDARD_WRITING))["colour"]["visible"] is False


def test_the_answer_of_a_baseline_is_sent_in_the_chosen_colour() -> None:
    assert "sr-token" in _sent(Show("verifier").trace(STANDARD))["answer"]
    assert "sr-token" not in _sent(Show("none").trace(STANDARD))["answer"]


def test_the_line_for_screen_readers_is_sent_again_only_when_its_words_change() -> None:
    show = Show("none")
    assert "status" in _sent(show.trace(STANDARD_WRITING))
    later = replace(STANDARD_WRITING, elapsed_ms=STANDARD_WRITING.elapsed_ms + 250.0)
    assert "status" not in _sent(show.trace(later))
    assert "status" in _sent(show.trace(later, sharing=2))
    assert "status" not in _sent(show.trace(later, sharing=2))
