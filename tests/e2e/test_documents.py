"""A visitor's own files: from the drop to the answer, and gone for good when deleted."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.serving import MAX_FILE_MB, Server
from tests.e2e.visitor import DONE, PATIENCE_MS, Visitor, sources_of
from tests.made_files import docx, pdf

pytestmark = pytest.mark.browser
LAMP = "The Corvale lamp holds 640 watt-hours.\nIt weighs 3.4 kilograms.\nIt glows for nine nights."
MEADOW = "The meadow is wide.\nSheep graze there in summer.\nA brook runs through it."
HISTORY = "<w:p><w:r><w:t>The Corvale lamp was invented by Ines Tolland in 1931 in the town of Sarn.</w:t></w:r></w:p>"


@pytest.fixture(scope="module")
def owner(browser: Browser, server: Server) -> Iterator[Visitor]:
    """A visitor at the Documents tab, who does everything in this file one after the other."""
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        visitor.go_to("Documents")
        visitor.dismiss_all()
        yield visitor


def test_files_become_ready_and_survive_a_reload(owner: Visitor, server: Server, tmp_path: Path) -> None:
    first, second = tmp_path / "lamp.pdf", tmp_path / "history.docx"
    first.write_bytes(pdf(LAMP, MEADOW))
    second.write_bytes(docx(HISTORY))
    owner.upload([first, second])
    _are_ready(owner)
    owner.reload()
    owner.go_to("Documents")
    _are_ready(owner)
    left = [path for path in server.uploads.rglob("*") if path.is_file() and path.stat().st_size]
    assert left == [], "anybody could fetch the temporary copy of an upload by its address"


def _are_ready(owner: Visitor) -> None:
    lamp = owner.wait_for_job("lamp.pdf", "ready")
    expect(lamp.locator("[data-label=pages]")).to_have_text("2 pages")
    expect(lamp.locator("[data-label=chunks]")).to_have_text(re.compile(r"^[1-9]\d* chunks?$"))
    history = owner.wait_for_job("history.docx", "ready")
    expect(history.locator("[data-label=chunks]")).to_have_text("1 chunk")
    expect(owner.rows).to_have_count(2)
    expect(owner.jobs).to_have_count(0)


def test_the_header_counts_the_new_files(owner: Visitor) -> None:
    owner.go_to("Ask")
    owner.choose_collection("Your documents")
    owner.go_to("Documents")
    owner.upload({"name": "mill.txt", "mimeType": "text/plain", "buffer": b"The Tarn mill has three wheels."})
    owner.wait_for_job("mill.txt", "ready")
    expect(owner.shelf).to_contain_text("3 documents")
    expect(owner.page.locator("#sr-header")).to_contain_text("3 documents")
    owner.delete_document("mill.txt")
    expect(owner.page.locator("#sr-header")).to_contain_text("2 documents")


def test_the_same_file_again_is_said_to_be_known(owner: Visitor, tmp_path: Path) -> None:
    again = tmp_path / "copy-of-lamp.pdf"
    again.write_bytes(pdf(LAMP, MEADOW))
    owner.upload(again)
    job = owner.wait_for_job("copy-of-lamp.pdf", "duplicate")
    expect(job).to_contain_text("the same content as “lamp.pdf”")
    expect(owner.rows).to_have_count(2)
    owner.do(job, "Dismiss")
    expect(owner.jobs).to_have_count(0)


def test_a_file_of_the_same_name_takes_the_place_of_the_old_one(owner: Visitor) -> None:
    owner.page.locator("#sr-upload-options > button").click()
    owner.page.locator("#sr-replace input").check()
    for text in (b"The Osk bell weighs nine tonnes.", b"The Osk bell weighs ten tonnes."):
        owner.upload({"name": "bell.txt", "mimeType": "text/plain", "buffer": text})
        size = owner.wait_for_job("bell.txt", "ready").locator("[data-label=size]")
        expect(size).to_have_text(f"{len(text)} B", timeout=PATIENCE_MS)
    expect(owner.page.locator("#sr-documents-said")).to_contain_text("bell.txt was added")
    owner.show_chunks("bell.txt")
    expect(owner.chunks).to_have_count(1)
    expect(owner.chunks).to_contain_text("ten tonnes")
    owner.page.locator("#sr-replace input").uncheck()
    owner.delete_document("bell.txt")
    expect(owner.chunks).to_have_count(0)


def test_the_chunks_of_a_file_can_be_read(owner: Visitor) -> None:
    owner.show_chunks("lamp.pdf")
    expect(owner.page.locator("#sr-chunks h3")).to_be_focused()
    expect(owner.chunks.first).to_contain_text("640 watt-hours")
    expect(owner.chunks.first).to_contain_text("page 1")
    owner.do(owner.page.locator("#sr-chunks"), "Close")
    expect(owner.chunks).to_have_count(0)
    expect(owner.row("lamp.pdf").get_by_role("button", name="Chunks")).to_be_focused()


def test_a_question_is_answered_from_the_own_files(owner: Visitor) -> None:
    owner.go_to("Ask")
    owner.choose_collection("Your documents")
    expect(owner.examples.first).to_be_hidden()
    expect(owner.page.locator("#sr-header")).to_contain_text("2 documents")
    owner.ask("How much energy does the Corvale lamp hold?")
    owner.wait_for_end(DONE)
    sources = sources_of(owner, owner.chips.all())
    assert sources[0] == "lamp.pdf"
    assert set(sources) <= {"lamp.pdf", "history.docx"}
    cited = {
        owner.page.locator(f"#{cite.get_attribute('popovertarget')} .sr-meta dd").first.text_content()
        for cite in owner.answer.locator(".sr-cite").all()  # what they open is in test_citations.py
    }
    assert cited <= set(sources)
    if cited:
        assert "lamp.pdf" in cited


def test_a_citation_names_the_page(owner: Visitor) -> None:
    owner.chips.first.click()
    expect(owner.panel).to_contain_text("640 watt-hours")
    expect(owner.panel.locator(".sr-meta")).to_contain_text(re.compile(r"page\s*1"))
    owner.page.keyboard.press("Escape")


def test_a_deleted_file_is_found_no_more(owner: Visitor) -> None:
    owner.go_to("Documents")
    owner.do(owner.row("lamp.pdf"), "Delete")
    expect(owner.dialog).to_contain_text("Delete “lamp” with its 2 chunks?")
    owner.confirm("Cancel")
    expect(owner.row("lamp.pdf")).to_be_visible()
    owner.delete_document("lamp.pdf")
    expect(owner.outcome).to_contain_text("“lamp” was deleted with its 2 chunks")
    expect(owner.rows).to_have_count(1)
    owner.go_to("Ask")
    owner.ask("How heavy is the Corvale lamp?")
    owner.wait_for_end(DONE)
    assert set(sources_of(owner, owner.chips.all())) == {"history.docx"}
    expect(owner.reader).to_contain_text("there are no drafts")  # one passage leaves nothing to divide
    owner.go_to("Documents")
    owner.delete_document("history.docx")
    expect(owner.page.locator("#sr-documents-table")).to_contain_text("No documents yet")
    owner.go_to("Ask")
    owner.ask("Who invented the Corvale lamp?")
    owner.wait_for_end(re.compile("^Failed"))
    expect(owner.answer).to_contain_text("has no documents yet")


def test_a_file_just_below_the_limit_is_taken(owner: Visitor) -> None:
    """5 MB were once 4.8 of the megabytes that the page names."""
    owner.go_to("Documents")
    expect(owner.page.locator("#sr-limits")).to_contain_text(f"At most {MAX_FILE_MB} MB a file")
    padding = b" " * (MAX_FILE_MB * 1_000_000 - 1000)
    page = (
        b"<html><body><!--"
        + padding
        + b"--><h1>Weir</h1><p>The Halden weir is nine metres wide.</p></body></html>"
    )
    owner.upload({"name": "weir.html", "mimeType": "text/html", "buffer": page})
    expect(owner.wait_for_job("weir.html", "ready").locator("[data-label=chunks]")).to_have_text("1 chunk")
    owner.delete_document("weir.html")
