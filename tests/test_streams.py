"""Streams that are over: gradio's handler is cancelled by a disconnect, and must not be when it has finished."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
from gradio.server_messages import CloseStreamMessage
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from specrag.ui.streams import WholeStreams

OVER = 'data: {"msg":"close_stream","event_id":null}\n\n'
GOES_ON = 'data: {"msg":"heartbeat"}\n\n'
QUOTED = 'data: {"msg":"process_generating","output":{"data":["close_stream"]}}\n\n'


async def left_after(first: str, path: str = "/gradio_api/queue/data") -> bool:
    """Whether a stream is told that its reader left, just after it has sent its first message."""
    told = False
    read = asyncio.Event()

    async def body() -> AsyncIterator[str]:
        nonlocal told
        try:
            yield first
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            told = True
            raise

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(body())(scope, Request(scope, receive).receive, send)

    async def receive() -> Message:
        await read.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message.get("body"):
            read.set()

    scope: Scope = {"type": "http", "path": path, "method": "GET", "headers": []}
    await asyncio.wait_for(WholeStreams(app)(scope, receive, send), 5)
    return told


async def test_a_stream_that_is_over_is_not_taken_for_one_that_was_left() -> None:
    assert not await left_after(OVER)


@pytest.mark.parametrize("message", [GOES_ON, QUOTED])
@pytest.mark.parametrize("path", ["/gradio_api/queue/data", "/elsewhere"])
async def test_one_that_goes_on_hears_that_its_reader_left(path: str, message: str) -> None:
    """Also one whose visitor has written the word that ends a stream."""
    assert await left_after(message, path)


def test_gradio_still_says_that_a_stream_is_over_as_is_looked_for() -> None:
    text = orjson.dumps(CloseStreamMessage().model_dump(), default=str).decode()
    assert f"data: {text}\n\n" == OVER


async def answered(error: Exception) -> list[Message]:
    """What a stream of gradio's has sent that is refused after it has begun, as a lost session's is."""
    sent: list[Message] = []

    async def body() -> AsyncIterator[str]:
        yield 'data: {"msg":"unexpected_error","session_not_found":true}\n\n'
        raise error

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "path": "/gradio_api/queue/data", "method": "GET", "headers": []}
    app = ExceptionMiddleware(StreamingResponse(body()))
    await asyncio.wait_for(WholeStreams(app)(scope, receive, send), 5)
    return sent


async def test_a_session_that_is_gone_ends_the_stream_and_leaves_no_traceback() -> None:
    """A page that reloads asks once more after it has closed its stream."""
    sent = await answered(HTTPException(404))
    assert b"session_not_found" in sent[1]["body"]
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.mark.parametrize("error", [HTTPException(500), ValueError("broken")])
async def test_any_other_failure_of_a_stream_is_told(error: Exception) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        await answered(error)
