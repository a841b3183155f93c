"""What people get wrong: each is one sentence that helps, and the page goes on."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.serving import MAX_FILE_MB, Server
from tests.e2e.visitor import PATIENCE_MS, Visitor

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def clumsy(browser: Browser, server: Server) -> Iterator[Visitor]:
    """One visitor who makes every mistake on the same page."""
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        yield visitor


def _is_one_sentence(text: str) -> bool:
    return "Traceback" not in text and "\n" not in text.strip() and text.strip().endswith(".")


def test_an_empty_file(clumsy: Visitor) -> None:
    clumsy.go_to("Documents")
    clumsy.upload({"name": "nothing.txt", "mimeType": "text/plain", "buffer": b""})
    message = clumsy.page.locator("#sr-documents-message .sr-notice")
    expect(message).to_contain_text("nothing.txt is empty (0 bytes)")
    assert _is_one_sentence(message.inner_text())


def test_a_program_that_calls_itself_a_pdf(clumsy: Visitor) -> None:
    clumsy.go_to("Documents")
    clumsy.upload(
        {"name": "program.pdf", "mimeType": "application/pdf", "buffer": b"MZ\x90\x00" + bytes(200)}
    )
    sentence = _sentence(clumsy, "program.pdf")
    expect(sentence).to_contain_text("Windows program")
    assert _is_one_sentence(sentence.inner_text())


def test_an_encrypted_pdf(clumsy: Visitor, shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-encrypted-user-password.pdf"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the shared data")
    clumsy.go_to("Documents")
    clumsy.upload(path)
    sentence = _sentence(clumsy, path.name)
    expect(sentence).to_contain_text("password")
    assert _is_one_sentence(sentence.inner_text())


def _sentence(clumsy: Visitor, name: str) -> Locator:
    return clumsy.wait_for_job(name, "failed").locator(".sr-job-message")


def test_a_file_above_the_limit(clumsy: Visitor) -> None:
    """Refused by the browser before it is sent, with the limit that the page names, not with 4.8 Mb."""
    clumsy.go_to("Documents")
    before = clumsy.jobs.count()
    clumsy.upload({"name": "big.txt", "mimeType": "text/plain", "buffer": b"word " * (6_000_000 // 5)})
    toast = clumsy.page.locator(".toast-body")
    expect(toast).to_contain_text("big.txt")
    expect(toast).to_contain_text(re.compile(rf"\b{MAX_FILE_MB}(\.0)? ?Mb", re.IGNORECASE))
    expect(clumsy.jobs).to_have_count(before)
    toast.get_by_test_id("toast-close").click()


def test_an_empty_question(clumsy: Visitor) -> None:
    clumsy.go_to("Ask")
    clumsy.question.fill("   ")
    clumsy.ask_button.click()
    expect(clumsy.answer.locator(".sr-notice")).to_contain_text(
        "The question is empty; type a question and ask again."
    )
    expect(clumsy.ask_button).to_be_enabled()


def test_a_question_without_end(clumsy: Visitor) -> None:
    """The box takes one character more than is read, so that the sentence can say so."""
    clumsy.go_to("Ask")
    clumsy.question.fill("why " * 5000)
    clumsy.ask_button.click()
    assert len(clumsy.question.input_value()) <= 2001
    sentence = clumsy.answer.locator(".sr-notice")
    expect(sentence).to_contain_text("at most 2,000")
    assert _is_one_sentence(sentence.inner_text())


def test_after_all_that_the_page_still_works(clumsy: Visitor) -> None:
    clumsy.go_to("Documents")
    clumsy.upload({"name": "good.txt", "mimeType": "text/plain", "buffer": b"The Osterly kettle is blue."})
    clumsy.wait_for_job("good.txt", "ready")
    clumsy.delete_document("good.txt")
    clumsy.go_to("Ask")
    clumsy.choose_collection("Sample")
    clumsy.ask("What does the Larkspur 3 weigh?")
    clumsy.wait_for_writing(timeout_ms=PATIENCE_MS)
    clumsy.stop()
