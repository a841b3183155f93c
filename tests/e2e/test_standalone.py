"""The exported page in a browser without a server: it opens from the disk, alone and readable everywhere."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from specrag.tracing.trace import Trace
from specrag.ui.exporting import export_run
from tests.ui_runs import MULTIHOP, STANDARD
from tests.ui_traces import DISPUTED, HOSTILE_TRACE

pytestmark = pytest.mark.browser

_SPREAD = "() => document.documentElement.scrollWidth - innerWidth"
RUNS = {"disputed": DISPUTED, "hops": MULTIHOP, "standard": STANDARD, "hostile": HOSTILE_TRACE}


class Reader:
    """Somebody who got the file by mail, and what their browser did with it."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page, self.path = page, path
        self.said: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())


def opened(
    browser: Browser,
    folder: Path,
    trace: Trace,
    *,
    width: int = 1440,
    scheme: Literal["light", "dark"] = "light",
) -> Reader:
    path = folder / "run.html"
    path.write_bytes(export_run(trace, (), "html"))
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    return Reader(context.new_page(), path)


@pytest.mark.parametrize("name", sorted(RUNS))
@pytest.mark.parametrize("width", [390, 1440])
def test_it_opens_offline_without_a_request_or_a_complaint(
    browser: Browser, tmp_path: Path, name: str, width: int
) -> None:
    reader = opened(browser, tmp_path, RUNS[name], width=width)
    expect(reader.page.locator("h1")).to_be_visible()
    assert reader.requests == [reader.path.as_uri()]
    assert reader.said == []
    assert reader.page.evaluate(_SPREAD) == 0, "the page scrolls sideways"
    reader.page.context.close()


def test_passages_and_prompts_open_without_a_script(browser: Browser, tmp_path: Path) -> None:
    reader = opened(browser, tmp_path, DISPUTED)
    page = reader.page
    page.locator(".sr-chip").first.click()
    panel = page.locator(".sr-panel:popover-open")
    expect(panel).to_contain_text("Visiting boats report on arrival")
    expect(panel.get_by_role("button", name="Open in the document")).to_be_hidden()
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_have_count(0)
    page.locator(".sr-card summary").first.click()
    expect(page.locator(".sr-card pre").first).to_contain_text("Use only the evidence.")
    page.locator("summary", has_text="settings").press("Enter")
    expect(page.get_by_role("columnheader", name="tokens read")).to_be_visible()
    assert len(reader.requests) == 1
    page.context.close()


def test_a_sentence_leads_to_its_evidence_in_the_file(browser: Browser, tmp_path: Path) -> None:
    """The links led to marks in panels that nothing opens: there is no script in the file that would."""
    reader = opened(browser, tmp_path, DISPUTED)
    said = reader.page.locator(".sr-said").first
    said.focus()
    reader.page.keyboard.press("Enter")
    mark = reader.page.locator(said.get_attribute("href") or "")
    expect(mark).to_be_in_viewport()
    place = reader.page.evaluate("scrollY")
    panel = reader.page.locator(".sr-panel").filter(has=mark)
    panel.get_by_role("link", name="Close").click()
    expect(panel).to_be_hidden()
    assert reader.page.evaluate("scrollY") == place, "the reader is taken away from the draft"
    assert len(reader.requests) == 1
    reader.page.context.close()


def test_it_is_light_or_dark_as_the_system_is(browser: Browser, tmp_path: Path) -> None:
    seen = []
    for scheme in ("light", "dark"):
        page = opened(browser, tmp_path, DISPUTED, scheme=scheme).page
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert seen == ["rgb(247, 247, 245)", "rgb(18, 20, 23)"]


def test_its_policy_stops_what_an_escape_would_let_through(browser: Browser, tmp_path: Path) -> None:
    """The second wall: markup that got in could still load nothing and run nothing."""
    path = tmp_path / "broken.html"
    html = export_run(replace(DISPUTED, question="here"), (), "html").decode()
    bad = '<img src="http://192.0.2.1/x.png"><script>document.title = "taken"</script>'
    path.write_text(html.replace("</main>", f"{bad}</main>"), encoding="utf-8")
    reader = Reader(browser.new_context(offline=True).new_page(), path)
    assert reader.page.title() != "taken"
    assert [text for text in reader.said if "Content Security Policy" in text]
    reader.page.context.close()
