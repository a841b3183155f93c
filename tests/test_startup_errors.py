"""What the page is told when the start of the program fails in a way that nobody foresaw."""

import threading
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.startup import Startup, StartupState


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_that_nobody_foresaw_does_not_tell_the_page_what_it_holds(tmp_path: Path) -> None:
    """A library put the token that it could not encode into its error, and the page showed it."""

    def tell(state: StartupState) -> None:
        if state.message == "Looking for the embedder's weights":
            raise UnicodeEncodeError("ascii", "s3cret\u200b", 6, 7, "ordinal not in range(128)")

    startup = Startup(load_settings({}, home=tmp_path), tell=tell)
    startup.begin()
    state = startup.wait(30)
    for thread in threading.enumerate():
        if thread.name == "specrag-startup":
            thread.join()  # what it raises at its end belongs to this test
    assert state.failed
    assert "UnicodeEncodeError" in state.message
    assert "s3cret" not in state.message
