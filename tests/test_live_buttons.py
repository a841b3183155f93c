"""The buttons of a run: a page that has lost the first word about them hears it again."""

import gradio as gr
import pytest

from specrag.ui import live
from specrag.ui.live import NAMES, Show
from tests.ui_traces import STATES

RUNNING = next(trace for trace in STATES.values() if trace.status == "running")
STOP = NAMES.index("stop")


def test_stop_is_enabled_again_on_a_page_that_lost_it(monkeypatch: pytest.MonkeyPatch) -> None:
    show = Show("none")
    assert show.trace(RUNNING)[STOP]["interactive"] is True
    assert show.trace(RUNNING)[STOP] == gr.skip(), "no news"
    monkeypatch.setattr(live, "BUTTONS_S", 0.0)
    assert show.trace(RUNNING)[STOP]["interactive"] is True
