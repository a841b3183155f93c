"""A small OpenTelemetry collector: it takes spans over HTTP as protobuf, or behaves as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector(ThreadingHTTPServer):
    """What came in, and what goes out."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.daemon_threads = True
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answers: list[int] = []
        """Statuses of the next answers; 200 when there are no more."""
        self.reply = ExportTraceServiceResponse().SerializeToString()
        self.hold = threading.Event()
        """Answers wait for it."""
        self.hold.set()
        self.came = threading.Semaphore(0)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait(self, count: int = 1) -> None:
        """Until so many further requests have come."""
        for _ in range(count):
            assert self.came.acquire(timeout=20), "nothing came to the collector"

    @property
    def spans(self) -> list[Any]:
        """All spans that came."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        collector = self.server
        collector.requests.append(ExportTraceServiceRequest.FromString(body))
        collector.headers.append({name.lower(): value for name, value in self.headers.items()})
        collector.paths.append(self.path)
        collector.came.release()
        collector.hold.wait(30)
        status = collector.answers.pop(0) if collector.answers else 200
        self.send_response(status)
        self.send_header("content-length", str(len(collector.reply)))
        self.end_headers()
        self.wfile.write(collector.reply)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector that listens for as long as the block."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
