"""What an opened run costs the server, and what it sends: the whole detail has to be there within a second."""

import json
import time
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest

from specrag.ui.tabs.detail_events import SHOWN, opened
from tests.detail_runs import run_of
from tests.ui_runs import RUNS
from tests.ui_traces import HOSTILE_TRACE, STATES

MOST_S = 0.5
"""Of the processor; the other half of the second is the browser's."""
MOST_BYTES = 400_000


def sent(values: tuple[Any, ...]) -> int:
    """Letters of what goes to the browser, the figure as its JSON."""
    texts = [value.to_json() if hasattr(value, "to_json") else value for value in values]
    return sum(len(text) if isinstance(text, str) else len(json.dumps(text)) for text in texts if text)


def test_twenty_drafts_are_opened_quickly_and_send_little() -> None:
    """The tables of all tokens were half a megabyte and twenty thousand nodes, on a tab where few look at them."""
    trace = run_of(drafts=20, words=100)
    opened(run_of())  # what is loaded once
    begun = time.process_time()
    values = opened(trace)
    assert time.process_time() - begun < MOST_S
    assert sent(values) < MOST_BYTES


@pytest.mark.parametrize("name", [*STATES, *RUNS])
def test_every_run_can_be_opened(name: str) -> None:
    values = opened((STATES | RUNS)[name])
    assert len(values) == len(SHOWN) + 9
    shown = dict(zip(SHOWN, values, strict=False))
    assert all(isinstance(shown[part], str) for part in SHOWN if part != "plot")
    assert "sr-player" in shown["replay"]


def test_settings_that_cannot_be_read_leave_the_sliders_alone() -> None:
    """A file from outside may state anything as its weights."""
    values = opened(replace(HOSTILE_TRACE, config={"weights": "x"}))
    assert values[len(SHOWN) : -1] == (gr.skip(),) * 8
    assert "cannot be read" in values[-1]


def test_one_draft_leaves_nothing_to_choose_among() -> None:
    """A slider from 1 to 1 is refused by gradio."""
    drafts = opened(run_of(drafts=1))[len(SHOWN) + 6]
    assert (drafts["maximum"], drafts["interactive"]) == (2, False)
