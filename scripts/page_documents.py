"""The page as a way for files to come in: uploaded in a real browser to a real server, one after the other.

Used by `scripts/check_documents.py --via page`. The page tells no stable word for a refusal: an outcome is
`text`, `refused` with the sentence that stands on the page, or both for an archive.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import FilePayload, Locator, expect

from scripts.hostile_documents import Case
from specrag.config import load_settings
from specrag.models.weights import Weights
from tests.e2e.serving import chromium, serving
from tests.e2e.visitor import Visitor

LIMIT_MS = 3_600_000.0
_SETTLED_MS = 1500
"""So long after the last file on its way the list is as it stays."""
_PAYLOAD_BYTES = 50_000_000
"""The browser's driver takes no larger one from memory; a larger file keeps its own name."""


class PageReader:
    """One visitor, who makes a collection for each file, looks what became of it, and deletes it."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._number = 0

    def read(self, case: Case) -> tuple[str, str, str, float]:
        """What became of a file: the outcome, the text that the page shows of it, the sentences, seconds."""
        visitor = self._visitor
        self._number += 1
        visitor.make_shelf(f"File {self._number}")
        started = time.perf_counter()
        if case.name == case.path.name or case.path.stat().st_size >= _PAYLOAD_BYTES:
            visitor.upload(case.path)
        else:
            visitor.upload(
                FilePayload(
                    name=case.name, mimeType="application/octet-stream", buffer=case.path.read_bytes()
                )
            )
        self._wait()
        if case.password and visitor.jobs.count():
            visitor.do(visitor.jobs.first, "Enter password")
            visitor.dialog.locator("input").fill(case.password)
            visitor.confirm("Open it")
            self._wait()
        seconds = time.perf_counter() - started
        sentences = [" ".join(said.all_inner_texts()) for said in (self._messages(), visitor.outcome)]
        refused = visitor.jobs.count() > 0 or (not visitor.rows.count() and any(sentences))
        words = (["refused"] if refused else []) + (["text"] if visitor.rows.count() else [])
        text = self._text()
        self._tidy()
        return "+".join(words) or "nothing", text, " ".join(sentences).strip(), seconds

    def _messages(self) -> Locator:
        return self._visitor.page.locator("#sr-uploads .sr-job-message")

    def _wait(self) -> None:
        """Until something was said of the file, and nothing is on its way any more."""
        page = self._visitor.page
        told = page.locator(
            "#sr-documents-table .sr-file, #sr-uploads .sr-job, #sr-documents-message .sr-notice-error"
        )
        expect(told.first).to_be_visible(timeout=LIMIT_MS)
        under_way = page.locator("#sr-uploads h3").filter(has_text="way")
        expect(under_way).to_have_count(0, timeout=LIMIT_MS)
        page.wait_for_timeout(_SETTLED_MS)
        expect(under_way).to_have_count(0, timeout=LIMIT_MS)

    def _text(self) -> str:
        """The first chunks of every document, as the page shows them."""
        visitor, texts = self._visitor, []
        for row in visitor.rows.all():
            visitor.do(row, "Chunks")
            expect(visitor.page.locator("#sr-chunks h3")).to_contain_text(
                row.locator(".sr-file-title").inner_text()
            )
            texts += visitor.chunks.all_inner_texts()
        return "\n".join(texts)

    def _tidy(self) -> None:
        visitor = self._visitor
        while many := visitor.jobs.count():
            visitor.do(visitor.jobs.first, "Dismiss")
            expect(visitor.jobs).not_to_have_count(many)
        visitor.do(visitor.shelf, "Delete")
        visitor.confirm("Delete it")
        expect(visitor.outcome).to_contain_text("was deleted", timeout=LIMIT_MS)


@contextmanager
def page_reader(weights: Path | None) -> Iterator[PageReader]:
    """A server with an empty home and the usual limits, and a browser in front of it."""
    settings = load_settings()
    known = Weights(home=weights.resolve().parent if weights else settings.home)
    embedder, model = known.ensure(settings.embedder), known.ensure(settings.drafter)
    with (
        tempfile.TemporaryDirectory(prefix="specrag-page-") as home,
        serving(
            Path(home), embedder=embedder, model=model, SPECRAG_MAX_FILE_MB=str(settings.max_file_mb)
        ) as server,
        chromium() as browser,
        Visitor(browser, server.url) as visitor,
    ):
        visitor.open()
        visitor.go_to("Documents")
        expect(visitor.shelf).to_be_visible(timeout=LIMIT_MS)
        yield PageReader(visitor)
