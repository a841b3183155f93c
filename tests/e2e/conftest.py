"""One server and one Chromium for the whole suite; every visitor has a browser context of their own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser

from scripts.check_page import keep_recordings
from specrag.evaluation.shelf import Shelf
from tests.e2e.scripted_page import ScriptedPage, scripted_page
from tests.e2e.serving import NO_CHROMIUM, Server, chromium, chromium_path, serving
from tests.e2e.visitor import Visitor
from tests.report_samples import evaluation

Arrive: TypeAlias = Callable[..., Visitor]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium_path() is None:
        pytest.skip(NO_CHROMIUM)
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def server(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, embedder_path: Path, model_path: Path
) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("home")
    with serving(home, embedder=embedder_path, model=model_path) as started:
        yield started
    log = started.log.read_text(encoding="utf-8", errors="replace")
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:6000]


@pytest.fixture(scope="session")
def paced(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, embedder_path: Path
) -> Iterator[ScriptedPage]:
    """A server over a scripted model of sixty tokens a second, with the recorded runs and a report."""
    home = tmp_path_factory.mktemp("paced")
    with scripted_page(home, embedder=embedder_path, per_second=60) as page:
        keep_recordings(home)
        Shelf(home).keep(evaluation())
        yield page


@pytest.fixture(scope="session")
def slow(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, embedder_path: Path
) -> Iterator[ScriptedPage]:
    """A server over a scripted model whose runs take half a minute, however slow the machine is beside it."""
    with scripted_page(tmp_path_factory.mktemp("slow"), embedder=embedder_path, per_second=20) as page:
        yield page


@pytest.fixture
def arrive(browser: Browser, server: Server) -> Iterator[Arrive]:
    """A new visitor for each call, not yet at the page."""
    with ExitStack() as leaving:

        def visitor(**looks: Any) -> Visitor:
            return leaving.enter_context(Visitor(browser, server.url, **looks))

        yield visitor


@pytest.fixture
def visitor(arrive: Arrive) -> Visitor:
    """A visitor who has just come to the page."""
    arrived = arrive()
    arrived.open()
    return arrived
