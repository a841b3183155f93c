"""The page and the start of the program while their Chroma server is away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from specrag.build import Parts
from specrag.config import load_settings
from specrag.errors import StoreUnreachable
from specrag.library.library import OWN, SAMPLE
from specrag.library.visitors import OPERATOR
from specrag.models.scripted import ScriptedModel
from specrag.sample import ensure_sample
from specrag.startup import Startup
from specrag.ui.live import header
from specrag.ui.tabs.documents_board import Board
from specrag.ui.tabs.documents_desk import Desk, View
from tests.chroma_process import ChromaProcess

pytestmark = pytest.mark.integration


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[ChromaProcess]:
    with ChromaProcess(tmp_path) as process:
        yield process


def test_a_server_that_is_away_is_a_sentence_on_the_page_until_it_is_back(
    mortal: ChromaProcess, tmp_path: Path, embedder_path: Path
) -> None:
    """The events of the Documents tab raised, so the page showed no more than “Error”."""
    settings = load_settings(
        {}, home=tmp_path / "home", embedder=str(embedder_path), threads=1, chroma_url=mortal.url
    )
    startup = Startup(settings)
    model = ScriptedModel(lambda _text: {})
    startup.parts = parts = Parts(settings, drafter=model, verifier=model)
    startup.begin()
    assert startup.wait(60).ready
    board = Board(startup)
    desk = Desk(who=OPERATOR, collection=SAMPLE, search="", sort="", asked=OWN, only=(), view=View())
    mortal.kill()
    for shown in (board.draw(desk)[1]["documents"], header(startup, SAMPLE)):
        assert f"The Chroma server at {mortal.url} cannot be reached" in shown
    with pytest.raises(StoreUnreachable):  # which the start takes as a reason to try again
        ensure_sample(parts.indexer)
    mortal.start()
    assert ".md" in board.draw(desk)[1]["documents"]
    assert "cannot be reached" not in header(startup, SAMPLE)
    ensure_sample(parts.indexer)
    parts.close()
