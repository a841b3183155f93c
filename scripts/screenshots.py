"""Take the pictures of the page, with real runs: `python -m scripts.screenshots`.

From the root of the repository; with `--url` for a server that runs already (two small files are then added
to its documents). `--only ask-light,map` takes some of them again. Chromium does the rest.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, expect

from specrag.config import load_settings
from specrag.models.weights import Weights
from tests.e2e.serving import ROOT, chromium, serving
from tests.e2e.visitor import DESKTOP, DONE, PATIENCE_MS, PHONE, Theme, Visitor
from tests.made_files import docx, pdf

FOLDER: Final = ROOT / "assets" / "screenshots"
QUESTION: Final = "What is the maximum load of the Larkspur 3?"
"""The documents dispute it."""
MANUAL: Final = (
    "The Corvale lamp holds 640 watt-hours.\nIt weighs 3.4 kilograms.\nIt glows for nine nights.",
    "Charge it in the shade.\nA full charge takes six hours.\nKeep the contacts dry.",
)
HISTORY: Final = (
    "<w:p><w:r><w:t>The Corvale lamp was invented by Ines Tolland in 1931 in Sarn.</w:t></w:r></w:p>"
)
QUALITY: Final = 82
"""Of WebP; text stays sharp, and a picture is a quarter of its size as a PNG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture: how the page comes to look so, from a finished run that it shows on the Ask tab."""

    name: str
    pose: Callable[[Visitor], None]
    width: int = DESKTOP
    theme: Theme = "light"
    part: str = ""
    """Selector of what is taken; empty takes the whole page."""
    screen: bool = False
    """Whether only what fits the window is taken."""


def main() -> None:
    """Parse the command line and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="a server that runs already; without it, one is started")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the pictures go")
    parser.add_argument("--only", default="", help="names of pictures, with commas between them")
    parser.add_argument("--run", default="", help="a finished run of that server; without it, one is asked")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = set(filter(None, arguments.only.split(",")))
    with _server(arguments.url) as url, chromium() as browser:
        run_id = arguments.run or _asked(browser, url)
        for picture in PICTURES:
            if not wanted or picture.name in wanted:
                _take(browser, url, run_id, picture, arguments.out)


@contextmanager
def _server(url: str | None) -> Iterator[str]:
    if url:
        yield url.rstrip("/")
        return
    weights = Weights(home=load_settings().home)
    embedder, model = weights.ensure("all-minilm-l6-v2"), weights.ensure("smollm2-135m-instruct")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        serving(Path(home), embedder=embedder, model=model) as server,
    ):
        yield server.url


def _asked(browser: Browser, url: str) -> str:
    """A finished run."""
    with Visitor(browser, url) as visitor:
        visitor.open()
        visitor.ask(QUESTION)
        visitor.wait_for_end(DONE)
        return visitor.run_id


def _take(browser: Browser, url: str, run_id: str, picture: Picture, folder: Path) -> None:
    with Visitor(browser, url, width=picture.width, theme=picture.theme) as visitor:
        visitor.open(run=run_id)
        expect(visitor.page.locator("#sr-header")).to_contain_text("documents", timeout=PATIENCE_MS)
        visitor.question.blur()
        picture.pose(visitor)
        visitor.page.mouse.move(0, 0)
        taken: bytes
        if picture.part:
            taken = visitor.page.locator(picture.part).first.screenshot(animations="disabled")
        else:
            taken = visitor.page.screenshot(full_page=not picture.screen, animations="disabled")
        path = folder / f"{picture.name}.webp"
        Image.open(BytesIO(taken)).convert("RGB").save(path, quality=QUALITY, method=6)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


# How the page comes to look so


def _finished(visitor: Visitor) -> None:
    bar = visitor.page.locator("#sr-plot .bars .point path").first
    expect(bar).to_be_visible(timeout=PATIENCE_MS)


def _scrolled(visitor: Visitor) -> None:
    visitor.page.locator("#sr-status").evaluate("status => status.scrollIntoView()")


def _coloured(visitor: Visitor) -> None:
    visitor.page.locator("#sr-colour label").nth(1).click()
    expect(visitor.board.locator(".sr-token").first).to_be_visible(timeout=PATIENCE_MS)


def _compared(visitor: Visitor) -> None:
    visitor.go_to("Compare")
    page = visitor.page
    page.locator("#sr-compare-question textarea").fill(QUESTION)
    page.locator("#sr-compare-go").click()
    expect(page.locator("#sr-compare-table table").first).to_be_visible(timeout=4 * PATIENCE_MS)
    page.locator("#sr-compare-question textarea").blur()


def _listed(visitor: Visitor) -> None:
    visitor.go_to("Traces")
    opener = visitor.page.locator('#sr-runs [data-sr-action="run-open"]').first
    expect(opener).to_be_visible(timeout=PATIENCE_MS)


def _opened(visitor: Visitor) -> None:
    run_id = visitor.run_id
    _listed(visitor)
    visitor.page.locator(f'#sr-runs [data-sr-action="run-open"][data-sr-id="{run_id}"]').first.click()
    expect(visitor.page.locator("#sr-detail .sr-card").first).to_be_visible(timeout=PATIENCE_MS)


def _detail(part: str) -> Callable[[Visitor], None]:
    def pose(visitor: Visitor) -> None:
        _opened(visitor)
        tabs = visitor.page.locator("#sr-detail-tabs .tab-wrapper").first
        tab = tabs.get_by_role("tab", name=part, exact=True)
        if tab.is_visible():
            tab.click()
        else:  # on a phone some are behind a menu
            tabs.locator(".overflow-menu > button").click()
            tabs.locator(".overflow-dropdown").get_by_text(part, exact=True).click()
        expect(visitor.page.locator("#sr-detail-tabs [aria-selected=true]")).to_contain_text(part)

    return pose


def _viewer(visitor: Visitor) -> None:
    visitor.answer.locator(".sr-cite").first.click()
    expect(visitor.page.locator("#sr-viewer .sr-leaf-text mark").first).to_be_visible(timeout=PATIENCE_MS)


def _documents(visitor: Visitor) -> None:
    visitor.go_to("Documents")
    with tempfile.TemporaryDirectory() as folder:
        manual, history = Path(folder) / "lamp-manual.pdf", Path(folder) / "lamp-history.docx"
        manual.write_bytes(pdf(*MANUAL))
        history.write_bytes(docx(HISTORY))
        visitor.upload([manual, history])
        for path in (manual, history):
            expect(visitor.rows.filter(has_text=path.name)).to_have_count(1, timeout=PATIENCE_MS)


def _evaluated(visitor: Visitor) -> None:
    visitor.go_to("Evaluate")
    page = visitor.page
    page.locator("#sr-trial > button").click()
    page.locator("#sr-trial-go").click()
    title = page.locator("#sr-evaluate-head").get_by_text("Evaluation: sample")
    expect(title).to_be_visible(timeout=10 * PATIENCE_MS)
    expect(page.locator("#sr-evaluate-plot-0 path.point").first).to_be_visible(timeout=PATIENCE_MS)
    page.locator("#sr-trial > button").click()


def _touring(visitor: Visitor) -> None:
    page = visitor.page
    page.emulate_media(reduced_motion="reduce")
    page.locator("#sr-tour-open").click()
    expect(page.locator("#sr-tour-text p").first).to_contain_text("“")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#sr-tour-number")).to_have_text("5")
    page.wait_for_timeout(500)  # the page has scrolled to the light


def _presenting(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1920, "height": 1080})
    visitor.page.locator("#sr-present").click()
    expect(visitor.page.locator("#sr-present-question")).to_be_visible()


PICTURES: Final = (
    Picture(name="ask-light", pose=_finished),
    Picture(name="ask-dark", pose=_finished, theme="dark"),
    Picture(name="ask-phone", pose=_scrolled, width=PHONE, screen=True),
    Picture(name="dispute", pose=_scrolled, part="#sr-answer"),
    Picture(name="token-colours", pose=_coloured, part="#sr-board"),
    Picture(name="compare", pose=_compared),
    Picture(name="traces", pose=_listed),
    Picture(name="detail", pose=_detail("Scores")),
    Picture(name="map", pose=_detail("Map")),
    Picture(name="what-if", pose=_detail("What if"), theme="dark"),
    Picture(name="viewer", pose=_viewer, screen=True),
    Picture(name="documents", pose=_documents),
    Picture(name="evaluate", pose=_evaluated),
    Picture(name="tour", pose=_touring, screen=True),
    Picture(name="presenter", pose=_presenting, theme="dark"),
)


if __name__ == "__main__":
    main()
