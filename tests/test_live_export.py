"""Runs on their way to a collector: they arrive whole, and a collector that does not answer costs nothing."""

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from specrag.build import Parts
from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Request
from specrag.tracing.export.openinference import spans_of
from specrag.tracing.live_export import WAITING, LiveExport, address_of, headers_of, live_export_of
from tests.collector import Collector, collector
from tests.test_export_texts import planted
from tests.test_speculative import QUESTION, extract, judge
from tests.toys import filled_store, pipeline
from tests.ui_traces import DISPUTED, SELECTED


@contextmanager
def sending(to: Collector, headers: str = "", *, texts: bool = True) -> Iterator[LiveExport]:
    export = LiveExport(address_of(to.address), headers_of(headers), texts=texts, pauses_s=(0.01, 0.01))
    try:
        yield export
    finally:
        to.hold.set()
        export.close()


def test_a_run_arrives_with_all_its_spans() -> None:
    with collector() as there, sending(there, "authorization=Basic%20c2VjcmV0,x-project=a") as export:
        export.sent(SELECTED, ())
        there.wait()
        export.close()
        assert (export.delivered, export.dropped) == (1, 0)
    assert there.paths == ["/v1/traces"]
    assert there.headers[0]["authorization"] == "Basic c2VjcmV0"
    assert there.headers[0]["content-type"] == "application/x-protobuf"
    assert {span.span_id for span in there.spans} == {span.span_id for span in spans_of(SELECTED)}
    assert there.spans[0].name == "specrag speculative"


def test_without_texts_no_word_is_sent() -> None:
    trace, words = planted()
    with collector() as there, sending(there, texts=False) as export:
        export.sent(trace, ())
        there.wait()
    sent = str(there.requests[0])
    assert "specrag.score.combined" in sent
    assert [word for word in words if word in sent] == []


def test_a_collector_that_hangs_does_not_hold_up_who_sends(caplog: pytest.LogCaptureFixture) -> None:
    """A run would end late, or memory would fill with runs that wait."""
    with collector() as there, sending(there) as export:
        there.hold.clear()
        started = time.perf_counter()
        for _ in range(WAITING + 50):
            export.sent(SELECTED, ())
        assert time.perf_counter() - started < 2
        assert export.dropped >= 49
    assert len(caplog.records) <= 3


def test_a_collector_that_is_away_is_told_once_and_its_return_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with collector() as there, sending(there) as export:
        there.answers = [503] * 9
        for _ in range(3):
            export.sent(SELECTED, ())
        there.wait(9)
        export.sent(DISPUTED, ())
        there.wait()
        export.close()
        assert (export.delivered, export.dropped) == (1, 3)
    where = f"the collector at {there.address[7:]}"
    assert [record.message for record in caplog.records] == [
        f"runs are not sent to {where}: it answers with status 503 (SPECRAG_OTLP_ENDPOINT)",
        f"runs are sent to {where} again; 3 were lost so far",
    ]


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (401, 1), (404, 1), (302, 1), (429, 3), (503, 3)])
def test_only_what_may_pass_is_tried_again(status: int, tries: int) -> None:
    with collector() as there, sending(there) as export:
        there.answers = [status] * 3
        export.sent(SELECTED, ())
        there.wait(tries)
        export.close()
        assert (export.delivered, export.dropped) == (0, 1)
        assert len(there.requests) == tries


def test_spans_that_are_refused_are_lost_runs() -> None:
    reply = ExportTraceServiceResponse()
    reply.partial_success.rejected_spans = 3
    with collector() as there, sending(there) as export:
        there.reply = reply.SerializeToString()
        export.sent(SELECTED, ())
        there.wait()
        export.close()
        assert (export.delivered, export.dropped) == (0, 1)


def test_an_answer_in_another_form_is_taken_for_a_yes() -> None:
    """Some answer {} as JSON; the thread that sends must not end of it."""
    with collector() as there, sending(there) as export:
        there.reply = b'{"partialSuccess": {}}'
        export.sent(SELECTED, ())
        export.sent(DISPUTED, ())
        there.wait(2)
        export.close()
        assert export.delivered == 2


def test_closing_sends_what_is_in_line_and_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    with collector() as there, sending(there) as export:
        for _ in range(20):
            export.sent(SELECTED, ())
        export.close(timeout_s=20)
        assert export.delivered == 20
        export.sent(SELECTED, ())
    assert len(there.requests) == 20, "after closing nothing is taken"
    with collector() as there, sending(there) as export:
        there.hold.clear()
        export.sent(SELECTED, ())
        export.sent(SELECTED, ())
        there.wait()
        started = time.perf_counter()
        export.close(timeout_s=0.2)
        assert time.perf_counter() - started < 2
    assert "1 run could not be sent" in caplog.text


def test_nobody_listens_and_no_secret_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    export = LiveExport(f"http://127.0.0.1:{port}/v1/traces", {"authorization": "hush"}, pauses_s=())
    export.sent(SELECTED, ())
    export.close(timeout_s=20)
    assert export.dropped == 1
    assert "it does not answer (ConnectError)" in caplog.text
    assert "hush" not in caplog.text


def test_settings_make_it_and_none_make_none() -> None:
    assert live_export_of(load_settings({})) is None
    with collector() as there:
        settings = load_settings({}, otlp_endpoint=there.address, otlp_headers="a=b", otlp_texts=False)
        parts = Parts(settings)
        export = parts.live_export
        assert export is not None
        export.sent(SELECTED, ())
        parts.close()
        assert there.headers[0]["a"] == "b"
        assert SELECTED.question not in str(there.requests)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("http://localhost:6006/", "http://localhost:6006/v1/traces"),
        ("https://a.example/api/public/otel", "https://a.example/api/public/otel/v1/traces"),
        ("https://a.example/v1/traces", "https://a.example/v1/traces"),
        ("http://[::1]:4318/v1/traces/", "http://[::1]:4318/v1/traces"),
    ],
)
def test_the_address_may_be_the_collector_or_its_path(given: str, address: str) -> None:
    assert address_of(given) == address


@pytest.mark.parametrize(
    "given", ["localhost:4318", "grpc://a:4317", "http://", "http://a:99999", "http://a:b", "file:///x"]
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="SPECRAG_OTLP_ENDPOINT: it has to be an address"):
        address_of(given)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="SPECRAG_OTLP_HEADERS") as refused:
        address_of("http://me:hush@a.example")
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("given", ["hush", "=hush", "a b=hush", "a=hush%0d%0ax", "a=b,hush"])
def test_headers_that_are_none_are_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(UsageError, match=r"its part [12] is not name=value") as refused:
        headers_of(given)
    assert "hush" not in str(refused.value)


async def test_a_run_of_the_page_is_sent_when_it_is_kept(tmp_path: Path) -> None:
    """The whole way: a run that nobody sends by hand, under the settings of a process."""
    store = filled_store()
    made = pipeline(store, ScriptedModel(extract, judge=judge), drafts=2)
    with collector() as there:
        parts = Parts(load_settings({}, home=tmp_path, otlp_endpoint=there.address))
        request = Request(question=QUESTION, collection="documents", run_id="r1")
        parts.runs.start(made, request)
        async with aclosing(parts.runs.follow("r1", every_s=0.05)) as traces:
            async for _ in traces:
                pass
        await asyncio.to_thread(there.wait)
        await parts.runs.close()
        parts.close()
        assert {span.span_id for span in there.spans} == {
            span.span_id for span in spans_of(parts.traces.load("r1"))
        }
    store.close()
