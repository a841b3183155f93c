"""Kept runs on their way to an OpenTelemetry collector.

A collector is a guest: a run never waits for it. Runs are put into a short line that one thread works off;
when the collector is slow or away the line is full, and what does not fit is counted and dropped. The log
says once that it is away, and once that it is back. Secrets of the address and of the headers are never said.
"""

import logging
import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from specrag.config import Settings
from specrag.errors import UsageError
from specrag.events import Event
from specrag.tracing.export.openinference import spans_of
from specrag.tracing.export.otlp import to_request
from specrag.tracing.export.redact import without_texts
from specrag.tracing.trace import Trace

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)

WAITING: Final = 64
"""Runs in line; a collector that is so far behind will not catch up."""
FLUSH_S: Final = 3.0
_TIMEOUT_S: Final = 10.0
_TRANSIENT: Final = frozenset({408, 429, 502, 503, 504})
_PATH: Final = "/v1/traces"


def live_export_of(settings: Settings) -> "LiveExport | None":
    """What sends kept runs to the collector of the settings; None if there is none.

    Raises:
        UsageError: the address or the headers cannot be used.
    """
    if not settings.otlp_endpoint:
        return None
    given = settings.otlp_headers.get_secret_value() if settings.otlp_headers else ""
    return LiveExport(address_of(settings.otlp_endpoint), headers_of(given), texts=settings.otlp_texts)


def address_of(endpoint: str) -> str:
    """Where traces go: the endpoint itself if it names their path, else that path below it.

    Raises:
        UsageError: it is no address over HTTP, or holds a password, which would be said in logs.
    """
    try:
        parts = urlsplit(endpoint.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError("SPECRAG_OTLP_ENDPOINT: it has to be an address such as http://localhost:4318.")
    if parts.username or parts.password:
        raise UsageError("SPECRAG_OTLP_ENDPOINT: put the password into SPECRAG_OTLP_HEADERS.")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(_PATH) else path + _PATH, fragment="").geturl()


def headers_of(text: str) -> dict[str, str]:
    """Headers from name=value with commas between; values may be percent-encoded, as OpenTelemetry has it.

    Raises:
        UsageError: a part is not of that form; what it holds is not said.
    """
    headers: dict[str, str] = {}
    for number, part in enumerate(filter(None, (one.strip() for one in text.split(","))), 1):
        name, equals, value = part.partition("=")
        value = unquote(value.strip())
        sound = name.strip().replace("-", "").replace("_", "").isalnum() and name.isascii()
        if not (equals and sound and value.isascii() and value.isprintable()):
            raise UsageError(f"SPECRAG_OTLP_HEADERS: its part {number} is not name=value.")
        headers[name.strip()] = value
    return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What came of one request; `problem` is empty if the collector took the run."""

    problem: str = ""
    again: bool = False
    """Whether another try may help."""


class LiveExport:
    """Sends runs to one collector, from a thread of its own that begins with the first of them."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        *,
        texts: bool = True,
        pauses_s: Sequence[float] = (1.0, 3.0),
    ) -> None:
        """`pauses_s` are the waits before each further try of a run, in seconds."""
        self._address, self._headers, self._texts = address, dict(headers), texts
        self._pauses_s = tuple(pauses_s)
        self._line: queue.Queue[Trace | None] = queue.Queue(WAITING)
        self._closing = threading.Event()
        self._making = threading.Lock()
        self._thread: threading.Thread | None = None
        self._away = False
        self.delivered = 0
        """Runs that the collector took."""
        self.dropped = 0
        """Runs that it did not take, or that did not fit into the line."""

    def sent(self, trace: Trace, events: Sequence[Event] = ()) -> None:  # noqa: ARG002 - as runs are kept
        """Take a run that was kept; returns at once."""
        with self._making:
            if self._closing.is_set():
                return
            try:
                self._line.put_nowait(trace)
            except queue.Full:
                self._drop("it is too slow")
                return
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="specrag-otlp", daemon=True)
                self._thread.start()

    def close(self, timeout_s: float = FLUSH_S) -> None:
        """Send what is in line, for at most so many seconds."""
        with self._making:
            self._closing.set()
            thread = self._thread
        if thread is None:
            return
        with suppress(queue.Full):
            self._line.put_nowait(None)
        thread.join(timeout_s)
        left = sum(trace is not None for trace in list(self._line.queue))
        if left:
            self.dropped += left
            lost = f"{left} {'run' if left == 1 else 'runs'}"
            _log.warning("%s could not be sent to the collector at %s any more", lost, self._place)

    @property
    def _place(self) -> str:
        """The collector as a log may name it."""
        return urlsplit(self._address).netloc

    def _work(self) -> None:
        import httpx

        headers = {**self._headers, "content-type": "application/x-protobuf"}
        with httpx.Client(headers=headers, timeout=_TIMEOUT_S) as client:
            while not (self._closing.is_set() and self._line.empty()):
                trace = self._line.get()
                if trace is not None:
                    self._deliver(client, trace)

    def _deliver(self, client: "httpx.Client", trace: Trace) -> None:
        told = trace if self._texts else without_texts(trace)[0]
        data = to_request(spans_of(told)).SerializeToString()
        outcome = self._post(client, data)
        for pause in self._pauses_s:
            if not outcome.again or self._closing.wait(pause):
                break
            outcome = self._post(client, data)
        if outcome.problem:
            self._drop(outcome.problem)
        else:
            self._took()

    def _post(self, client: "httpx.Client", data: bytes) -> _Outcome:
        import httpx

        try:
            answer = client.post(self._address, content=data)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _Outcome(problem=f"it does not answer ({type(error).__name__})", again=True)
        if answer.is_success:
            return _refused(answer.content)
        return _Outcome(
            problem=f"it answers with status {answer.status_code}", again=answer.status_code in _TRANSIENT
        )

    def _drop(self, problem: str) -> None:
        """Count a run that is lost; only the first of many is said."""
        self.dropped += 1
        if not self._away:
            self._away = True
            _log.warning(
                "runs are not sent to the collector at %s: %s (SPECRAG_OTLP_ENDPOINT)", self._place, problem
            )

    def _took(self) -> None:
        self.delivered += 1
        if self._away:
            self._away = False
            _log.warning(
                "runs are sent to the collector at %s again; %d were lost so far", self._place, self.dropped
            )


def _refused(content: bytes) -> _Outcome:
    """A collector may take a request and refuse what is in it."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    unreadable = import_module("google.protobuf.message").DecodeError  # the package has no types
    try:
        partial = ExportTraceServiceResponse.FromString(content).partial_success
    except unreadable:  # an answer in another form; its status has said that all is well
        return _Outcome()
    if partial.rejected_spans:
        return _Outcome(problem=f"it refuses {partial.rejected_spans} spans of a run")
    return _Outcome()
