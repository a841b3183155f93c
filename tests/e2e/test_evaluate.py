"""The Evaluate tab as a visitor uses it: reports that are kept or handed in, and a small evaluation."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from specrag.evaluation.shelf import Shelf
from specrag.ui.report.page import report_page
from tests.e2e.axe import SERIOUS, findings
from tests.e2e.quick_page import quick_page
from tests.e2e.serving import Server
from tests.e2e.visitor import PHONE, Theme, Visitor
from tests.report_samples import HOSTILE, evaluation, latency

pytestmark = pytest.mark.browser
PATIENCE_MS: Final = 60_000
ROW: Final = {
    "id": "q1",
    "question": "How heavy is the battery?",
    "answers": ["3.4 kilograms"],
    "passages": [{"title": f"Page {n}", "text": f"The battery weighs {n}.4 kilograms."} for n in range(1, 6)],
}


@pytest.fixture(scope="module")
def page_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page over scripted models with two kept reports, an evaluation the newer."""
    home = tmp_path_factory.mktemp("evaluate")
    shelf = Shelf(home)
    first = shelf.keep(latency())
    (home / "reports" / first).rename(home / "reports" / f"20200101T000000{first[15:]}")
    shelf.keep(evaluation())
    with quick_page(home) as started:
        yield started


@pytest.fixture
def visitor(browser: Browser, page_server: Server) -> Iterator[Visitor]:
    with Visitor(browser, page_server.url) as arrived:
        arrived.open()
        arrived.go_to("Evaluate")
        yield arrived


def title(page: Page) -> Locator:
    return page.locator("#sr-evaluate-head h2")


def plots(page: Page) -> Locator:
    return page.locator("#sr-evaluate .js-plotly-plot:visible")


def status(page: Page) -> Locator:
    return page.locator("#sr-evaluate-status .sr-status")


def hand_in(page: Page, path: Path) -> None:
    """As a person does: what only sets the files of an input is not told of those that it has already."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a report from a file").click()
    chooser.value.set_files(path)


def open_form(page: Page) -> None:
    page.locator("#sr-trial > button").click()
    expect(page.locator("#sr-trial-go")).to_be_visible()


def test_the_newest_report_is_shown_and_others_can_be_opened(visitor: Visitor) -> None:
    page = visitor.page
    expect(title(page)).to_have_text("Evaluation: bikes, bells")
    expect(plots(page)).to_have_count(5)
    expect(page.locator("#sr-evaluate")).to_contain_text("no difference shown")
    page.locator("#sr-evaluate-kept").get_by_role("button", name=re.compile("^Open.*smollm2-1.7b")).click()
    expect(title(page)).to_have_text("Latency: smollm2-135m drafts, smollm2-1.7b verifies")
    expect(plots(page)).to_have_count(3)
    expect(page.locator("#sr-evaluate-rest")).to_contain_text("Cost of 1,000 questions")
    expect(title(page)).to_be_focused()


def test_a_report_from_a_file_is_shown_and_not_kept(visitor: Visitor, tmp_path: Path) -> None:
    """A hostile one shows its texts as texts."""
    page = visitor.page
    expect(title(page)).to_be_visible()
    kept = page.locator("#sr-evaluate-kept li")
    before = kept.count()
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(evaluation(dataset=HOSTILE)))
    hand_in(page, path)
    expect(title(page)).to_contain_text("<img src=x")
    expect(page.locator("#sr-evaluate-message")).to_contain_text("on this page only")
    assert kept.count() == before


def test_a_file_is_handed_in_again_after_it_was_mended(visitor: Visitor, tmp_path: Path) -> None:
    """A file of the same name would be taken for the one before, and so would the same file once more."""
    page = visitor.page
    expect(title(page)).to_be_visible()
    path = tmp_path / "mine.json"
    path.write_text('{"schema": "specrag.eval/1"}')
    hand_in(page, path)
    expect(page.locator("#sr-evaluate-message")).to_contain_text("is no whole report")
    for name in ("mended", "mended again"):
        path.write_text(json.dumps(evaluation(dataset=name)))
        hand_in(page, path)
        expect(title(page)).to_have_text(f"Evaluation: {name}")
    page.locator("#sr-evaluate-kept").get_by_role("button", name=re.compile("^Open.*bells")).click()
    expect(title(page)).to_have_text("Evaluation: bikes, bells")
    hand_in(page, path)
    expect(title(page)).to_have_text("Evaluation: mended again")


def test_a_kept_report_is_saved(visitor: Visitor) -> None:
    page = visitor.page
    for button, ending in (("Save page", "html"), ("Save JSON", "json")):
        with page.expect_download() as saved:
            page.locator("#sr-evaluate-kept").get_by_role(
                "button", name=re.compile(f"^{button}.*bells")
            ).click()
        assert saved.value.suggested_filename == f"specrag-Evaluation-bikes-bells.{ending}"


def test_a_small_evaluation_of_the_sample(visitor: Visitor) -> None:
    """With progress, and a report that is on the shelf afterwards."""
    page = visitor.page
    open_form(page)
    page.locator("#sr-trial-go").click()
    expect(status(page)).to_have_text("The evaluation is done; its report is below.", timeout=PATIENCE_MS)
    expect(title(page)).to_have_text("Evaluation: sample")
    expect(page.locator("#sr-evaluate-kept li").first).to_contain_text("sample: 7 questions")
    expect(page.locator("#sr-trial-go")).to_be_enabled()


def test_a_file_of_questions(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    open_form(page)
    path = tmp_path / "bikes.jsonl"
    page.get_by_label("A file of questions", exact=True).check()
    path.write_text("no json")
    page.locator("#sr-trial-file input[type=file]").set_input_files(path)
    expect(page.locator("#sr-trial-file")).to_contain_text("bikes")
    page.locator("#sr-trial-go").click()
    expect(page.locator("#sr-evaluate-message")).to_contain_text("it is not JSON")


def test_on_a_page_for_strangers_nobody_starts_one(browser: Browser, tmp_path: Path) -> None:
    """They would keep the models busy; and a command line names files of the machine."""
    Shelf(tmp_path).keep(evaluation())
    with quick_page(tmp_path, ACCESS="visitor") as server, Visitor(browser, server.url) as stranger:
        stranger.open()
        stranger.go_to("Evaluate")
        page = stranger.page
        expect(title(page)).to_be_visible()
        expect(page.locator("#sr-evaluate")).not_to_contain_text("/home/ada")
        page.locator("#sr-trial > button").click()
        expect(page.locator("#sr-trial")).to_contain_text("starts no evaluations")
        expect(page.locator("#sr-trial-go")).to_have_count(0)


def test_without_a_report_the_page_says_how_to_make_one(browser: Browser, tmp_path: Path) -> None:
    with quick_page(tmp_path) as server, Visitor(browser, server.url) as arrived:
        arrived.open()
        arrived.go_to("Evaluate")
        expect(arrived.page.locator("#sr-evaluate-head .sr-empty")).to_contain_text("specrag eval")
        expect(plots(arrived.page)).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone(browser: Browser, page_server: Server, theme: Theme) -> None:
    with Visitor(browser, page_server.url, width=PHONE, theme=theme) as arrived:
        arrived.open()
        arrived.page.get_by_role("tab", name="Evaluate", exact=True).click()
        expect(plots(arrived.page).first).to_be_visible()
        assert arrived.fits(), arrived.cut


@pytest.mark.parametrize(
    ("made", "figures"),
    [(evaluation(), 5), (latency(), 3), (evaluation(dataset=HOSTILE, command=HOSTILE), 5)],
    ids=["evaluation", "latency", "hostile"],
)
@pytest.mark.parametrize("width", [1440, PHONE])
def test_the_file_opens_offline(
    browser: Browser, tmp_path: Path, width: int, made: dict[str, Any], figures: int
) -> None:
    """Its figures are drawn although its policy forbids nearly everything, and nothing is asked for."""
    path = tmp_path / "report.html"
    path.write_text(report_page(made))
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:", "blob:")) else problems.append(request.url)
        ),
    )
    page.goto(path.as_uri())
    expect(page.locator("[data-sr-figure] .main-svg").first).to_be_visible()
    assert page.locator("[data-sr-figure].js-plotly-plot").count() == figures
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert not problems
    context.close()


@pytest.mark.parametrize("width", [1440, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("made", [evaluation(), latency()], ids=["evaluation", "latency"])
def test_the_file_has_no_serious_finding(
    browser: Browser, tmp_path: Path, theme: Theme, width: int, made: dict[str, Any]
) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_page(made))
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.locator("[data-sr-figure] .main-svg").first).to_be_visible()
    found = [one for one in findings(page) if one.impact in SERIOUS]
    context.close()
    assert not found
