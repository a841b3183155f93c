"""One server under watch: if it ends by itself it is started again, once; if that fails too it is lost."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeAlias, assert_never

from specrag.errors import ModelError, ServerUnreachable, UsageError
from specrag.vllm.server import READY_S, VllmServer

PAUSE_S = 3.0
"""Before a second start: what the first one held, such as memory of a GPU, is given back a little later."""

State: TypeAlias = Literal["running", "pausing", "starting", "lost"]


class Watched:
    """A server that was ready once. `tell` hears when it ends and when it is back."""

    def __init__(self, server: VllmServer, *, tell: Callable[[str], None], pause_s: float = PAUSE_S) -> None:
        self.server = server
        self.state: State = "running"
        self.error: ModelError | None = None
        """Why it is lost."""
        self._tell = tell
        self._pause_s = pause_s
        self._started_again = False
        self._until = 0.0

    def look(self, *, may_start: bool) -> None:
        """See how it is, and do what is due. `may_start` is false while another must be alone on a GPU."""
        try:
            self._look(may_start=may_start)
        except (ModelError, ServerUnreachable, UsageError) as error:
            self._ended(str(error))

    def _look(self, *, may_start: bool) -> None:
        match self.state:
            case "running":
                self.server.ensure_alive()
            case "pausing":
                if may_start and time.monotonic() >= self._until:
                    self.server.start()
                    self._go_to("starting", READY_S)
            case "starting":
                self._see_whether_ready()
            case "lost":
                pass
            case _:
                assert_never(self.state)

    def _see_whether_ready(self) -> None:
        if self.server.check():
            self.state = "running"
            self._tell(f"{self.server.plan.role}: ready again at {self.server.url}")
        elif time.monotonic() > self._until:
            raise ServerUnreachable(f"Not ready within {READY_S:.0f} s; see {self.server.log}.")

    def _ended(self, why: str) -> None:
        with suppress(ModelError):  # then its port is not free either, and the second start says so
            self.server.kill()  # workers outlive a crash, and hold its memory
        if self._started_again:
            self.state = "lost"
            self.error = ModelError(why)
            return
        self._started_again = True
        self._tell(f"{why}\n{self.server.plan.role} at {self.server.url}: starting again")
        self._go_to("pausing", self._pause_s)

    def _go_to(self, state: State, seconds: float) -> None:
        self.state = state
        self._until = time.monotonic() + seconds
