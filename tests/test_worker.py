"""The thread that runs the models: fair between jobs, and rid of one that nobody waits for."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from specrag.errors import ModelError
from specrag.models.worker import Job, Steps, Worker

ROOT = Path(__file__).resolve().parents[1]
ENDING = """
import sys, threading, time
import torch
from specrag.models.worker import Worker

begun = threading.Event()

def compute():
    begun.set()
    numbers, until = torch.rand(300, 300), time.monotonic() + 2
    while time.monotonic() < until:
        numbers = (numbers @ numbers).clamp(-1, 1)

worker = Worker()
threading.Thread(target=worker.run, args=(compute,), daemon=True).start()
begun.wait()
print("computing", flush=True)
sys.exit(3)
"""
"""A process that ends in the middle of a job."""


class Cost:
    """A clock that the jobs move: a step costs what the job says, not what the machine needs."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def work(name: str, steps: int, log: list[str], clock: Cost, cost: float = 1.0) -> Job[str]:
    def job(_: threading.Event, emit: Callable[[str], None]) -> Steps:
        for _step in range(steps):
            clock.now += cost
            log.append(name)
            emit(name)
            yield

    return job


def gate(opened: threading.Event, started: threading.Event) -> Job[str]:
    """Holds the thread until the test has queued what it wants to queue."""

    def job(_: threading.Event, emit: Callable[[str], None]) -> Steps:
        started.set()
        opened.wait(10)
        emit("gate")
        yield

    return job


async def together(worker: Worker, *jobs: Job[str]) -> list[list[str]]:
    """Run jobs that all stand in line before the first of them begins."""
    opened, started = threading.Event(), threading.Event()

    async def one(job: Job[str]) -> list[str]:
        return [item async for item in worker.stream(job)]

    first = asyncio.create_task(one(gate(opened, started)))
    await asyncio.to_thread(started.wait, 10)
    rest = [asyncio.create_task(one(job)) for job in jobs]
    while worker.pending < 1 + len(jobs):  # noqa: ASYNC110 - the other tasks only have to begin
        await asyncio.sleep(0)
    opened.set()
    await first
    return [await task for task in rest]


@pytest.fixture
def clock() -> Cost:
    return Cost()


async def test_jobs_take_turns(clock: Cost) -> None:
    """First come, first served would let the second wait for all of the first."""
    log: list[str] = []
    worker = Worker(clock=clock)
    await together(worker, *(work(name, 4, log, clock) for name in "abc"))
    worker.close()
    assert [sorted(log[place : place + 3]) for place in range(0, 12, 3)] == [["a", "b", "c"]] * 4


async def test_a_job_with_long_steps_gets_fewer_of_them(clock: Cost) -> None:
    """Fair is the time, not the number of steps: reading a long prompt must not starve decoding."""
    log: list[str] = []
    worker = Worker(clock=clock)
    await together(worker, work("long", 3, log, clock, cost=8), work("short", 16, log, clock, cost=1))
    worker.close()
    first_two = "".join(log).split("long")
    assert len(log) == 19
    assert log.index("long") <= 1
    assert len(first_two[1]) // len("short") in (7, 8, 9)


async def test_a_job_that_starts_later_is_not_starved_and_starves_nobody(clock: Cost) -> None:
    log: list[str] = []
    worker = Worker(clock=clock)
    begun = asyncio.Event()

    async def early() -> None:
        async for _ in worker.stream(work("early", 10**9, log, clock)):
            begun.set()

    running = asyncio.create_task(early())
    await begun.wait()
    late = await worker_list(worker, work("late", 5, log, clock))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    worker.close()
    assert late == ["late"] * 5
    since = log[log.index("late") :]
    assert since[:9].count("late") >= 4, "it takes every other turn from its first step on"
    assert since[:9].count("early") >= 4, "what it has not had before it does not catch up on"


async def test_cancelling_one_job_leaves_the_others_alone(clock: Cost) -> None:
    log: list[str] = []
    worker = Worker(clock=clock)

    async def first_only() -> None:
        async with aclosing(worker.stream(work("gone", 10**9, log, clock))) as stream:
            async for _ in stream:
                break

    kept = asyncio.create_task(worker_list(worker, work("kept", 30, log, clock)))
    await first_only()
    assert await kept == ["kept"] * 30
    while worker.pending:  # noqa: ASYNC110 - a thread ends the last step
        await asyncio.sleep(0.001)
    worker.close()
    assert log.count("gone") < 10**9


async def worker_list(worker: Worker, job: Job[str]) -> list[str]:
    return [item async for item in worker.stream(job)]


async def test_a_waiting_job_that_is_cancelled_never_computes(clock: Cost) -> None:
    log: list[str] = []
    worker = Worker(clock=clock)
    opened, started = threading.Event(), threading.Event()
    holding = asyncio.create_task(worker_list(worker, gate(opened, started)))
    await asyncio.to_thread(started.wait, 10)
    waiting = asyncio.create_task(worker_list(worker, work("never", 3, log, clock)))
    while worker.pending < 2:  # noqa: ASYNC110 - the task only has to begin
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert worker.pending == 1, "it is gone while the other one still computes"
    opened.set()
    await holding
    worker.close()
    assert log == []


async def test_an_error_reaches_the_one_who_asked_and_nobody_else(clock: Cost) -> None:
    log: list[str] = []

    def broken(_: threading.Event, __: Callable[[str], None]) -> Steps:
        yield
        raise ValueError("broken")

    worker = Worker(clock=clock)
    kept = asyncio.create_task(worker_list(worker, work("kept", 5, log, clock)))
    with pytest.raises(ValueError, match="broken"):
        await worker_list(worker, broken)
    assert await kept == ["kept"] * 5
    worker.close()


async def test_a_closed_worker_takes_no_job(clock: Cost) -> None:
    worker = Worker(clock=clock)
    worker.close()
    with pytest.raises(ModelError, match="closed"):
        await worker.call(work("x", 1, [], clock))
    with pytest.raises(ModelError, match="closed"):
        await asyncio.to_thread(worker.run, lambda: 1)


async def test_one_short_job_after_another_is_charged_for_all_of_them(clock: Cost) -> None:
    """A file that is indexed batch by batch must not take nine tenths of the time from a draft."""
    log: list[str] = []
    worker = Worker(clock=clock)
    begun, done = threading.Event(), threading.Event()

    def draft(_: threading.Event, emit: Callable[[str], None]) -> Steps:
        begun.set()
        for _step in range(100):
            while worker.pending < 2:  # the next batch always waits already, as a busy indexer's would
                done.wait(0.001)
            clock.now += 1
            emit(f"draft, after {log.count('batch')} batches")
            yield

    def feed() -> None:
        begun.wait(10)  # what is done before anybody else is there takes nothing from anybody
        while not done.is_set():
            worker.run(batch)

    def batch() -> None:
        clock.now += 10
        log.append("batch")

    feeding = threading.Thread(target=feed)
    feeding.start()
    last = (await worker_list(worker, draft))[-1]
    done.set()
    await asyncio.to_thread(feeding.join, 10)
    worker.close()
    batches = int(last.split()[2])
    assert 8 <= batches <= 12, "as much time as the draft: 10 batches of 10 against 100 steps of 1"


async def test_newcomers_in_a_row_do_not_starve_a_long_job(clock: Cost) -> None:
    """Two that take turns in arriving always found a level that the long job had passed."""
    log: list[str] = []
    worker = Worker(clock=clock)
    long = asyncio.create_task(worker_list(worker, work("long", 20, log, clock)))

    async def arrive() -> None:
        while not long.done():
            await asyncio.create_task(worker_list(worker, work("new", 3, log, clock)))

    arriving = [asyncio.create_task(arrive()) for _ in range(2)]
    await long
    await asyncio.gather(*arriving)
    worker.close()
    assert log.count("new") <= 3 * log.count("long") + 12


async def test_a_listener_whose_loop_is_gone_does_not_end_the_thread() -> None:
    """Every later run of the process would wait for ever."""
    worker = Worker()
    opened, started = threading.Event(), threading.Event()

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        stream = worker.stream(gate(opened, started))
        begun = loop.create_task(anext(stream))
        loop.call_later(0.05, loop.stop)
        loop.run_forever()
        begun.cancel()
        loop.close()

    await asyncio.to_thread(abandon)
    opened.set()
    assert await asyncio.wait_for(asyncio.to_thread(worker.run, lambda: 5), 10) == 5
    worker.close()


async def test_a_run_in_flight_is_told_that_the_models_were_closed() -> None:
    """It must not look like one that came to its end."""
    worker = Worker()
    opened, started = threading.Event(), threading.Event()
    running = asyncio.create_task(worker_list(worker, gate(opened, started)))
    await asyncio.to_thread(started.wait, 10)
    worker.close()
    opened.set()
    with pytest.raises(ModelError, match="closed"):
        await running


def test_work_from_any_thread_is_done_on_the_one_thread() -> None:
    """Two threads that compute cost each other their helpers: decoding was 1.6 times slower."""
    worker = Worker()
    here = worker.run(threading.current_thread)
    elsewhere: list[threading.Thread] = []
    other = threading.Thread(target=lambda: elsewhere.append(worker.run(threading.current_thread)))
    other.start()
    other.join(10)
    assert elsewhere == [here]
    assert here is not threading.current_thread()
    assert worker.run(lambda: worker.run(threading.current_thread)) is here, "work may ask for more work"
    worker.close()


def test_an_error_of_the_work_is_raised_where_it_was_asked_for() -> None:
    worker = Worker()
    with pytest.raises(ZeroDivisionError):
        worker.run(lambda: 1 // 0)
    assert worker.run(lambda: 7) == 7
    worker.close()


async def test_work_that_waits_when_the_worker_closes_is_refused() -> None:
    worker = Worker()
    opened, started = threading.Event(), threading.Event()
    holding = asyncio.create_task(worker_list(worker, gate(opened, started)))
    await asyncio.to_thread(started.wait, 10)
    waiting = asyncio.create_task(asyncio.to_thread(worker.run, lambda: 1))
    while worker.pending < 2:  # noqa: ASYNC110 - the thread only has to begin
        await asyncio.sleep(0)
    worker.close()
    opened.set()
    with pytest.raises(ModelError, match="closed"):
        await waiting
    with pytest.raises(ModelError, match="closed"):
        await holding


def test_a_process_that_ends_while_a_tensor_is_computed_ends_well() -> None:
    """Ctrl-C during `specrag eval` ended now and then with SIGABRT instead of its exit status."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (3, "computing\n"), ended.stderr
