"""Files are read in a process of their own, so that a hostile one costs itself and nothing else.

A crash in a C library, an endless loop or gigabytes of memory end the child; the file gets one sentence, and
the next file gets a new child. Pictures of pages are drawn by a second child, because nobody who opens a
citation should wait until somebody else's 2,000 pages are read.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from specrag.config import Settings
from specrag.errors import DocumentError, UsageError
from specrag.ingest.base import Cancelled, OnPage, PageImage, ReadingCancelled, never
from specrag.ingest.process.frames import Message, unpacked_document, unpacked_image
from specrag.ingest.process.slots import Slot
from specrag.ingest.process.watched import ChildStopped
from specrag.ingest.text import clean_name
from specrag.types import Document

T = TypeVar("T")

_log = logging.getLogger(__name__)
_CHILD = "specrag.ingest.process.child"


class HereReader:
    """Reads in this process: for tests, and where no child may be started. Nothing protects the caller."""

    def __init__(self, settings: Settings) -> None:
        """Remember the limits."""
        self._settings = settings

    def read(
        self,
        path: Path,
        name: str,
        *,
        password: str | None = None,
        on_page: OnPage | None = None,
        cancelled: Cancelled = never,
    ) -> Document:
        """As `FileReader.read`; `cancelled` is asked between pages only."""
        from specrag.ingest.loaders import read

        def watch(done: int, total: int) -> None:
            if cancelled():
                raise ReadingCancelled
            if on_page is not None:
                on_page(done, total)

        return read(path, name, self._settings, password=password, on_page=watch)


class ReadingProcess:
    """Reads in children that start on first use and are replaced when they fall. Safe to share."""

    def __init__(self, settings: Settings, *, module: str = _CHILD) -> None:
        """Start nothing yet.

        Args:
            settings: the limits.
            module: what `python -m` runs as the child.
        """
        self._closed = threading.Event()
        self._files = Slot(module, settings)
        self._pictures = Slot(module, settings)
        self._settings = settings

    def read(
        self,
        path: Path,
        name: str,
        *,
        password: str | None = None,
        on_page: OnPage | None = None,
        cancelled: Cancelled = never,
    ) -> Document:
        """As `FileReader.read`, one file at a time; an end by `cancelled` takes half a second at most.

        Raises:
            DocumentError: also `timeout`, `too_large` and `corrupt`, where the child was stopped.
            ReadingCancelled: `cancelled` turned true, or this was closed meanwhile.
            UsageError: this was closed before.
        """
        request: Message = {"do": "read", "path": str(path.absolute()), "name": name, "password": password}
        return self._ask(
            self._files, request, clean_name(name), unpacked_document, on_page=on_page, cancelled=cancelled
        )

    def page_image(
        self,
        path: Path,
        number: int,
        *,
        password: str | None = None,
        passage: str = "",
        evidence: Sequence[str] = (),
        width: int = 1000,
    ) -> PageImage:
        """One page of a PDF as a picture, with the places of a passage and of its evidence.

        Args:
            path: the PDF.
            number: of the page, from 1.
            password: opens an encrypted PDF.
            passage: text whose place on the page is wanted.
            evidence: sentences whose places are wanted.
            width: of the picture, in pixels.

        Raises:
            DocumentError: the page cannot be drawn.
        """
        request: Message = {
            "do": "draw",
            "path": str(path.absolute()),
            "number": number,
            "password": password,
            "passage": passage,
            "evidence": list(evidence),
            "width": width,
        }
        return self._ask(self._pictures, request, f"Page {number}", unpacked_image)

    def close(self) -> None:
        """End both children, and what they are doing."""
        self._closed.set()
        for slot in (self._files, self._pictures):
            slot.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(
        self,
        slot: Slot,
        request: Message,
        shown: str,
        unpacked: Callable[[Message], T],
        *,
        on_page: OnPage | None = None,
        cancelled: Cancelled = never,
    ) -> T:
        if self._closed.is_set():
            raise UsageError("No more files are read here: the program is ending.")

        def stop() -> bool:
            return cancelled() or self._closed.is_set()

        try:
            with (
                slot.child(stop) as child,
                closing(child.ask(request, stop)) as answers,  # closed at once, whatever `on_page` raises
            ):
                for answer in answers:
                    if "page" not in answer:
                        return self._last(answer, shown, unpacked)
                    told = _told(answer)
                    if on_page is not None:
                        on_page(*told)
        except ChildStopped as stopped:
            raise self._in_words(stopped, shown) from stopped
        raise AssertionError("a child that was not stopped has answered")

    def _last(self, answer: Message, shown: str, unpacked: Callable[[Message], T]) -> T:
        if "refused" in answer:
            raise _refused(answer)
        if "memory" in answer:
            raise ChildStopped("memory")
        if "failed" in answer:
            _log.error("%s failed unexpectedly:\n%s", shown, answer["failed"])
            raise DocumentError(
                "unreadable",
                f"{shown} could not be read: something in it is not understood; save it anew or convert it to"
                " another format.",
            )
        try:
            return unpacked(answer)
        except (ValueError, TypeError, KeyError) as error:
            raise ChildStopped("died") from error

    def _in_words(self, stopped: ChildStopped, shown: str) -> DocumentError:
        match stopped.why:
            case "silent":
                seconds = f"{self._settings.read_timeout_s:g} s (SPECRAG_READ_TIMEOUT_S)"
                return DocumentError(
                    "timeout", f"{shown} was given up: a page of it took more than {seconds}; split it."
                )
            case "memory":
                allowed = f"{self._settings.read_memory_mb} MB of memory (SPECRAG_READ_MEMORY_MB)"
                return DocumentError("too_large", f"{shown} takes more than {allowed} to read; split it.")
            case "unstarted":
                return DocumentError(
                    "unreadable",
                    f"{shown} was not read: the process that reads files does not start; the log says why.",
                )
            case "died":
                return DocumentError(
                    "corrupt",
                    f"{shown} is damaged in a way that stops its reader; save it anew or convert it.",
                )


def _told(answer: Message) -> tuple[int, int]:
    try:
        done, total = answer["page"]
        return int(done), int(total)
    except (ValueError, TypeError) as error:
        raise ChildStopped("died") from error


def _refused(answer: Message) -> DocumentError:
    try:
        reason, message = answer["refused"]
        return DocumentError(str(reason), str(message))
    except (ValueError, TypeError) as error:
        raise ChildStopped("died") from error
