"""Collections as a visitor keeps them: made, renamed, described, asked, moved to another place, deleted."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, expect

from tests.e2e.serving import Server, serving
from tests.e2e.visitor import PATIENCE_MS, Visitor

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def owner(browser: Browser, server: Server) -> Iterator[Visitor]:
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        visitor.go_to("Documents")
        expect(visitor.shelf).to_be_visible(timeout=PATIENCE_MS)
        yield visitor


def _add(owner: Visitor, name: str, text: str) -> None:
    owner.upload({"name": name, "mimeType": "text/plain", "buffer": text.encode()})
    owner.wait_for_job(name, "ready")


def _import(owner: Visitor, file: Path | FilePayload) -> None:
    with owner.page.expect_file_chooser() as chooser:
        owner.do(owner.shelf, "Import")
    chooser.value.set_files(file)


def test_a_collection_is_made_renamed_and_described(owner: Visitor) -> None:
    owner.make_shelf("Harbour", "Tides and ships.")
    expect(owner.outcome).to_contain_text("“Harbour” was made")
    expect(owner.shelf).to_contain_text("Tides and ships.")
    expect(owner.page.locator("#sr-documents-table")).to_contain_text("No documents yet")
    _add(owner, "tides.txt", "High water at the Orla quay comes at nine.")
    owner.do(owner.shelf, "Rename")
    title = owner.page.locator("#sr-collection-title").locator("input, textarea")
    expect(title).to_have_value("Harbour")
    title.fill("Quay")
    owner.page.locator("#sr-collection-description textarea").fill("Only tides.")
    owner.page.locator("#sr-collection-save").click()
    expect(owner.page.locator("#sr-documents-collection input")).to_have_value("Quay (1 document)")
    expect(owner.shelf).to_contain_text("Only tides.")


def test_a_title_that_is_taken_or_empty_is_refused_in_a_sentence(owner: Visitor) -> None:
    owner.do(owner.shelf, "New")
    title = owner.page.locator("#sr-collection-title").locator("input, textarea")
    for given, sentence in (
        ("QUAY", "There is a collection called “QUAY” already"),
        ("  ", "1 to 80 characters"),
    ):
        title.fill(given)
        owner.page.locator("#sr-collection-save").click()
        expect(owner.outcome).to_contain_text(sentence)
    owner.page.locator("#sr-collection-close").click()
    expect(title).to_have_count(0)


def test_the_ask_tab_offers_the_same_collections(owner: Visitor) -> None:
    owner.go_to("Ask")
    owner.choose_collection("Quay")
    expect(owner.page.locator("#sr-header")).to_contain_text("Quay, 1 document, 1 chunk")
    owner.go_to("Documents")


def test_the_sample_cannot_be_changed(owner: Visitor) -> None:
    owner.choose_shelf("Sample")
    expect(owner.shelf).to_contain_text("read-only")
    expect(owner.rows.first).to_be_visible()
    names = owner.page.locator("#sr-documents-table button").all_inner_texts()
    assert not [name for name in names if name.startswith("Delete")]
    expect(owner.page.locator("#sr-limits")).to_contain_text("read-only")
    expect(owner.page.locator("#sr-upload input[type=file]")).to_have_count(0)
    owner.choose_shelf("Quay")


def test_a_collection_goes_out_as_one_file_and_comes_back(owner: Visitor, tmp_path: Path) -> None:
    with owner.page.expect_download() as download:
        owner.do(owner.shelf, "Export")
    kept = tmp_path / download.value.suggested_filename
    download.value.save_as(kept)
    assert kept.stat().st_size > 0
    _import(owner, kept)
    expect(owner.outcome).to_contain_text("was imported: 1 document", timeout=PATIENCE_MS)
    expect(owner.page.locator("#sr-documents-collection input")).to_have_value("Quay (2) (1 document)")
    owner.show_chunks("tides.txt")
    expect(owner.chunks).to_contain_text("High water at the Orla quay")


def test_a_file_that_is_no_export_is_refused_in_a_sentence(owner: Visitor) -> None:
    _import(owner, {"name": "notes.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04 nothing"})
    expect(owner.page.locator("#sr-documents-message .sr-notice-error")).to_contain_text(
        "cannot be imported", timeout=PATIENCE_MS
    )
    expect(owner.page.locator("#sr-stop-import")).to_be_hidden()


def test_a_deleted_collection_is_gone_in_both_tabs(owner: Visitor) -> None:
    for name in ("Quay (2)", "Quay"):
        owner.choose_shelf(name)
        owner.do(owner.shelf, "Delete")
        expect(owner.dialog).to_contain_text(
            f"Delete the collection “{name}” with its 1 document and 1 chunk?"
        )
        owner.confirm("Delete it")
        expect(owner.outcome).to_contain_text(f"The collection “{name}” was deleted with its 1 document.")
    expect(owner.page.locator("#sr-documents-collection input")).to_have_value(re.compile("^Your documents"))
    owner.go_to("Ask")
    owner.page.locator("#sr-collection input").click()
    expect(owner.page.get_by_role("option").filter(has_text="Quay")).to_have_count(0)
    owner.page.keyboard.press("Escape")
    owner.go_to("Documents")


def test_an_outdated_collection_is_indexed_anew(
    browser: Browser, tmp_path: Path, embedder_path: Path, model_path: Path
) -> None:
    """Documents that were cut in another way say so and are brought up to date with one button."""
    with (
        serving(tmp_path, embedder=embedder_path, model=model_path, SPECRAG_CHUNK_TOKENS="128") as server,
        Visitor(browser, server.url) as visitor,
    ):
        visitor.open()
        visitor.go_to("Documents")
        _add(visitor, "weir.txt", "The Halden weir is nine metres wide. " * 60)
    settings = {"SPECRAG_CHUNK_TOKENS": "48", "SPECRAG_CHUNK_OVERLAP": "8"}
    with (
        serving(tmp_path, embedder=embedder_path, model=model_path, **settings) as server,
        Visitor(browser, server.url) as visitor,
    ):
        visitor.open()
        visitor.go_to("Documents")
        expect(visitor.shelf).to_contain_text("1 document was cut into chunks in an older way")
        before = visitor.rows.locator("[data-label=chunks]").inner_text()
        visitor.do(visitor.shelf, "Re-index")
        expect(visitor.shelf).to_contain_text("Re-indexed:", timeout=PATIENCE_MS)
        expect(visitor.shelf.get_by_role("button", name="Re-index")).to_have_count(0)
        expect(visitor.rows.locator("[data-label=chunks]")).not_to_have_text(before)
