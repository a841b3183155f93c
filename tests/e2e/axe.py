"""axe-core over the page: how each state is reached, what is found there, and what cannot be helped.

axe-core itself (MPL-2.0) comes with the package axe-playwright-python, a tool for the tests alone.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from playwright.sync_api import Page, expect

from tests.e2e.visitor import PATIENCE_MS, Visitor

RUN: Final = "walkthrough-disputed"
"""A run that the server's store holds; see `scripts.check_page.keep_recordings`."""
SERIOUS: Final = frozenset({"serious", "critical"})
EXCEPTIONS: Final = {
    ("aria-prohibited-attr", 'class="empty '): "gradio's empty plot, a <div> with a label and no role",
}
"""Findings in gradio's own components, by rule and a part of the element's HTML, with the reason.

Not by its selector: of an element that goes while axe-core reads, that is the whole page's."""
_RUN_AXE: Final = """async () => {
  const fleeting = document.getAnimations().filter(({effect}) => effect.getTiming().iterations !== Infinity);
  const over = Promise.all(fleeting.map((one) => one.finished.catch(() => {})));
  await Promise.race([over, new Promise((go) => setTimeout(go, 2000))]);  // else a colour between two is read
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, impact, nodes }) =>
    nodes.map((node) => ({ rule: id, impact, target: node.target.join(" "), html: node.html.slice(0, 200) })));
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that axe-core does not like."""

    rule: str
    impact: str
    target: str
    html: str

    @property
    def excused(self) -> bool:
        """Whether gradio makes it and we cannot change it."""
        return any(rule == self.rule and part in self.html for rule, part in EXCEPTIONS)


def findings(page: Page) -> list[Finding]:
    """What axe-core finds on the page as it is now."""
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate(_RUN_AXE)
    return [Finding(**item) for item in found]


def _empty(visitor: Visitor) -> None:
    visitor.open()


def _tour(visitor: Visitor) -> None:
    visitor.page.locator("#sr-tour-open").click()
    expect(visitor.page.locator("#sr-tour-text p").first).to_be_visible(timeout=PATIENCE_MS)
    for _ in range(5):
        visitor.page.keyboard.press("ArrowRight")
    expect(visitor.page.locator("#sr-tour-number")).to_have_text("6")


def _disputed(visitor: Visitor) -> None:
    if visitor.page.locator("#sr-tour[open]").count():
        visitor.page.keyboard.press("Escape")
    visitor.open(run=RUN)
    expect(visitor.answer.locator(".sr-disputed")).to_be_visible(timeout=PATIENCE_MS)


def _coloured(visitor: Visitor) -> None:
    visitor.page.locator("#sr-colour label").nth(1).click()
    expect(visitor.board.locator(".sr-token").first).to_be_visible(timeout=PATIENCE_MS)


def _viewer(visitor: Visitor) -> None:
    visitor.answer.locator(".sr-cite").first.click()
    expect(visitor.page.locator("#sr-viewer .sr-leaf-text mark").first).to_be_visible(timeout=PATIENCE_MS)


def _presented(visitor: Visitor) -> None:
    visitor.page.keyboard.press("Escape")
    visitor.page.locator("#sr-present").click()
    expect(visitor.page.locator("#sr-present-question")).to_be_visible()


def _traces(visitor: Visitor) -> None:
    visitor.page.locator("#sr-present-leave").click()
    _tab(visitor, "Traces")
    expect(visitor.page.locator('#sr-runs [data-sr-action="run-open"]').first).to_be_visible(
        timeout=PATIENCE_MS
    )


def _opened(visitor: Visitor) -> None:
    visitor.page.locator('#sr-runs [data-sr-action="run-open"]').first.click()
    expect(visitor.page.locator("#sr-detail .sr-card").first).to_be_visible(timeout=PATIENCE_MS)


def _detail(part: str) -> Callable[[Visitor], None]:
    def pose(visitor: Visitor) -> None:
        tabs = visitor.page.locator("#sr-detail-tabs .tab-wrapper").first
        tab = tabs.get_by_role("tab", name=part, exact=True)
        if tab.is_visible():
            tab.click()
        else:  # on a phone some are behind a menu
            tabs.locator(".overflow-menu > button").click()
            tabs.locator(".overflow-dropdown").get_by_text(part, exact=True).click()

    return pose


def _compare(visitor: Visitor) -> None:
    _tab(visitor, "Compare")


def _documents(visitor: Visitor) -> None:
    _tab(visitor, "Documents")
    table = visitor.page.locator("#sr-documents-table .sr-documents")
    expect(table).to_be_visible(timeout=PATIENCE_MS)


def _evaluate(visitor: Visitor) -> None:
    _tab(visitor, "Evaluate")
    expect(visitor.page.locator("#sr-evaluate .js-plotly-plot").first).to_be_visible(timeout=PATIENCE_MS)


def _form(visitor: Visitor) -> None:
    visitor.page.locator("#sr-trial > button").click()
    expect(visitor.page.locator("#sr-trial-go")).to_be_visible()
    visitor.page.get_by_label("A file of questions", exact=True).check()
    expect(visitor.page.locator("#sr-trial-file")).to_be_visible()


def _evaluating(visitor: Visitor) -> None:
    visitor.page.get_by_label("The questions of the sample collection", exact=True).check()
    visitor.page.locator("#sr-trial-go").click()
    expect(visitor.page.locator("#sr-evaluate-progress .sr-trial")).to_contain_text(
        re.compile(r"[1-9]\d* of"), timeout=PATIENCE_MS
    )


def _evaluated(visitor: Visitor) -> None:
    visitor.page.get_by_role("button", name="Stop", exact=True).and_(
        visitor.page.locator("#sr-evaluate *")
    ).click()
    expect(visitor.page.locator("#sr-evaluate-head h2")).to_have_text(
        "Evaluation: sample", timeout=PATIENCE_MS
    )


def _tab(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("tab", name=name, exact=True).click()
    expect(visitor.page.get_by_role("tab", name=name, exact=True)).to_have_attribute("aria-selected", "true")


STATES: Final[dict[str, Callable[[Visitor], None]]] = {
    "empty": _empty,
    "tour": _tour,
    "disputed": _disputed,
    "coloured": _coloured,
    "viewer": _viewer,
    "presented": _presented,
    "traces": _traces,
    "opened": _opened,
    **{f"opened, {part}": _detail(part) for part in ("Time", "Scores", "What if", "Map", "Prompts")},
    "compare": _compare,
    "documents": _documents,
    "evaluate": _evaluate,
    "evaluate, form": _form,
    "evaluating": _evaluating,
    "evaluated": _evaluated,
}
"""Each begins where the one before it has ended."""
