"""Who knows the id of another's run, and writes it wherever a page takes one, sees and changes nothing."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, Request, expect

from specrag.tracing.store import TraceStore
from tests.e2e.quick_page import quick_page
from tests.e2e.visitor import DONE, Visitor

pytestmark = pytest.mark.browser
SECRET = "Zanzibar 7741"
QUESTION = f"Does the sample tell of {SECRET}?"
ACTS = ("run-open", "run-delete", "run-rate-up", "run-share", "run-export", "run-follow")
_SOON_S = 10.0
_SOON_MS = _SOON_S * 1000
_WRITE = """([place, text]) => {
  const box = document.querySelector(`${place} :is(textarea, input)`);
  box.value = text;
  box.dispatchEvent(new Event("input", {bubbles: true}));
  box.dispatchEvent(new KeyboardEvent("keypress", {bubbles: true, key: " "}));
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stolen:
    """A run of the first visitor, and the second one, who knows its id."""

    store: TraceStore
    run_id: str
    thief: Visitor

    def write(self, place: str, text: str) -> None:
        """Put a text into a box that nobody sees."""
        self.thief.page.evaluate(_WRITE, [place, text])

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Wait until the server has answered whatever it was asked; the page may drop a stream it has read."""
        page, ended = self.thief.page, list[Request]()

        def heard(told: Request) -> None:
            ended.append(told)

        page.on("requestfinished", heard)
        page.on("requestfailed", heard)
        yield
        limit = time.monotonic() + _SOON_S
        while not any("/queue/data" in one.url for one in ended):
            assert time.monotonic() < limit, "the server was not asked"
            page.wait_for_timeout(50)
        page.remove_listener("requestfinished", heard)
        page.remove_listener("requestfailed", heard)

    def press(self, act: str) -> None:
        """Say what a button of the first visitor would say."""
        value = "json" if act == "run-export" else "on"
        told = {"action": act, "id": self.run_id, "value": value, "turn": act}
        self.write(".sr-acts-run-fork" if act == "run-fork" else ".sr-acts-run", json.dumps(told))

    def come(self) -> None:
        """Open the page anew, where sentences about runs are seen."""
        self.thief.open()
        self.thief.page.get_by_role("tab", name="Traces").click()
        expect(self.thief.page.locator("#sr-runs h3")).to_be_visible()

    @property
    def refused(self) -> Locator:
        """The sentence to a run that is not there."""
        return self.thief.page.get_by_text(f"There is no run “{self.run_id}” here")

    def check(self) -> None:
        """Nothing was told, and nothing has changed."""
        assert SECRET not in self.thief.page.content()
        kept = self.store.summary(self.run_id)
        assert (kept.feedback, kept.shared) == (None, False)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, TraceStore]]:
    home = tmp_path_factory.mktemp("home")
    with quick_page(home, ACCESS="visitor") as server:
        yield server.url, TraceStore(home / "traces.db")


@pytest.fixture(scope="module")
def stolen(browser: Browser, page: tuple[str, TraceStore]) -> Iterator[Stolen]:
    url, store = page
    with ExitStack() as leaving:
        owner, thief = (leaving.enter_context(Visitor(browser, url)) for _ in range(2))
        owner.open()
        owner.ask(QUESTION)
        owner.wait_for_end(DONE)
        thief.open()
        yield Stolen(store=store, run_id=owner.run_id, thief=thief)


@pytest.mark.parametrize("act", ACTS)
def test_no_button_does_anything_with_anothers_run(stolen: Stolen, act: str) -> None:
    """A page that trusts its own buttons would delete whatever is written on them."""
    stolen.come()
    stolen.press(act)
    expect(stolen.refused).to_be_visible(timeout=_SOON_MS)
    stolen.check()


def test_a_page_that_says_it_shows_anothers_run_is_told_nothing_of_it(stolen: Stolen) -> None:
    """What a page fills in by itself comes from a browser all the same."""
    stolen.come()
    with stolen.answered():
        stolen.write("#sr-run-id", stolen.run_id)
    stolen.check()


def test_a_page_that_says_it_opened_anothers_run_gets_no_form_to_fork_it(stolen: Stolen) -> None:
    """The form is filled with the settings of the run that the page has open."""
    stolen.come()
    stolen.write("#sr-trace-id", stolen.run_id)
    with stolen.answered():
        stolen.press("run-fork")
    stolen.check()


def test_a_link_to_anothers_run_is_refused(stolen: Stolen) -> None:
    stolen.thief.open()
    stolen.write("#sr-show", stolen.run_id)
    expect(stolen.thief.answer).to_contain_text(f"There is no run “{stolen.run_id}” here", timeout=_SOON_MS)
    stolen.check()
