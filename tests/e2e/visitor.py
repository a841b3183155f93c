"""A visitor: one browser context with one page, and the few things that a person does and sees there.

Methods say what is done or seen, never how the page is built; the element ids stand only here and in the tests
that are about an element. Whatever goes wrong unseen (a console error, an exception, a request to another
host) is collected in `problems`.
"""

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias, TypedDict, cast
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, ConsoleMessage, FilePayload, Locator, Page, Request, expect

Theme: TypeAlias = Literal["light", "dark"]
ENDED: Final = re.compile(r"^(Done|Stopped|Failed)")
DONE: Final = re.compile(r"^Done in ")
PATIENCE_MS: Final = 120_000
"""For a run on two busy cores; a test that is about speed states its own time."""
DESKTOP: Final = 1440
PHONE: Final = 390
_ACTION_MS: Final = 20_000
_CONNECTION_LOST: Final = (
    "AbortError",
    "Connection errored out",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "Unexpected error 404",
    "network error",
)
_LEAVING_S: Final = 5.0
"""So near to the loading of another page such a complaint comes from the one that is left."""

_RECORD: Final = """() => {
  window.recorded = [];
  let last = "";
  const texts = (root, query) => [...root.querySelectorAll(query)].map(e => e.textContent.trim());
  const take = () => {
    const cards = [...document.querySelectorAll("#sr-board article.sr-card")];
    const sample = {
      status: texts(document, "#sr-status .sr-status").join(),
      written: cards.map(card => texts(card, ".sr-text, .sr-draft-answer").join(" ").trim()),
      rates: cards.map(card => texts(card, ".sr-rate").join()),
      lanes: texts(document, "#sr-timeline .sr-lanes .sr-lane-label").filter(label => label),
      panel: !!document.querySelector("#sr-passages .sr-panel:popover-open"),
    };
    const key = JSON.stringify(sample);
    if (key !== last) window.recorded.push(sample);
    last = key;
  };
  new MutationObserver(take).observe(document.body, {subtree: true, childList: true, characterData: true});
  document.addEventListener("toggle", take, true);
}"""


class Sample(TypedDict):
    """What stood on the page at one moment of a run."""

    status: str
    written: list[str]
    rates: list[str]
    lanes: list[str]
    panel: bool


_CUT = """() => {
  const scrolls = (node) => {
    for (; node; node = node.parentElement)
      if (/auto|scroll/.test(getComputedStyle(node).overflowX)) return true;
    return false;
  };
  return [...document.querySelectorAll(".sr b, .sr p, .sr span, .sr time, .sr button, .sr dd, .sr li")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .filter((node) => node.checkVisibility() && !scrolls(node.parentElement) && !node.closest("[popover]"))
    .map((node) => node.textContent.trim().slice(0, 60));
}"""


class Visitor:
    """One person with one page, who takes a clean browser along."""

    def __init__(
        self, browser: Browser, url: str, *, width: int = DESKTOP, theme: Literal["light", "dark", ""] = ""
    ) -> None:
        self._url = url
        self._theme = theme
        self._context = browser.new_context(viewport={"width": width, "height": 900})
        self._context.set_default_timeout(_ACTION_MS)
        self.page: Page = self._context.new_page()
        self.problems: list[str] = []
        self._lost: list[tuple[float, str]] = []
        self._loaded: list[float] = []
        self.page.on("domcontentloaded", lambda _: self._loaded.append(time.monotonic()))
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        self._context.on("request", self._on_request)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.close()
        for (
            at,
            said,
        ) in self._lost:  # a page that is left complains of its connection; one that stays must not
            if not any(abs(at - loaded) < _LEAVING_S for loaded in self._loaded[1:]):
                self.problems.append(said)
        if kind is None:
            assert not self.problems, "\n".join(self.problems)

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._url

    def open(self, *, run: str = "") -> None:
        """Come to the page, or to one run, and wait until it has said what it has to say."""
        query = "&".join(
            f"{name}={value}" for name, value in (("run", run), ("__theme", self._theme)) if value
        )
        self.page.goto(f"{self._url}/?{query}" if query else self._url)
        expect(self.answer.locator(".sr-answer, .sr-notice, .sr-empty")).to_be_visible(timeout=PATIENCE_MS)
        if not run:
            expect(self.status).to_have_text("Ready.", timeout=PATIENCE_MS)

    @property
    def status(self) -> Locator:
        """The one line that says where the run stands."""
        return self.page.locator("#sr-status .sr-status")

    @property
    def answer(self) -> Locator:
        return self.page.locator("#sr-answer")

    @property
    def board(self) -> Locator:
        return self.page.locator("#sr-board")

    @property
    def cards(self) -> Locator:
        return self.board.locator("article.sr-card")

    @property
    def chips(self) -> Locator:
        """The passages that a draft read."""
        return self.page.locator("#sr-passages > * .sr-passages > .sr-chips .sr-chip[popovertarget*='-p']")

    @property
    def panel(self) -> Locator:
        """The passage that is open now."""
        return self.page.locator("#sr-passages .sr-panel:popover-open")

    @property
    def question(self) -> Locator:
        return self.page.locator("#sr-question textarea")

    @property
    def ask_button(self) -> Locator:
        return self.page.locator("#sr-ask")

    @property
    def stop_button(self) -> Locator:
        return self.page.locator("#sr-stop")

    @property
    def examples(self) -> Locator:
        return self.page.locator("#sr-examples button")

    @property
    def lanes(self) -> list[str]:
        """The names of the timeline's lanes."""
        labels = self.page.locator("#sr-timeline .sr-lanes .sr-lane-label").all_text_contents()
        return [label for label in labels if label]

    @property
    def run_id(self) -> str:
        """What the address says that can be shared; empty before the first run."""
        return run_of(self.page.url)

    def next_run(self, before: str = "") -> str:
        """Wait until the address names another run than `before`, which it does just after the page shows it."""
        self.page.wait_for_url(lambda url: run_of(url) not in {"", before})
        return self.run_id

    def ask(self, question: str) -> None:
        """Ask, and wait until the page follows the new run."""
        before = self.page.url
        self.question.fill(question)
        self.ask_button.click()
        self.page.wait_for_url(lambda url: url != before)

    def wait_for_writing(self, *, timeout_ms: float = PATIENCE_MS) -> None:
        """Wait until a draft has begun to appear in its card."""
        written = self.board.locator("[aria-busy=true] .sr-text").filter(has_text=re.compile(r"\w"))
        expect(written.first).to_be_visible(timeout=timeout_ms)

    def wait_for_end(self, state: re.Pattern[str] = ENDED) -> None:
        expect(self.status).to_have_text(state, timeout=PATIENCE_MS)
        expect(self.ask_button).to_be_enabled()

    def stop(self) -> None:
        self.stop_button.click()
        self.wait_for_end(re.compile("^Stopped"))

    def reload(self) -> None:
        """Load the page anew."""
        self.page.reload()
        expect(self.status).not_to_have_text("Starting.")

    def record(self) -> None:
        """Note from now on every change of the page; see `recorded`."""
        self.page.evaluate(_RECORD)

    @property
    def recorded(self) -> list[Sample]:
        return cast("list[Sample]", self.page.evaluate("window.recorded"))

    def go_to(self, tab: Literal["Ask", "Compare", "Traces", "Documents", "Evaluate"]) -> None:
        self.page.get_by_role("tab", name=tab, exact=True).click()

    def choose_collection(self, name: str) -> None:
        self._choose("#sr-collection", name)

    # How a question is answered

    @property
    def how(self) -> Locator:
        """The panel of options; its button opens and closes it."""
        return self.page.locator("#sr-how")

    @property
    def how_button(self) -> Locator:
        return self.how.locator("button").first

    @property
    def reader(self) -> Locator:
        """The line that stands in place of a board of drafts."""
        return self.board.locator(".sr-reader")

    @property
    def hops(self) -> Locator:
        return self.board.locator("li.sr-hop")

    def open_how(self) -> None:
        if not self.page.locator("#sr-pipeline").is_visible():
            self.how_button.click()
        expect(self.page.locator("#sr-pipeline")).to_be_visible()

    def choose_how(self, dropdown: str, option: str) -> None:
        """Choose in the panel of options: `dropdown` is pipeline, decision, partition or preset."""
        self.open_how()
        self._choose(f"#sr-{dropdown}", option)
        expect(self.page.locator(f"#sr-{dropdown} input")).to_have_value(re.compile(re.escape(option)))

    def set_drafts(self, number: int) -> None:
        self.open_how()
        box = self.page.locator("#sr-drafts input[type=number]")
        box.fill(str(number))
        box.blur()

    def fits(self) -> bool:
        """Whether nothing sticks out at the side, also where a card would cut it off."""
        return (
            bool(self.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")) and not self.cut
        )

    @property
    def cut(self) -> list[str]:
        """Texts that reach beyond the window and cannot be scrolled to."""
        found: list[str] = self.page.evaluate(_CUT)
        return found

    # Documents

    @property
    def jobs(self) -> Locator:
        """Files on their way, and those that did not arrive."""
        return self.page.locator("#sr-uploads .sr-job")

    @property
    def rows(self) -> Locator:
        """The documents of the collection."""
        return self.page.locator("#sr-documents-table .sr-file")

    @property
    def outcome(self) -> Locator:
        """What has come of the last thing that was done in the Documents tab."""
        return self.page.locator("#sr-documents-message .sr-notice")

    @property
    def dialog(self) -> Locator:
        """The question that is asked before something is done."""
        return self.page.locator("#sr-dialog[open]")

    @property
    def shelf(self) -> Locator:
        """What is said of the chosen collection."""
        return self.page.locator("#sr-collection-card .sr-shelf")

    def upload(self, files: Path | FilePayload | Sequence[Path] | Sequence[FilePayload]) -> None:
        self.page.locator("#sr-upload input[type=file]").set_input_files(files)

    def row(self, name: str) -> Locator:
        """The document of this title or file name."""
        return self.rows.filter(has_text=name)

    def job(self, name: str) -> Locator:
        """The newest upload of this name that is no document."""
        return self.jobs.filter(has_text=name).first

    def wait_for_job(self, name: str, state: str) -> Locator:
        """Wait until an upload is in this state; the line that says so, which is a document's if it is ready."""
        if state == "ready":
            expect(self.row(name)).to_be_visible(timeout=PATIENCE_MS)
            return self.row(name)
        expect(self.job(name).locator(".sr-badge")).to_have_text(state, timeout=PATIENCE_MS)
        return self.job(name)

    def do(self, where: Locator, button: str) -> None:
        """Press a button within a line; its name begins so for a screen reader."""
        where.get_by_role("button", name=re.compile(f"^{re.escape(button)}\\b")).click()

    def confirm(self, answer: str) -> None:
        """Answer the question that is asked."""
        self.dialog.get_by_role("button", name=answer, exact=True).click()
        expect(self.dialog).to_have_count(0)

    def dismiss_all(self) -> None:
        """Put away what other visitors of the same page have left in the list of uploads."""
        expect(self.page.locator("#sr-documents-table .sr-documents")).to_be_visible()
        while many := self.jobs.count():
            self.do(self.jobs.first, "Dismiss")
            expect(self.jobs).to_have_count(many - 1)

    def delete_document(self, source: str) -> None:
        self.do(self.row(source), "Delete")
        self.confirm("Delete")
        expect(self.row(source)).to_have_count(0)

    @property
    def chunks(self) -> Locator:
        """The chunks of the document that was chosen."""
        return self.page.locator("#sr-chunks li")

    def show_chunks(self, source: str) -> None:
        title = self.row(source).locator(".sr-file-title").inner_text()
        self.do(self.row(source), "Chunks")
        expect(self.page.locator("#sr-chunks h3")).to_contain_text(title)

    def choose_shelf(self, name: str) -> None:
        """Choose a collection in the Documents tab."""
        self._choose("#sr-documents-collection", name)
        expect(self.page.get_by_label(f"Collection {name}", exact=True)).to_be_visible()

    def make_shelf(self, title: str, description: str = "") -> None:
        """Make a collection and choose it."""
        self.do(self.shelf, "New")
        expect(self.page.locator("#sr-collection-heading")).to_have_text("A new collection")
        self.page.locator("#sr-collection-title input, #sr-collection-title textarea").fill(title)
        self.page.locator("#sr-collection-description textarea").fill(description)
        self.page.locator("#sr-collection-save").click()
        expect(self.page.get_by_label(f"Collection {title}", exact=True)).to_be_visible()

    def _choose(self, dropdown: str, option: str) -> None:
        self.page.locator(f"{dropdown} input").click()
        self.page.get_by_role("option").filter(has_text=option).first.click()

    def _on_console(self, message: ConsoleMessage) -> None:
        """Gradio asks how far an upload is, and complains if the upload was over before it asked."""
        where = message.location.get("url", "")
        if any(said in message.text for said in _CONNECTION_LOST):
            self._lost.append((time.monotonic(), f"console: {message.text} ({where})"))
            return
        if message.type == "error" and "/upload_progress" not in where and message.text != "Response":
            self.problems.append(f"console: {message.text} ({where})")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and not request.url.startswith(self._url):
            self.problems.append(f"request to another host: {request.url}")


def run_of(url: str) -> str:
    """The run that an address names, or nothing."""
    return parse_qs(urlsplit(url).query).get("run", [""])[0]


def sources_of(visitor: Visitor, buttons: Iterable[Locator]) -> list[str]:
    """The file behind each of these passages, as its panel names it."""
    sources = []
    for button in buttons:
        button.click()
        sources.append(visitor.panel.locator(".sr-meta dd").first.inner_text())
        visitor.page.keyboard.press("Escape")
        expect(visitor.panel).to_have_count(0)
    return sources
