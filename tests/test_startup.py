"""The start: told step by step, and a failure is a sentence that stays."""

from pathlib import Path

from specrag.config import load_settings
from specrag.startup import Startup, StartupState


def test_a_failed_start_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    told: list[StartupState] = []
    startup = Startup(load_settings({}, home=tmp_path, embedder="nobody knows this"), tell=told.append)
    assert not startup.state.ready
    startup.begin()
    state = startup.wait(60)
    assert state.failed
    assert "'nobody knows this'" in state.message
    assert "all-minilm-l6-v2" in state.message
    assert told[-1] == state


def test_a_start_that_failed_can_be_tried_again(tmp_path: Path) -> None:
    startup = Startup(load_settings({}, home=tmp_path, embedder="nobody knows this"))
    startup.begin()
    startup.wait(60)
    startup.begin()
    assert startup.wait(60).failed
