"""Take the pictures of the page: a finished real run and the Documents tab, light and dark, wide and narrow.

From the root of the repository: `python -m scripts.screenshots`, or with `--url` for a server that runs
already (two small files are then added to its documents). Chromium does the rest.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

from PIL import Image
from playwright.sync_api import Browser, expect

from specrag.config import load_settings
from specrag.models.weights import Weights
from tests.e2e.serving import ROOT, chromium, serving
from tests.e2e.visitor import DESKTOP, DONE, PHONE, Visitor
from tests.made_files import docx, pdf

FOLDER: Final = ROOT / "assets" / "screenshots"
MANUAL: Final = (
    "The Corvale lamp holds 640 watt-hours.\nIt weighs 3.4 kilograms.\nIt glows for nine nights.",
    "Charge it in the shade.\nA full charge takes six hours.\nKeep the contacts dry.",
)
HISTORY: Final = (
    "<w:p><w:r><w:t>The Corvale lamp was invented by Ines Tolland in 1931 in Sarn.</w:t></w:r></w:p>"
)
_COLOURS: Final = 256
"""Enough for a page of flat colours; a picture is then a third of its size."""


def main() -> None:
    """Parse the command line and take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="a server that runs already; without it, one is started")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the pictures go")
    parser.add_argument("--example", type=int, default=0, help="which example question, from 0")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with _server(arguments.url) as url, chromium() as browser:
        run_id = _prepare(browser, url, arguments.example)
        themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for theme in themes:
            for width in (DESKTOP, PHONE):
                with Visitor(browser, url, width=width, theme=theme) as visitor:
                    _take(visitor, run_id, arguments.out, f"{theme}-{width}")


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


def _prepare(browser: Browser, url: str, example: int) -> str:
    """Have something to show: a finished run, whose id this is, and two files."""
    with Visitor(browser, url) as visitor, tempfile.TemporaryDirectory() as folder:
        visitor.open()
        visitor.examples.nth(example).click()
        visitor.wait_for_end(DONE)
        run_id = visitor.run_id
        manual, history = Path(folder) / "lamp-manual.pdf", Path(folder) / "lamp-history.docx"
        manual.write_bytes(pdf(*MANUAL))
        history.write_bytes(docx(HISTORY))
        visitor.go_to("Documents")
        visitor.upload([manual, history])
        for path in (manual, history):
            expect(visitor.rows.filter(has_text=path.name)).to_have_count(1)
        return run_id


def _take(visitor: Visitor, run_id: str, folder: Path, look: str) -> None:
    visitor.open(run=run_id)
    expect(visitor.page.locator("#sr-plot .bars .point path").first).to_be_visible()
    expect(visitor.page.locator("#sr-header")).to_contain_text("documents")
    visitor.question.blur()
    _save(visitor, folder / f"ask-{look}.png")
    visitor.go_to("Documents")
    expect(visitor.rows.first).to_be_visible()
    _save(visitor, folder / f"documents-{look}.png")


def _save(visitor: Visitor, path: Path) -> None:
    picture = Image.open(BytesIO(visitor.page.screenshot(full_page=True, animations="disabled")))
    picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
