"""Who gets to see which document from a click, whatever the click says."""

from dataclasses import replace
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.library.library import Library
from specrag.library.visitors import VISITOR, Visitor
from specrag.retrieval.chroma import ChromaStore
from specrag.runs import Runs
from specrag.tracing.history import History
from specrag.tracing.store import TraceStore
from specrag.types import Chunk, DocumentInfo, Passage
from specrag.ui.acts import Act
from specrag.ui.opening import Opener
from specrag.viewer import Viewer
from tests.toys import WordEmbedder
from tests.ui_html import find, inside
from tests.ui_traces import HOSTILE, SELECTED

ANN = Visitor(id="ann", owner=f"{VISITOR}ann")
BOB = Visitor(id="bob", owner=f"{VISITOR}bob")
HERS = "c-0123456789abcdef"
CITED: Passage = SELECTED.passages[1]
PRIVATE = "Ann pays forty a night."


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    """Ann has asked about a document of hers, of which Bob knows the run."""
    store = ChromaStore(None)
    store.ensure_collection(HERS, WordEmbedder.fingerprint, labels={"owner": ANN.owner or ""})
    text = f"{PRIVATE} {CITED.text} The end."
    chunk = Chunk(
        id="d2-00000", document_id="d2", title=CITED.title, source=CITED.source, text=text, position=0, page=1
    )
    info = DocumentInfo(
        id="d2", title=CITED.title, source=CITED.source, pages=1, chunks=1, added_at="2026-01-01"
    )
    store.add(HERS, info, [chunk], WordEmbedder().embed([text]))
    traces = TraceStore(tmp_path / "traces.db")
    traces.save(replace(SELECTED, run_id="run1", config={"collection": HERS}), [], owner=ANN.owner or "")
    traces.save(replace(SELECTED, run_id="run2", config={"collection": HERS}), [], owner=ANN.owner or "")
    traces.share("run1", shared=True)
    settings = load_settings({}, home=tmp_path, access="visitor")
    library = Library(store=store, settings=settings)
    history = History(traces, Runs(traces, deadline_s=10.0), settings)
    return Opener(library=library, viewer=Viewer(store, None, None), history=history)


async def opened(opener: Opener, who: Visitor, act: Act, collection: str = "documents") -> str:
    """The sheet that a click brings."""
    return await opener.sheet(who, act, collection, "1")


def texts(html: str, name: str) -> list[str]:
    return [one.text for one in find(html, name)]


async def test_a_citation_is_shown_in_its_document(opener: Opener) -> None:
    html = await opened(opener, ANN, Act(action="open", id="run1:p2"))
    body = find(html, "sr-leaf-text")[0]
    assert PRIVATE in body.text
    marked = [one.text for one in inside(html, body, "mark") if one.text]
    assert " ".join(marked) == CITED.text
    assert "From 1 March 2025 the stay at the north quay is shortened to three nights." in marked


async def test_a_run_of_somebody_else_is_one_that_does_not_exist(opener: Opener) -> None:
    """Whoever guessed the id of a run read its passages, whether or not it had been shared."""
    html = await opened(opener, BOB, Act(action="open", id="run2:p2"))
    assert CITED.text.split(".")[0] not in html
    nothing = await opened(opener, BOB, Act(action="open", id="run3:p2"))
    assert html == nothing.replace("run3", "run2")
    assert PRIVATE in await opened(opener, ANN, Act(action="open", id="run2:p2"))


async def test_the_link_of_a_run_opens_no_document_of_somebody_else(opener: Opener) -> None:
    """Bob sees what the run quotes, as its link shows it, and nothing of the file around it."""
    html = await opened(opener, BOB, Act(action="open", id="run1:p2"))
    assert PRIVATE not in html
    assert CITED.text.split(".")[0] in html
    assert HERS in texts(html, "sr-notice")[0]


@pytest.mark.parametrize("collection", [HERS, "documents", "sample", HOSTILE, "../" * 50, ""])
async def test_a_document_is_opened_only_from_a_collection_that_one_may_read(
    opener: Opener, collection: str
) -> None:
    """The collection comes from the browser: naming another one's must not be enough."""
    html = await opened(opener, BOB, Act(action="open", id="document:d2"), collection)
    assert PRIVATE not in html
    assert len(texts(html, "sr-notice")) == 1
    hers = await opened(opener, ANN, Act(action="open", id="document:d2"), HERS)
    assert PRIVATE in find(hers, "sr-leaf-text")[0].text


async def test_another_ones_collection_is_refused_like_one_that_is_not_there(opener: Opener) -> None:
    there = await opened(opener, BOB, Act(action="open", id="document:d2"), HERS)
    absent = await opened(opener, BOB, Act(action="open", id="document:d2"), "c-fedcba9876543210")
    assert there.replace(HERS, "X") == absent.replace("c-fedcba9876543210", "X")


@pytest.mark.parametrize(
    "identity",
    ["", ":", "run1", "run1:", "run1:p99", "run1:../p2", "nobody:p2", HOSTILE, "document:", "a:b:c"],
)
async def test_an_odd_id_is_one_sentence(opener: Opener, identity: str) -> None:
    html = await opened(opener, ANN, Act(action="open", id=identity), HERS)
    assert len(texts(html, "sr-notice")) == 1
    assert texts(html, "sr-notice")[0].endswith(".")
    assert "<script" not in html


@pytest.mark.parametrize("value", ["", "x", "-1", "99999999999999999999", "1e9", "0.x", ".", "٣", "0.0.0"])
async def test_an_odd_page_is_a_page_of_the_document(opener: Opener, value: str) -> None:
    html = await opened(opener, ANN, Act(action="leaf-to", id="run1:p2", value=value), HERS)
    assert PRIVATE in find(html, "sr-leaf-text")[0].text
