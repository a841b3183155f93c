"""A document is written by a stranger: whatever it holds is shown as text and never runs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Locator, expect

from tests.e2e.serving import Server
from tests.e2e.visitor import DONE, Visitor

pytestmark = pytest.mark.browser
SCRIPT = "<script>window.pwned=1</script>"
LITERAL = "${window.pwned=1}"
TEMPLATE = "{{constructor.constructor('window.pwned=1')()}}"
IMAGE = "<img src=x onerror=window.pwned=1>"
EVERYTHING = f"{SCRIPT} {LITERAL} {TEMPLATE} {IMAGE}"
NAME = EVERYTHING.replace("/", "")
"""No file system takes a slash."""
FILES = {
    f"{NAME}.txt": f"The Zorvex pump moves nine litres a minute. {EVERYTHING} It is green.",
    f"note {NAME}.md": f"# Zorvex `{EVERYTHING}`\n\nThe Zorvex pump was built in Tarn. `{EVERYTHING}`",
    f"page {NAME}.html": "<html><head><title>Zorvex &lt;script>window.pwned=1&lt;/script> ${window.pwned=1}</title></head>"
    f"<body><h1>Zorvex manual</h1><p>The Zorvex pump needs oil once a year. &lt;img src=x onerror=window.pwned=1> {LITERAL} "
    f"{TEMPLATE}</p>{SCRIPT}{IMAGE}</body></html>",
}


@pytest.fixture(scope="module")
def victim(browser: Browser, server: Server) -> Iterator[Visitor]:
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        visitor.go_to("Documents")
        payloads: list[FilePayload] = [
            {"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in FILES.items()
        ]
        visitor.upload(payloads)
        for name in FILES:
            visitor.wait_for_job(f"onerror=window.pwned=1{Path(name).suffix}", "ready")
        yield visitor


@pytest.fixture(autouse=True)
def _nothing_ran(victim: Visitor) -> Iterator[None]:
    yield
    assert victim.page.evaluate("window.pwned") is None
    assert victim.page.locator("img[src=x]").count() == 0


def test_the_table_shows_the_titles_as_they_are_written(victim: Visitor) -> None:
    expect(victim.rows).to_have_count(3)
    expect(victim.rows.filter(has_text=SCRIPT)).to_contain_text([".md"])
    for row in victim.rows.all():
        expect(row).to_contain_text("window.pwned=1")


def test_the_chunks_show_the_text_as_it_is_written(victim: Visitor) -> None:
    for suffix, texts in (
        (".txt", (SCRIPT, LITERAL, TEMPLATE, IMAGE)),
        (".html", (LITERAL, TEMPLATE, IMAGE)),
    ):
        victim.show_chunks(f"onerror=window.pwned=1{suffix}")
        chunks = victim.page.locator("#sr-chunks")
        expect(chunks).to_contain_text("nine litres" if suffix == ".txt" else "once a year")
        for text in texts:
            expect(chunks).to_contain_text(text)


def test_a_run_over_it_shows_its_passages_and_prompts_as_text(victim: Visitor) -> None:
    victim.go_to("Ask")
    victim.choose_collection("Your documents")
    question = f"How many litres does the Zorvex pump move? {EVERYTHING}"
    victim.ask(question)
    victim.wait_for_end(DONE)
    for opener in (victim.chips.filter(has_text="window.pwned"), victim.cards.locator(".sr-source")):
        _read(victim, opener.first)
    victim.page.locator("#sr-plot .bars .point path").first.hover(force=True)
    for details in victim.board.locator("details", has=victim.page.locator("pre")).all():
        details.locator("summary").click()
        expect(details.locator("pre")).to_contain_text(question)
    victim.reload()
    expect(victim.status).to_have_text(DONE)


def _read(victim: Visitor, opener: Locator) -> None:
    opener.click()
    expect(victim.panel).to_contain_text("Zorvex")
    expect(victim.panel.locator(".sr-passage")).to_have_text(re.compile(re.escape(LITERAL)))
    expect(victim.panel.locator(".sr-passage")).to_have_text(re.compile(re.escape(TEMPLATE)))
    victim.page.keyboard.press("Escape")
    expect(victim.panel).to_have_count(0)


def test_hostile_documents_can_be_deleted(victim: Visitor) -> None:
    victim.go_to("Documents")
    for suffix in (".txt", ".md", ".html"):
        victim.delete_document(f"{suffix}")
    expect(victim.rows).to_have_count(0)
