"""Servers that run for long: one crash does not take the others away, and nobody is left without being told.

The processes are toys that listen as vLLM does (`toy_vllm`).
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue

import pytest

from specrag.errors import ModelError, UsageError
from specrag.vllm.choice import Choice, Model
from specrag.vllm.machine import ensure_free, free_ports
from specrag.vllm.plan import make_plan
from specrag.vllm.server import VllmServer
from specrag.vllm.servers import VllmServers
from tests.toy_vllm import known, make_toy

WAIT_S = 30.0


def three_free_ports() -> tuple[int, int]:
    """The first of two that follow each other, and another one."""
    other, *found = free_ports(20)
    for port in found:
        with suppress(UsageError):
            ensure_free("127.0.0.1", port + 1)
            if port + 1 != other:
                return port, other
    pytest.fail("no two free ports follow each other")


class Pool:
    """Two drafters and a verifier, and what is told about them."""

    def __init__(self, folder: Path) -> None:
        self.told: Queue[str] = Queue()
        model = Model(source="m", name="m", local=True)
        first, other = three_free_ports()
        plan = make_plan(
            Choice(
                drafter=model,
                verifier=model,
                drafter_port=first,
                verifier_port=other,
                replicas=2,
            )
        )
        self.servers = VllmServers(plan, python=make_toy(folder), logs=folder, tell=self.told.put)

    def fail_from_now_on(self) -> None:
        """Let every server end at its next start."""
        (self.servers.drafter.log.parent / "toy-fails").touch()

    def wait_for(self, text: str) -> str:
        """What was told with this in it; a test fails that waits in vain."""
        while text not in (told := self.told.get(timeout=WAIT_S)):
            pass
        return told


@contextmanager
def watched(pool: Pool) -> Iterator[Future[None]]:
    with ThreadPoolExecutor(1) as thread, pool.servers:
        try:
            yield thread.submit(pool.servers.watch, 0.1)
        finally:  # or the watch would start again what is stopped now
            pool.fail_from_now_on()


def crash(server: VllmServer) -> None:
    os.kill(known(server)["pids"][0], signal.SIGKILL)


def test_servers_come_back_once_and_a_role_that_has_none_left_ends_the_watch(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    drafter, other = pool.servers.of("drafter")
    with watched(pool) as watch:
        crash(drafter)
        assert "was ended by SIGKILL" in pool.wait_for("starting again")
        assert drafter.url in pool.wait_for("ready again")
        assert drafter.running() == 3

        crash(drafter)
        assert drafter.url in pool.wait_for("going on without")
        assert other.running() == pool.servers.verifier.running() == 3
        assert not watch.done()

        pool.fail_from_now_on()
        crash(other)
        with pytest.raises(ModelError, match=r"drafter's server at .* ended with status 3") as told:
            watch.result(WAIT_S)
    assert "ValueError: this toy does not know the architecture" in str(told.value)
