"""The list of files as it is used: many at once, by keyboard, on a phone, with failures, and across reloads."""

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import FilePayload, expect

from tests.e2e.conftest import Arrive
from tests.e2e.visitor import DONE, PATIENCE_MS, PHONE, Visitor

pytestmark = pytest.mark.browser
LONG = "The Halden weir is nine metres wide and was built in the year {n}.\n\n"
MANIFEST_MS = 400_000
"""For all files of the shared data on two busy cores."""


def _text(name: str, text: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def _long(name: str) -> FilePayload:
    """A file that takes long enough to look at it on its way."""
    return _text(name, "".join(LONG.format(n=n) * 4 for n in range(1200)))


@pytest.fixture
def lists(request: pytest.FixtureRequest) -> str:
    """The title of this test's own collection, so that none finds what another one has left."""
    return str(request.node.name)[:80]


@pytest.fixture
def owner(visitor: Visitor, lists: str) -> Visitor:
    """A visitor with an empty collection of their own."""
    visitor.go_to("Documents")
    expect(visitor.shelf).to_be_visible(timeout=PATIENCE_MS)
    visitor.make_shelf(lists)
    return visitor


def test_several_are_deleted_at_once(owner: Visitor) -> None:
    owner.upload([_text(f"note{n}.txt", f"Note number {n}.") for n in range(4)])
    for n in range(4):
        owner.wait_for_job(f"note{n}.txt", "ready")
    for n in (1, 3):
        owner.row(f"note{n}.txt").get_by_role("checkbox").check()
    owner.page.get_by_role("button", name="Delete 2 ticked").click()
    expect(owner.dialog).to_contain_text("Files to delete: 2.")
    owner.confirm("Delete them")
    expect(owner.outcome).to_contain_text("2 documents with 2 chunks deleted")
    expect(owner.rows).to_have_count(2)
    assert [row.get_by_role("checkbox").is_checked() for row in owner.rows.all()] == [False, False]
    expect(owner.page.locator("#sr-documents-table h3")).to_be_focused()
    owner.page.get_by_role("checkbox", name="all 2").check()
    owner.page.get_by_role("button", name="Delete 2 ticked").click()
    owner.confirm("Delete them")
    expect(owner.rows).to_have_count(0)


def test_a_tick_stays_with_its_document_when_others_arrive(owner: Visitor) -> None:
    """Lists are patched by place: a tick once moved to the document that took the row."""
    for name in ("first.txt", "second.txt"):
        owner.upload(_text(name, name))
        owner.wait_for_job(name, "ready")
        if name == "first.txt":
            owner.row("first.txt").get_by_role("checkbox").check()
            owner.row("first.txt").get_by_role("button", name="Delete").focus()
    expect(owner.row("first.txt").get_by_role("checkbox")).to_be_checked()
    expect(owner.row("second.txt").get_by_role("checkbox")).not_to_be_checked()
    expect(owner.row("first.txt").get_by_role("button", name="Delete")).to_be_focused()
    owner.page.get_by_role("checkbox", name="all 2").check()
    owner.page.get_by_role("button", name="Delete 2 ticked").click()
    owner.confirm("Delete them")
    expect(owner.rows).to_have_count(0)


def test_a_tick_ends_with_its_collection(owner: Visitor, lists: str) -> None:
    """The same file in another collection appeared ticked, and was deleted with what was ticked there."""
    owner.upload(_text("same.txt", "The same in both."))
    owner.wait_for_job("same.txt", "ready")
    owner.row("same.txt").get_by_role("checkbox").check()
    expect(owner.page.get_by_role("button", name="Delete 1 ticked")).to_be_visible()
    owner.make_shelf("Other than that")
    owner.upload(_text("same.txt", "The same in both."))
    owner.wait_for_job("same.txt", "ready")
    expect(owner.row("same.txt").get_by_role("checkbox")).not_to_be_checked()
    expect(owner.page.get_by_role("button", name="Delete 1 ticked")).to_have_count(0)
    owner.choose_shelf(lists)
    expect(owner.row("same.txt").get_by_role("checkbox")).not_to_be_checked()


def test_what_was_chosen_in_the_ask_tab_and_deleted_does_not_stop_questions(owner: Visitor) -> None:
    """It stayed chosen in a box that was hidden, and every question was refused until a reload."""
    owner.upload([_text("kept.txt", "The Halden weir is nine metres wide."), _text("gone.txt", "Gone.")])
    for name in ("kept.txt", "gone.txt"):
        owner.wait_for_job(name, "ready")
    owner.go_to("Ask")
    only = owner.page.locator("#sr-only")
    only.locator("input").click()
    owner.page.get_by_role("option").filter(has_text="gone.txt").click()
    expect(only).to_contain_text("gone")
    owner.page.keyboard.press("Escape")
    owner.go_to("Documents")
    owner.delete_document("gone.txt")
    owner.go_to("Ask")
    expect(only).to_be_hidden()
    owner.ask("How wide is the Halden weir?")
    owner.wait_for_end(DONE)


def test_a_file_on_its_way_survives_a_reload_and_is_seen_in_another_tab(
    owner: Visitor, arrive: Arrive, lists: str
) -> None:
    owner.upload([_long("weir.txt"), _text("after.txt", "The Halden weir has two gates.")])
    job = owner.job("weir.txt")
    expect(job.get_by_role("progressbar")).to_be_visible(timeout=PATIENCE_MS)
    expect(owner.job("after.txt")).to_contain_text("1 file before it")
    owner.reload()
    owner.go_to("Documents")
    owner.choose_shelf(lists)
    expect(job.locator(".sr-job-state")).to_have_text(
        re.compile(r"^[\d,]+ of [\d,]+ chunks$"), timeout=PATIENCE_MS
    )
    other = arrive()
    other.open()
    other.go_to("Documents")
    other.choose_shelf(lists)
    expect(other.job("weir.txt").get_by_role("progressbar")).to_be_visible()
    owner.do(owner.job("after.txt"), "Cancel")
    owner.wait_for_job("after.txt", "cancelled")
    owner.do(job, "Cancel")
    owner.wait_for_job("weir.txt", "cancelled")
    expect(owner.rows).to_have_count(0)
    owner.do(owner.job("after.txt"), "Retry")
    owner.wait_for_job("after.txt", "ready")
    owner.do(owner.job("weir.txt"), "Dismiss")
    expect(owner.jobs).to_have_count(0)


def test_all_that_is_on_its_way_can_be_cancelled(owner: Visitor) -> None:
    owner.upload([_long("one.txt"), _text("two.txt", "Two."), _text("three.txt", "Three.")])
    owner.page.get_by_role("button", name="Cancel all").click()
    expect(owner.dialog).to_contain_text("3 files")
    owner.confirm("Cancel them")
    for name in ("one.txt", "two.txt", "three.txt"):
        owner.wait_for_job(name, "cancelled")
    owner.page.get_by_role("button", name="Dismiss all").click()
    expect(owner.jobs).to_have_count(0)
    expect(owner.rows).to_have_count(0)


def test_an_encrypted_file_is_opened_with_its_password(owner: Visitor, shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-encrypted-user-password.pdf"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the shared data")
    owner.upload(path)
    job = owner.wait_for_job(path.name, "failed")
    for typed in ("wrong", "openpassword"):
        expect(job.locator(".sr-job-message")).to_contain_text("password")
        owner.do(job, "Enter password")
        owner.dialog.locator("input").fill(typed)
        owner.page.keyboard.press("Enter")
        expect(owner.dialog).to_have_count(0)
        if typed == "wrong":
            expect(job).to_contain_text("does not open it", timeout=PATIENCE_MS)
    owner.wait_for_job(path.name, "ready")


def test_the_list_is_searched_and_sorted(owner: Visitor) -> None:
    owner.upload([_text("Zebra.txt", "Z"), _text("älter.txt", "A " * 400), _text("middle.txt", "M " * 40)])
    for name in ("Zebra", "älter", "middle"):
        owner.wait_for_job(name, "ready")
    for order, first in (("By title", "älter"), ("Largest first", "älter"), ("Newest first", "middle")):
        owner.page.locator("#sr-sort input").click()
        owner.page.get_by_role("option", name=order).click()
        expect(owner.rows.first).to_contain_text(first)
    search = owner.page.locator("#sr-search input, #sr-search textarea")
    search.fill("ALTER")
    expect(owner.rows).to_have_count(1)
    expect(owner.page.locator("#sr-documents-table h3")).to_have_text("3 documents, 1 found")
    search.fill("nothing like it")
    expect(owner.page.locator("#sr-documents-table")).to_contain_text("No document matches")
    search.fill("")
    expect(owner.rows).to_have_count(3)


def test_everything_is_done_by_keyboard(owner: Visitor) -> None:
    """Chunks, a tick, the question and the deletion, without a mouse; the focus is never lost."""
    owner.upload([_text("kept.txt", "Kept."), _text("gone.txt", "Gone.")])
    for name in ("kept.txt", "gone.txt"):
        owner.wait_for_job(name, "ready")
    keyboard = owner.page.keyboard
    owner.row("gone.txt").get_by_role("checkbox").focus()
    keyboard.press("Space")
    expect(owner.page.get_by_role("button", name="Delete 1 ticked")).to_be_visible()
    keyboard.press("Space")
    for _ in range(2):
        keyboard.press("Tab")
    expect(owner.row("gone.txt").get_by_role("button", name="Chunks")).to_be_focused()
    keyboard.press("Enter")
    expect(owner.page.locator("#sr-chunks h3")).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(owner.row("gone.txt").get_by_role("button", name="Chunks")).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(owner.dialog.get_by_role("button", name="Cancel")).to_be_focused()
    keyboard.press("Escape")
    expect(owner.row("gone.txt").get_by_role("button", name="Delete")).to_be_focused()
    keyboard.press("Enter")
    expect(owner.dialog.get_by_role("button", name="Cancel")).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(owner.row("gone.txt")).to_have_count(0)
    expect(owner.outcome).to_contain_text("“gone” was deleted")
    assert owner.page.evaluate("document.activeElement.closest('#sr-documents-table') !== null")


def test_a_question_that_is_asked_again_at_once_has_its_own_answer(owner: Visitor) -> None:
    """The browser tells of the first one's end when the second stands there; its Yes then did nothing."""
    owner.upload([_text("gone.txt", "Gone.")])
    owner.wait_for_job("gone.txt", "ready")
    owner.row("gone.txt").get_by_role("button", name="Delete").evaluate(
        """button => {
            button.click();
            document.getElementById("sr-dialog").close("no");
            button.click();
        }"""
    )
    expect(owner.dialog.get_by_role("button", name="Cancel")).to_be_focused()
    owner.page.wait_for_function("() => new Promise((go) => setTimeout(() => go(true), 100))")
    owner.dialog.get_by_role("button", name="Delete").click()
    expect(owner.row("gone.txt")).to_have_count(0)


def test_a_hostile_name_is_shown_as_text(owner: Visitor) -> None:
    name = "<img src=x onerror=window.pwned=1>${window.pwned=1}\u202etxt.exe"
    owner.make_shelf(name.replace("\u202e", ""), name)
    expect(owner.shelf).to_contain_text("<img src=x onerror=window.pwned=1>${window.pwned=1}")
    owner.upload([_text(f"{name}.txt", "Harmless."), _text(f"{name}2.txt", "Harmless.")])
    owner.wait_for_job("onerror=window.pwned=1", "ready")
    owner.wait_for_job("onerror=window.pwned=1", "duplicate")
    owner.do(owner.rows.first, "Delete")
    expect(owner.dialog).to_contain_text("onerror=window.pwned=1")  # gradio takes the rest away
    owner.confirm("Delete")
    expect(owner.outcome).to_contain_text("onerror=window.pwned=1")
    owner.do(owner.shelf, "Delete")
    owner.confirm("Delete it")
    expect(owner.outcome).to_contain_text("was deleted with its 0 documents")
    assert owner.page.evaluate("window.pwned") is None
    assert owner.page.locator("img[src=x]").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_on_a_phone(arrive: Arrive, theme: Literal["light", "dark"]) -> None:
    """No row, message, form or question is wider than the screen."""
    visitor = arrive(theme=theme, width=PHONE)
    visitor.open()
    visitor.go_to("Documents")
    visitor.make_shelf(f"Phone {theme} with a title that goes on and on for longer than a line has room")
    visitor.upload([_text(f"{'a-very-long-name-' * 9}.txt", "word" * 300), _text("same.txt", "word" * 300)])
    visitor.wait_for_job("a-very-long-name", "ready")
    visitor.upload({"name": "program.pdf", "mimeType": "application/pdf", "buffer": b"MZ\x90" + bytes(99)})
    visitor.wait_for_job("program.pdf", "failed")
    visitor.wait_for_job("a-very-long-name", "ready")
    visitor.wait_for_job("same.txt", "duplicate")
    visitor.show_chunks("a-very-long-name")
    visitor.do(visitor.shelf, "Rename")
    expect(visitor.page.locator("#sr-collection-title")).to_be_visible()
    assert visitor.fits(), visitor.cut
    visitor.do(visitor.row("a-very-long-name"), "Delete")
    box = visitor.dialog.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE
    visitor.confirm("Cancel")
    visitor.do(visitor.shelf, "Delete")
    visitor.confirm("Delete it")
    expect(visitor.outcome).to_contain_text("was deleted")


def test_every_file_ends_as_it_must(owner: Visitor, shared_data: Path) -> None:
    """The awkward files of the shared data, all at once: text is ready, the rest says in words what is wrong."""
    lines = (shared_data / "docs" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    files: list[dict[str, Any]] = [json.loads(line) for line in lines]
    owner.make_shelf("Awkward")
    owner.upload([shared_data / "docs" / item["file"] for item in files])
    under_way = owner.page.locator("#sr-uploads h3").filter(has_text="way")
    expect(under_way).to_be_visible(timeout=PATIENCE_MS)
    expect(under_way).to_have_count(0, timeout=MANIFEST_MS)
    owner.page.wait_for_timeout(1500)
    ready = set(owner.page.locator("#sr-documents-table .sr-file").all_inner_texts())
    refused = [*owner.jobs.all_inner_texts(), *owner.outcome.all_inner_texts()]
    wrong = [item["file"] for item in files if not _ends_well(item, ready, refused)]
    assert wrong == []
    owner.do(owner.shelf, "Delete")
    owner.confirm("Delete it")
    expect(owner.outcome).to_contain_text("was deleted", timeout=PATIENCE_MS)


def _ends_well(item: dict[str, Any], ready: set[str], refused: list[str]) -> bool:
    arrived = any(item["file"] in text for text in ready)
    sentences = [text for text in refused if item["file"] in text]
    if not arrived and (not sentences or any("unexpected" in text for text in sentences)):
        return False
    if item["error_kind"] == "encrypted" and not arrived:
        return "password" in sentences[0]
    if item["outcome"] == "text":
        return arrived
    return item["outcome"] in ("text_or_error", "no_text") or not arrived
