"""`python -m specrag.ingest.process.child` reads files for another process, which may kill this one any time.

Requests come in on standard input and answers go out on what was standard output, as `frames`; whatever a
library prints goes to standard error. The process ends when its input does, so it never outlives the one that
started it, and an alarm ends it even if a library never comes back.
"""

import contextlib
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

from specrag.config import Settings, load_settings
from specrag.errors import DocumentError
from specrag.ingest.process.frames import Message, packed_document, packed_image, receive, send

Work: TypeAlias = Callable[[Message, Settings, Callable[[int, int], None]], Message]
"""Answers one request; called with the request, the limits, and whom to tell of each page."""

_REQUEST_LIMIT = 100_000_000
_LATE_S = 2.0
"""So much later than its parent, who has words for it, a child ends itself."""
_GRACE_S = 1.0
"""Time for an orderly end."""
_MEGABYTE = 1_000_000


def serve(works: Mapping[str, Work]) -> None:
    """Answer requests until standard input ends."""
    answers = _private_output()
    requests: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, requests), daemon=True).start()
    first = requests.get()
    if first is None:
        return
    settings = load_settings(**first["settings"])
    _limit(settings)
    send(answers, {"ready": True})
    while (request := requests.get()) is not None:
        _alarm(settings.read_timeout_s)
        send(answers, _answer(works[request["do"]], request, settings, answers))
        _alarm(None)


def _answer(work: Work, request: Message, settings: Settings, answers: IO[bytes]) -> Message:
    def on_page(done: int, total: int) -> None:
        _alarm(settings.read_timeout_s)
        send(answers, {"page": [done, total]})

    try:
        return work(request, settings, on_page)
    except DocumentError as error:
        return {"refused": [error.reason, str(error)]}
    except MemoryError:
        return {"memory": True}
    except Exception:  # noqa: BLE001 - files hold what no library foresaw; the other side logs it
        return {"failed": traceback.format_exc()}


def _private_output() -> IO[bytes]:
    """What was standard output, for answers alone; prints go to standard error from now on."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _listen(stream: IO[bytes], requests: "queue.SimpleQueue[Message | None]") -> None:
    while (request := receive(stream, _REQUEST_LIMIT)) is not None:
        requests.put(request)
    requests.put(None)
    time.sleep(_GRACE_S)
    os._exit(0)  # whatever the main thread is doing: nobody waits for it any more


def _alarm(seconds: float | None) -> None:
    """Ends the process by default, and does so even while a library holds the interpreter."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0 if seconds is None else seconds + _LATE_S)


def _limit(settings: Settings) -> None:
    """Address space for what is loaded already and for the memory that reading may take; no core dumps."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    with contextlib.suppress(OSError, ValueError):  # not everywhere, or a lower limit is set already
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = _address_space() + settings.read_memory_mb * _MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _read(request: Message, settings: Settings, on_page: Callable[[int, int], None]) -> Message:
    from specrag.ingest.loaders import read

    path, name = Path(request["path"]), request["name"]
    return packed_document(read(path, name, settings, password=request["password"], on_page=on_page))


def _draw(request: Message, settings: Settings, _on_page: Callable[[int, int], None]) -> Message:
    from specrag.ingest.pages.page_images import page_image

    wanted: dict[str, Any] = {
        key: request[key] for key in ("number", "password", "passage", "evidence", "width")
    }
    return packed_image(page_image(Path(request["path"]), settings, **wanted))


if __name__ == "__main__":
    serve({"read": _read, "draw": _draw})
