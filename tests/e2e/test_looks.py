"""Light and dark: both are there, and the text can be read in either."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, cast

import pytest
from playwright.sync_api import Browser, expect

from specrag.tracing.store import TraceStore
from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import DONE, PHONE, Visitor
from tests.ui_runs import DRAFTER, FEW, MULTIHOP, STANDARD, SYNTHESISED
from tests.ui_traces import DISPUTED

pytestmark = pytest.mark.browser
LEAST_CONTRAST = 4.5
READ = (
    ".sr-brand",
    ".sr-models p",
    ".sr-caveat",
    "#sr-question textarea",
    "#sr-examples button",
    "#sr-ask",
    "#sr-status .sr-status",
    ".sr-eyebrow",
    ".sr-answer-text",
    ".sr-reason",
    ".sr-figures dt",
    ".sr-chip",
    ".sr-card h3",
    ".sr-rate",
    ".sr-perspective",
    ".sr-card .sr-source",
    ".sr-card .sr-label",
    ".sr-card .sr-text",
    ".sr-draft-answer",
    ".sr-score dt",
    ".sr-value",
    ".sr-lane-label",
    ".sr-tick span",
)

KEPT = {
    "standard": (STANDARD, (".sr-reader p", ".sr-look-direct .sr-eyebrow")),
    "drafter": (DRAFTER, (".sr-reader p",)),
    "few": (FEW, (".sr-reader p",)),
    "multihop": (MULTIHOP, (".sr-hop h3", ".sr-hop-query bdi", ".sr-hop .sr-label", ".sr-hop .sr-chip")),
    "synthesised": (SYNTHESISED, (".sr-ribbon-author", ".sr-everywhere", ".sr-look-synthesised .sr-reason")),
    "disputed": (DISPUTED, (".sr-disputed p", ".sr-disputed .sr-source", ".sr-disputed time")),
}
"""Runs as they are kept, with the text that only they have."""

_CONTRAST = """selectors => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, under) => {
    const alpha = top[3] / 255;
    return [0, 1, 2].map(i => top[i] * alpha + under[i] * (1 - alpha)).concat(255);
  };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 255]);
  };
  const light = colour => {
    const [r, g, b] = colour.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = element => {
    const back = behind(element);
    const two = [light(over(rgba(getComputedStyle(element).color), back)), light(back)].sort((a, b) => b - a);
    return (two[0] + 0.05) / (two[1] + 0.05);
  };
  return Object.fromEntries(selectors.map(selector => {
    const found = [...document.querySelectorAll(selector)];
    return [selector, found.length ? Math.min(...found.map(contrast)) : null];
  }));
}"""


@pytest.fixture(scope="module")
def run_id(browser: Browser, server: Server) -> Iterator[str]:
    """A finished run, which all looks are taken of."""
    with Visitor(browser, server.url) as visitor:
        visitor.open()
        visitor.examples.nth(3).click()
        visitor.wait_for_end(DONE)
        yield visitor.next_run()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_text_stands_out(arrive: Arrive, run_id: str, theme: Literal["light", "dark"]) -> None:
    visitor = arrive(theme=theme)
    visitor.open(run=run_id)
    expect(visitor.cards).to_have_count(4)
    expect(visitor.page.locator("#sr-header .sr-caveat")).to_be_visible()
    _reads_well(visitor, READ)


def _reads_well(visitor: Visitor, selectors: Sequence[str]) -> None:
    contrasts = cast("dict[str, float | None]", visitor.page.evaluate(_CONTRAST, list(selectors)))
    assert {selector for selector, contrast in contrasts.items() if contrast is None} == set()
    low = {s: round(c, 2) for s, c in contrasts.items() if c is not None and c < LEAST_CONTRAST}
    assert low == {}


@pytest.fixture(scope="module")
def kept(server: Server) -> str:
    """Keep a run of every kind on the server; the prefix of their ids."""
    store = TraceStore(server.home / "traces.db")
    for name, (trace, _) in KEPT.items():
        store.save(replace(trace, run_id=f"kept-{name}"), [])
    return "kept-"


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_run_of_every_kind_reads_well_and_fits_on_a_phone(
    arrive: Arrive, kept: str, name: str, theme: Literal["light", "dark"]
) -> None:
    visitor = arrive(theme=theme, width=PHONE)
    visitor.open(run=kept + name)
    expect(visitor.status).to_have_text(DONE)
    expect(visitor.page.locator("#sr-plot .bars .point path").first).to_be_visible()
    assert visitor.fits()
    _reads_well(visitor, KEPT[name][1])


def test_dark_is_dark_and_light_is_light(arrive: Arrive) -> None:
    backgrounds = {}
    for theme in ("light", "dark"):
        visitor = arrive(theme=theme)
        visitor.open()
        colour = visitor.page.evaluate(
            "getComputedStyle(document.querySelector('gradio-app')).backgroundColor"
        )
        backgrounds[theme] = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    assert min(backgrounds["light"]) > 200
    assert max(backgrounds["dark"]) < 60


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_finished_run_fits_on_a_phone(arrive: Arrive, run_id: str, theme: Literal["light", "dark"]) -> None:
    visitor = arrive(theme=theme, width=PHONE)
    visitor.open(run=run_id)
    expect(visitor.page.locator("#sr-plot .bars .point path").first).to_be_visible()
    assert visitor.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    visitor.chips.first.click()
    panel = visitor.panel.bounding_box()
    assert panel
    assert panel["x"] >= 0
    assert panel["x"] + panel["width"] <= PHONE
