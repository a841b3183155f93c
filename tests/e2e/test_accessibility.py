"""axe-core finds nothing serious in any state of the page, light and dark, wide and on a phone."""

import pytest
from playwright.sync_api import Browser

from tests.e2e.axe import EXCEPTIONS, SERIOUS, STATES, findings
from tests.e2e.scripted_page import ScriptedPage
from tests.e2e.visitor import DESKTOP, PHONE, Theme, Visitor

pytestmark = pytest.mark.browser


def serious(visitor: Visitor, state: str) -> list[str]:
    found = [one for one in findings(visitor.page) if one.impact in SERIOUS and not one.excused]
    return [f"{state}: {one.rule}: {one.target}: {one.html}" for one in found]


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_state_of_the_page_has_a_serious_finding(
    browser: Browser, paced: ScriptedPage, theme: Theme, width: int
) -> None:
    """Each state that a visitor can reach; what gradio makes and we cannot change is named in `EXCEPTIONS`."""
    found: list[str] = []
    with Visitor(browser, paced.url, theme=theme, width=width) as visitor:
        for name, reach in STATES.items():
            reach(visitor)
            found += serious(visitor, name)
    assert not found, "\n".join(found)


def test_a_run_that_goes_on_has_no_serious_finding(browser: Browser, paced: ScriptedPage) -> None:
    with Visitor(browser, paced.url) as visitor:
        visitor.open()
        visitor.ask("Who founded Larkspur Works?")
        visitor.wait_for_writing()
        found = serious(visitor, "running")
        visitor.stop()
        found += serious(visitor, "stopped")
        assert not found, "\n".join(found)


def test_every_exception_has_its_reason() -> None:
    assert all(len(reason) > 20 for reason in EXCEPTIONS.values())
