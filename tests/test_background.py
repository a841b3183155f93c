"""The loop behind the plain calls: whoever is let in gets an end, however the loop ends meanwhile."""

import asyncio
import threading
from concurrent.futures import CancelledError

import pytest

from specrag.background import Background, detached
from specrag.errors import UsageError

LIMIT_S = 10


class Caller(threading.Thread):
    """A thread that runs one coroutine, with its outcome."""

    def __init__(self, background: Background, *, through: asyncio.Event | None = None) -> None:
        super().__init__(daemon=True)
        self._background, self._through = background, through
        self.begun = threading.Event()
        self.outcome: str | BaseException = "hangs"

    async def _wait(self) -> str:
        self.begun.set()
        if self._through is not None:
            await self._through.wait()
        return "done"

    def run(self) -> None:
        try:
            self.outcome = self._background.run(self._wait())
        except BaseException as error:  # noqa: BLE001 - carried to the test's thread
            self.outcome = error

    def end(self) -> str | BaseException:
        self.join(LIMIT_S)
        return self.outcome


def loops() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "specrag-loop"]


async def one() -> int:
    return 1


def test_it_runs_coroutines_until_it_is_closed_and_then_none() -> None:
    """A closed one began a new thread, which nobody ended."""
    background, before = Background(), loops()
    assert (background.run(one()), background.run(one())) == (1, 1)
    assert len(loops()) == len(before) + 1
    background.close()
    with pytest.raises(UsageError, match="closed"):
        background.run(one())
    background.close()
    assert loops() == before


def test_one_that_was_never_used_is_closed_too() -> None:
    background, before = Background(), loops()
    background.close()
    with pytest.raises(UsageError, match="closed"):
        background.run(one())
    assert loops() == before


def test_closing_ends_what_runs() -> None:
    background = Background()
    caller = Caller(background, through=asyncio.Event())
    caller.start()
    assert caller.begun.wait(LIMIT_S)
    background.close()
    assert isinstance(caller.end(), CancelledError)


def test_who_comes_while_it_closes_is_refused_and_does_not_hang() -> None:
    """The loop still turns while it waits for its threads, but cancels nothing that is new to it."""
    background = Background()
    begun, release, cancelled = threading.Event(), threading.Event(), threading.Event()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, release.wait, LIMIT_S)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            loop.call_soon(cancelled.set)

    def hold() -> None:
        with pytest.raises(CancelledError):
            background.run(work())

    holding = threading.Thread(target=hold)
    holding.start()
    assert begun.wait(LIMIT_S)
    closing = threading.Thread(target=background.close)
    closing.start()
    assert cancelled.wait(LIMIT_S)
    late = Caller(background, through=asyncio.Event())
    late.start()
    assert isinstance(late.end(), UsageError)
    assert closing.is_alive()
    release.set()
    for thread in (closing, holding):
        thread.join(LIMIT_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("round_", range(16))
def test_whoever_races_with_the_close_gets_an_end(round_: int) -> None:
    background, through = Background(), asyncio.Event()
    callers = [Caller(background, through=through if number % 2 else None) for number in range(8)]
    for number, caller in enumerate(callers):
        caller.start()
        if number == round_ % 8:
            closing = threading.Thread(target=background.close)
            closing.start()
    closing.join(LIMIT_S)
    for caller in callers:
        outcome = caller.end()
        assert outcome == "done" or isinstance(outcome, UsageError | CancelledError)


async def test_detached_work_tells_its_result_and_its_error() -> None:
    assert await detached(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await detached(lambda: 1 // 0)


def test_a_loop_that_ends_does_not_wait_for_detached_work() -> None:
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        release.wait(LIMIT_S)
        ended.set()

    async def caller() -> None:
        asking = asyncio.create_task(detached(work))
        assert await asyncio.to_thread(begun.wait, LIMIT_S)
        asking.cancel()

    asyncio.run(caller())
    assert not ended.is_set()
    release.set()
    assert ended.wait(LIMIT_S)
