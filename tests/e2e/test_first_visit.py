"""The first seconds: what is there before anything was asked, at a desk and on a phone."""

import pytest
from playwright.sync_api import expect

from specrag.sample import questions
from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import DESKTOP, PHONE, Visitor

pytestmark = pytest.mark.browser
FIRST_PAINT_MS = 2000


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_everything_to_begin_with_is_there_and_nothing_sticks_out(arrive: Arrive, width: int) -> None:
    """Leaving checks that nothing was asked of another host and that the console has no error."""
    visitor = arrive(width=width)
    visitor.open()
    page = visitor.page
    expect(page.get_by_role("heading", name="specrag")).to_be_visible()
    expect(page.locator("#sr-header")).to_contain_text("smollm2-135m-instruct")
    expect(page.locator("#sr-header")).to_contain_text("11 documents")
    expect(visitor.question).to_be_visible()
    expect(visitor.ask_button).to_be_enabled()
    expect(visitor.stop_button).to_be_disabled()
    expect(visitor.examples).to_have_text([item.question for item in questions()])
    expect(visitor.answer).to_contain_text("Watch it think")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    visitor.go_to("Documents")
    expect(page.locator("#sr-upload")).to_be_visible()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_the_first_paint_is_soon(visitor: Visitor) -> None:
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert visitor.page.evaluate(paint) < FIRST_PAINT_MS


def test_the_server_says_that_it_is_ready_and_idle(visitor: Visitor, server: Server) -> None:
    assert visitor.page.request.get(f"{server.url}/health").json()["status"] == "ready"
    assert server.active() == {"runs": 0, "model_jobs": 0, "server_prompts": 0}
