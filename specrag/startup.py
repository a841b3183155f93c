"""What happens between the start of the server and the first question, and how far it is.

The page is up at once; weights, store, sample and models follow in a thread. Each step is told to whoever
looks (`state`) and to `tell`, and a failure is a sentence that stays until the next attempt. A server that is
away is asked again by itself, so whoever starts everything at once need not mind the order.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from specrag.build import Parts
from specrag.config import Settings
from specrag.errors import ServerUnreachable, SpecragError, StoreUnreachable
from specrag.models.weights import Progress
from specrag.sample import ensure_sample


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupState:
    """How far the start is. `fraction` is None where the length of a step is not known."""

    message: str
    fraction: float | None = None
    ready: bool = False
    failed: bool = False
    waiting: bool = False
    """It failed because a server is away, and goes on by itself when the server is there."""


def _ignore(_state: StartupState) -> None:
    """The listener of someone who does not care."""


_AGAIN_S = 3.0
"""How often a server that is away is asked again."""


class Startup:
    """Prepares `parts` in the background. `begin` again tries again after a failure."""

    def __init__(self, settings: Settings, *, tell: Callable[[StartupState], None] = _ignore) -> None:
        self.settings = settings
        self._tell = tell
        self._state = StartupState(message="Starting")
        self._ended = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.parts = Parts(settings, progress=self._weights_progress)

    @property
    def state(self) -> StartupState:
        """The newest state."""
        return self._state

    def begin(self) -> None:
        """Start, or start again after a failure; does nothing while it runs or when it is done."""
        with self._lock:
            if self._state.ready or (self._thread is not None and self._thread.is_alive()):
                return
            self._ended.clear()
            self._set(StartupState(message="Starting"))
            self._thread = threading.Thread(target=self._prepare, name="specrag-startup", daemon=True)
            self._thread.start()

    def wait(self, timeout: float | None = None) -> StartupState:
        """Wait until the start is done or has failed."""
        self._ended.wait(timeout)
        return self._state

    def close(self) -> None:
        """Wait for no server any more."""
        self._closed.set()

    def _prepare(self) -> None:
        try:
            for message, step in self._steps():
                self._set(StartupState(message=message))
                self._patiently(step)
        except SpecragError as error:
            self._set(StartupState(message=str(error), failed=True))
        except Exception as error:  # what it says may hold a secret, so only the log has it
            self._set(
                StartupState(
                    message=f"The start failed ({type(error).__name__}); the log says more.", failed=True
                )
            )
            raise
        else:
            self._set(StartupState(message="Ready", fraction=1.0, ready=True))
        finally:
            self._ended.set()

    def _patiently(self, step: Callable[[], object]) -> None:
        """Take a step, and again and again while a server that it needs is away."""
        while True:
            try:
                step()
            except (ServerUnreachable, StoreUnreachable) as error:
                self._set(StartupState(message=f"{error} Trying again every {_AGAIN_S:g} s.", waiting=True))
                if self._closed.wait(_AGAIN_S):
                    raise
            else:
                return

    def _steps(self) -> list[tuple[str, Callable[[], object]]]:
        parts = self.parts
        return [
            ("Looking for the embedder's weights", lambda: parts.embedder),
            ("Opening the document store", lambda: parts.store),
            ("Reading the sample collection", lambda: ensure_sample(parts.indexer, self._sample_progress)),
            ("Putting the kept files in order", parts.sweep_originals),
            ("Opening the upload queue", lambda: parts.jobs),
            ("Opening the collections", lambda: (parts.library, parts.viewer, parts.reindexing)),
            ("Looking for the drafter's weights", lambda: parts.drafter),
            ("Loading the verifier", lambda: parts.verifier),
            (
                "Opening the traces",
                lambda: (parts.live_export, parts.history, parts.comparisons, parts.trials),
            ),
            ("Putting the pipeline together", lambda: parts.speculative),
        ]

    def _weights_progress(self, progress: Progress) -> None:
        fraction = progress.done / progress.total if progress.total else None
        self._set(StartupState(message=progress.step[:1].upper() + progress.step[1:], fraction=fraction))

    def _sample_progress(self, done: int, total: int) -> None:
        self._set(StartupState(message="Reading the sample collection", fraction=done / max(total, 1)))

    def _set(self, state: StartupState) -> None:
        self._state = state
        self._tell(state)
