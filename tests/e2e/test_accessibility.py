"""axe-core finds nothing serious in any state of the page, light and dark, wide and on a phone."""

import pytest
from playwright.sync_api import expect

from scripts.check_page import keep_recordings
from tests.e2e.axe import EXCEPTIONS, SERIOUS, STATES, findings
from tests.e2e.conftest import Arrive
from tests.e2e.serving import Server
from tests.e2e.visitor import DESKTOP, PHONE, Theme, Visitor

pytestmark = pytest.mark.browser


def serious(visitor: Visitor, state: str) -> list[str]:
    found = [one for one in findings(visitor.page) if one.impact in SERIOUS and not one.excused]
    return [f"{state}: {one.rule}: {one.target}: {one.html}" for one in found]


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_state_of_the_page_has_a_serious_finding(
    arrive: Arrive, server: Server, theme: Theme, width: int
) -> None:
    """Each state that a visitor can reach; what gradio makes and we cannot change is named in `EXCEPTIONS`."""
    keep_recordings(server.home)
    visitor = arrive(theme=theme, width=width)
    found: list[str] = []
    for name, reach in STATES.items():
        reach(visitor)
        found += serious(visitor, name)
    assert not found, "\n".join(found)


def test_a_run_that_goes_on_has_no_serious_finding(arrive: Arrive) -> None:
    visitor = arrive()
    visitor.open()
    visitor.ask("Who founded Larkspur Works?")
    visitor.wait_for_writing()
    assert not serious(visitor, "running")
    visitor.stop()
    expect(visitor.answer).to_contain_text("stopped")
    assert not serious(visitor, "stopped")


def test_every_exception_has_its_reason() -> None:
    assert all(len(reason) > 20 for reason in EXCEPTIONS.values())
