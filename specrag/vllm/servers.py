"""All servers of a plan, started together and ended together: none of them outlives this object's `stop`."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from specrag.errors import ServerUnreachable
from specrag.vllm.flags import Role
from specrag.vllm.plan import Plan
from specrag.vllm.server import LOOK_EVERY_S, READY_S, VllmServer
from specrag.vllm.watch import PAUSE_S, Watched

TELL_EVERY_S = 10.0


def silent(text: str) -> None:
    """The listener of someone who does not care."""


class VllmServers:
    """The processes of a plan.

    As a context manager it starts them, waits for their answers, and stops them. `keys` go by role;
    `logs` is the folder of their logs; `tell` hears how far the start is.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        python: Path,
        logs: Path,
        keys: Mapping[Role, str] | None = None,
        tell: Callable[[str], None] = silent,
    ) -> None:
        self.plan = plan
        self._tell = tell
        self.all = tuple(
            VllmServer(
                server,
                python=python,
                log=logs / f"{server.role}-{server.port}.log",
                key=(keys or {}).get(server.role),
            )
            for server in plan.servers
        )

    def of(self, role: Role) -> tuple[VllmServer, ...]:
        """The servers of a role; none, if the plan has none."""
        return tuple(server for server in self.all if server.plan.role == role)

    @property
    def drafter(self) -> VllmServer:
        """The first server of the drafter, of which there is one."""
        return self.of("drafter")[0]

    @property
    def verifier(self) -> VllmServer:
        """The server of the verifier, of which there is one."""
        return self.of("verifier")[0]

    def start(self, timeout_s: float = READY_S) -> None:
        """Start all and wait until all answer; if one fails, none is left.

        Raises:
            UsageError, ModelError, ServerUnreachable: as a server's `start` and `wait_ready` do.
        """
        batches = [[server] for server in self.all] if self.plan.in_turn else [list(self.all)]
        try:
            for batch in batches:
                for server in batch:
                    server.start()
                    self._tell(f"{server.plan.role}: starting at {server.url}, log in {server.log}")
                self._wait(batch, timeout_s)
        except BaseException:
            self.stop()
            raise

    def watch(self, pause_s: float = PAUSE_S) -> None:
        """Wait until a role has no server left, which is an error.

        A server that ends by itself is started again, once, after `pause_s`; while others of its role go on,
        it may also stay away.

        Raises:
            ModelError: with the last lines of the log of the last one that ended.
        """
        watched = [Watched(server, tell=self._tell, pause_s=pause_s) for server in self.all]
        while True:
            for one in watched:
                self._look(one, watched)
            time.sleep(LOOK_EVERY_S)

    def _look(self, one: Watched, watched: list[Watched]) -> None:
        if one.state == "lost":
            return
        alone = self.plan.in_turn and any(other.state == "starting" for other in watched)
        one.look(may_start=not alone)
        if one.error is None:
            return
        role = one.server.plan.role
        if all(other.state == "lost" for other in watched if other.server.plan.role == role):
            raise one.error
        self._tell(f"{one.error}\n{role}: going on without the server at {one.server.url}")

    def stop(self) -> None:
        """Stop all, at the same time; no process is left, whatever goes wrong with one of them."""
        with ExitStack() as stopping:
            for server in self.all:
                stopping.callback(server.stop)
            for server in self.all:
                server.ask_to_stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait(self, batch: Iterable[VllmServer], timeout_s: float) -> None:
        began = told = time.monotonic()
        waiting = list(batch)
        while waiting:
            for server in [one for one in waiting if one.check()]:
                waiting.remove(server)
                self._tell(f"{server.plan.role}: ready after {time.monotonic() - began:.0f} s")
            now = time.monotonic()
            names = ", ".join(server.plan.role for server in waiting)
            if waiting and now - began > timeout_s:
                raise ServerUnreachable(f"Not ready within {timeout_s:.0f} s: {names}; see {waiting[0].log}.")
            if waiting and now - told > TELL_EVERY_S:
                told = now
                self._tell(f"{names}: still starting, {now - began:.0f} s")
            if waiting:
                waiting[0].pause(LOOK_EVERY_S)
