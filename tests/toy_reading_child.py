"""A child that does to itself what files do to readers; the file's text says what."""

import ctypes
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from specrag.config import Settings
from specrag.errors import DocumentError
from specrag.ingest.base import PageImage
from specrag.ingest.process.child import serve
from specrag.ingest.process.frames import Message, packed_document, packed_image
from specrag.types import Document, Page

_kept: list[bytes] = []


def _document(text: str) -> Message:
    return packed_document(Document(id="0" * 16, title="Toy", source="toy", pages=(Page(text=text),)))


def _loop() -> NoReturn:
    while True:
        os.getpid()


def _eat() -> NoReturn:
    while True:
        _kept.append(b"x" * 1_000_000)


def _chat() -> Message:
    print("from Python", flush=True)  # noqa: T201 - what a library may do
    os.write(1, b"from C\n")
    return _document("read chat")


def _raise() -> NoReturn:
    raise KeyError("nobody foresaw this")


def _refuse() -> NoReturn:
    raise DocumentError("no_text", "toy.txt holds no text.")


def _keep() -> Message:
    _kept.append(b"x" * 200_000_000)
    return _document("read keep")


def _environment() -> Message:
    return _document("\n".join(f"{name}={value}" for name, value in os.environ.items()))


_COMMANDS: dict[str, Callable[[], object]] = {
    "loop": _loop,
    "stuck": lambda: re.match("(a+)+b", "a" * 100),  # for ever, and with the interpreter's lock
    "eat": _eat,
    "gulp": lambda: bytearray(1_000_000_000_000),
    "keep": _keep,
    "crash": lambda: ctypes.string_at(0),
    "abort": lambda: os.kill(os.getpid(), signal.SIGABRT),
    "leave": sys.exit,
    "chat": _chat,
    "next": lambda: _document("read next"),
    "long": lambda: _document("ä" * 20_000_000),
    "lie": lambda: {"document": {"id": 3}},
    "babble": lambda: {"page": "neither done nor total"},
    "raise": _raise,
    "refuse": _refuse,
    "surrogate": lambda: _document("ab\udc80c"),
    "environment": _environment,
}


def _read(request: Message, _settings: Settings, on_page: Callable[[int, int], None]) -> Message:
    command = Path(request["path"]).read_text(encoding="utf-8")
    on_page(os.getpid(), 0)  # a test may want to know whom to kill
    if command == "pages":
        for done in range(101):
            on_page(done, 100)
        return _document("read pages")
    if command == "arguments":
        return _document(f"{request['password']} in {sys.orig_argv}")
    answer = _COMMANDS[command]()
    assert isinstance(answer, dict)
    return answer


def _draw(request: Message, _settings: Settings, _on_page: Callable[[int, int], None]) -> Message:
    return packed_image(
        PageImage(data=str(request["number"]).encode(), media_type="image/png", width=1, height=1)
    )


if __name__ == "__main__":
    serve({"read": _read, "draw": _draw})
