"""Re-indexing in the background: watched, stopped, and never twice at once for a collection."""

import threading
from collections.abc import Callable

import pytest

from specrag.errors import StoreError, UsageError
from specrag.ingest.base import ReadingCancelled
from specrag.ingest.jobs.reindex import ReindexJobs

WAIT_S = 10.0


class Slow:
    """Works until it is let go or cancelled, as the indexer does; `error` is how it ends instead."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go, self.begun, self.calls, self._error = threading.Event(), threading.Event(), 0, error

    def reindex(
        self, collection: str, progress: Callable[[str, int, int], None], cancelled: Callable[[], bool]
    ) -> int:
        assert collection == "c"
        self.calls += 1
        progress("embedding", 3, 9)
        self.begun.set()
        while not self.go.wait(0.01):
            if cancelled():
                raise ReadingCancelled
        if self._error is not None:
            raise self._error
        return 9


def test_it_says_how_far_it_is_and_how_it_ended() -> None:
    slow = Slow()
    jobs = ReindexJobs(slow)
    assert jobs.state("c") is None
    jobs.start("c")
    assert slow.begun.wait(WAIT_S)
    jobs.start("c")
    state = jobs.state("c")
    assert state is not None
    assert (state.state, state.done, state.total) == ("running", 3, 9)
    slow.go.set()
    ended = jobs.wait("c", WAIT_S)
    assert ended is not None
    assert (ended.state, ended.message) == ("done", "Re-indexed: 9 chunks.")
    assert slow.calls == 1, "who asks again watches the work that goes on"
    jobs.dismiss("c")
    assert jobs.state("c") is None


@pytest.mark.parametrize("stop", ["cancel", "close"])
def test_it_stops_when_told(stop: str) -> None:
    slow = Slow()
    jobs = ReindexJobs(slow)
    jobs.start("c")
    assert slow.begun.wait(WAIT_S)
    if stop == "cancel":
        jobs.cancel("c")
    else:
        jobs.close()
        with pytest.raises(UsageError, match="shutting down"):
            jobs.start("c")
    ended = jobs.wait("c", WAIT_S)
    assert ended is not None
    assert ended.state == "cancelled"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(StoreError("The store is locked."), "The store is locked."), (ValueError("x"), "see the server's log")],
)
def test_a_failure_is_a_sentence_and_the_next_try_begins_anew(error: Exception, sentence: str) -> None:
    slow = Slow(error)
    jobs = ReindexJobs(slow)
    slow.go.set()
    for _ in range(2):
        jobs.start("c")
        ended = jobs.wait("c", WAIT_S)
        assert ended is not None
        assert ended.state == "failed"
        assert sentence in (ended.message or "")
    assert slow.calls == 2
