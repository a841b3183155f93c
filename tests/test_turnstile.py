"""The line in front of the models: first come, first served, and nobody is left standing."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from specrag.turnstile import Place, Turnstile

LIMIT_S = 10


class Guest:
    """A run in line, as the test sees it: what it was told, whether it is through, and how to let it end."""

    def __init__(self, turnstile: Turnstile, log: list[str], name: str) -> None:
        self._turnstile, self._log, self._name = turnstile, log, name
        self.told: list[int] = []
        self.through = asyncio.Event()
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._visit())

    async def _visit(self) -> None:
        async with self._turnstile.place() as place:
            async for ahead in place.wait():
                self.told.append(ahead)
            self._log.append(self._name)
            self.through.set()
            await self.leave.wait()

    async def go(self) -> None:
        self.leave.set()
        await self.task


async def settle() -> None:
    """Let every task run until it waits for somebody else."""
    for _ in range(20):
        await asyncio.sleep(0)


async def arrive(turnstile: Turnstile, log: list[str], names: str) -> list[Guest]:
    guests = [Guest(turnstile, log, name) for name in names]
    await settle()
    return guests


async def test_who_comes_first_is_served_first_and_hears_of_every_step() -> None:
    turnstile, log = Turnstile(1), list[str]()
    guests = await arrive(turnstile, log, "abcd")
    assert (turnstile.active, turnstile.waiting) == (1, 3)
    for guest in guests:
        assert guest.through.is_set()
        await guest.go()
        await settle()
    assert log == ["a", "b", "c", "d"]
    assert [guest.told for guest in guests] == [[], [1], [2, 1], [3, 2, 1]]
    assert (turnstile.active, turnstile.waiting) == (0, 0)


async def test_as_many_pass_at_once_as_there_are_places() -> None:
    turnstile, log = Turnstile(2), list[str]()
    guests = await arrive(turnstile, log, "abc")
    assert [guest.through.is_set() for guest in guests] == [True, True, False]
    assert guests[2].told == [1]
    await guests[1].go()
    await settle()
    assert guests[2].through.is_set()
    assert turnstile.active == 2
    await asyncio.gather(guests[0].go(), guests[2].go())


async def test_who_gives_up_waiting_moves_the_others_up() -> None:
    turnstile, log = Turnstile(1), list[str]()
    first, second, third = await arrive(turnstile, log, "abc")
    second.task.cancel()
    await settle()
    assert (turnstile.active, turnstile.waiting) == (1, 1)
    assert third.told == [2, 1]
    await first.go()
    await third.go()
    assert log == ["a", "c"]


@pytest.mark.parametrize("way", ["cancel", "error", "close"])
async def test_any_way_out_admits_the_next(way: str) -> None:
    """A place that is not given back would block the line for ever."""
    turnstile, log = Turnstile(1), list[str]()

    async def run() -> AsyncGenerator[int]:
        async with turnstile.place() as place:
            async for ahead in place.wait():
                yield ahead
            yield 0
            if way == "error":
                raise ZeroDivisionError
            await asyncio.Event().wait()

    holder = run()
    assert await anext(holder) == 0
    (guest,) = await arrive(turnstile, log, "b")
    assert not guest.through.is_set()
    if way == "close":
        await holder.aclose()
    elif way == "error":
        with pytest.raises(ZeroDivisionError):
            await anext(holder)
    else:
        following = asyncio.ensure_future(anext(holder))
        await settle()
        following.cancel()
    async with asyncio.timeout(LIMIT_S):
        await guest.through.wait()
    await guest.go()
    assert (turnstile.active, turnstile.waiting) == (0, 0)


async def test_a_generator_that_is_closed_while_it_waits_leaves_the_line() -> None:
    turnstile, log = Turnstile(1), list[str]()
    (first,) = await arrive(turnstile, log, "a")
    async with turnstile.place() as place, aclosing(place.wait()) as waiting:
        assert await anext(waiting) == 1
        assert turnstile.waiting == 1
    assert turnstile.waiting == 0
    await first.go()


async def test_a_step_that_is_taken_while_the_reader_is_busy_is_not_lost() -> None:
    """The number changes between two looks of a slow reader, and it is the last look that must not wait."""
    turnstile, log = Turnstile(1), list[str]()
    (first,) = await arrive(turnstile, log, "a")
    async with turnstile.place() as place, asyncio.timeout(LIMIT_S):
        told = []
        async for ahead in place.wait():
            told.append(ahead)
            await first.go()
            await settle()
        assert told == [1]
        assert turnstile.active == 1


async def test_two_loops_stand_in_one_line() -> None:
    turnstile, log = Turnstile(1), list[str]()
    (first,) = await arrive(turnstile, log, "a")
    waiting, done = threading.Event(), threading.Event()

    async def visit() -> list[int]:
        told = []
        async with turnstile.place() as place:
            async for ahead in place.wait():
                told.append(ahead)
                waiting.set()
            log.append("other loop")
        return told

    def other() -> None:
        assert asyncio.run(asyncio.wait_for(visit(), LIMIT_S)) == [1]
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    assert await asyncio.to_thread(waiting.wait, LIMIT_S)
    assert not done.is_set()
    await first.go()
    assert await asyncio.to_thread(done.wait, LIMIT_S)
    thread.join()
    assert log == ["a", "other loop"]
    assert (turnstile.active, turnstile.waiting) == (0, 0)


async def test_a_place_whose_loop_was_closed_does_not_block_the_line() -> None:
    """A thread that dies with its loop never leaves the line by itself."""
    turnstile, log = Turnstile(1), list[str]()
    (first,) = await arrive(turnstile, log, "a")

    def lose() -> Place:
        loop = asyncio.new_event_loop()
        place = turnstile.place()
        loop.run_until_complete(place.__aenter__())
        loop.close()
        return place

    await asyncio.to_thread(lose)
    (last,) = await arrive(turnstile, log, "b")
    assert last.told[-1] == 1
    await first.go()
    async with asyncio.timeout(LIMIT_S):
        await last.through.wait()
    await last.go()
    assert (turnstile.active, turnstile.waiting) == (0, 0)


def abandon(turnstile: Turnstile) -> AsyncGenerator[int]:
    """A run that is through, and whose loop was closed without closing it."""

    async def run() -> AsyncGenerator[int]:
        async with turnstile.place() as place:
            async for ahead in place.wait():
                yield ahead
            yield 0

    loop = asyncio.new_event_loop()
    holder = run()
    assert loop.run_until_complete(anext(holder)) == 0
    loop.close()
    return holder


async def test_an_abandoned_run_whose_loop_was_closed_gives_its_place_back() -> None:
    """Its `__aexit__` never runs, so with one place every later run waited for ever."""
    turnstile, log = Turnstile(1), list[str]()
    holder = await asyncio.to_thread(abandon, turnstile)
    assert turnstile.active == 1
    (guest,) = await arrive(turnstile, log, "b")
    assert guest.told == []
    assert guest.through.is_set()
    await guest.go()
    with contextlib.suppress(StopAsyncIteration):
        await anext(holder)
    assert (turnstile.active, turnstile.waiting) == (0, 0)


async def test_who_waits_already_when_a_loop_is_closed_gets_through() -> None:
    """Nobody joins or leaves any more, and no loop tells that it was closed."""
    turnstile, log = Turnstile(1, look_every_s=0.01), list[str]()
    loop = asyncio.new_event_loop()
    place = turnstile.place()
    await asyncio.to_thread(loop.run_until_complete, place.__aenter__())
    (guest,) = await arrive(turnstile, log, "b")
    assert guest.told == [1]
    loop.close()
    async with asyncio.timeout(LIMIT_S):
        await guest.through.wait()
    assert guest.told == [1]
    await guest.go()
    assert (turnstile.active, turnstile.waiting) == (0, 0)


async def test_a_run_that_nobody_can_continue_holds_no_place() -> None:
    """A loop that stands still for ever is not closed, and the run was dropped with it."""
    turnstile, log = Turnstile(1, look_every_s=0.01), list[str]()
    loop = asyncio.new_event_loop()
    place = turnstile.place()
    await asyncio.to_thread(loop.run_until_complete, place.__aenter__())
    (guest,) = await arrive(turnstile, log, "b")
    assert guest.told == [1]
    del place
    async with asyncio.timeout(LIMIT_S):
        await guest.through.wait()
    await guest.go()
    loop.close()


async def test_a_patient_look_does_not_let_anybody_jump_the_line() -> None:
    turnstile, log = Turnstile(1, look_every_s=0.001), list[str]()
    first, second, third = await arrive(turnstile, log, "abc")
    for _ in range(20):
        turnstile.look()
        await settle()
    assert (log, second.told, third.told) == (["a"], [1], [2])
    for guest in (first, second, third):
        await guest.go()
    assert log == ["a", "b", "c"]


async def test_many_come_and_go_in_any_order_and_none_is_left() -> None:
    turnstile, log = Turnstile(3), list[str]()
    guests = await arrive(turnstile, log, "abcdefghijkl")
    for number, guest in enumerate(guests):
        if number % 3 == 1:
            guest.task.cancel()
        else:
            guest.leave.set()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait([guest.task for guest in guests])
    assert turnstile.active == turnstile.waiting == 0
    assert log == sorted(log)


def test_a_turnstile_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one place"):
        Turnstile(0)
