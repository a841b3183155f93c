"""The Documents tab without a browser: what its events send to an open page, and what they do to the parts."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import gradio as gr
import pytest

from specrag.build import Parts
from specrag.models.scripted import ScriptedModel
from specrag.startup import Startup, StartupState
from specrag.ui.scope import scope_of
from specrag.ui.tabs import ask, documents, viewer
from specrag.ui.tabs.collections_events import CollectionEvents
from specrag.ui.tabs.documents_desk import Desk, Outcome, Values, View
from specrag.ui.tabs.documents_events import Events
from tests.shelf_rig import Rig, rig, visitor

ANN = visitor("ann")
WAIT_S = 20.0


@dataclass(frozen=True)
class Tab:
    """The tab of a program that is ready, and the parts behind it."""

    rig: Rig
    startup: Startup
    collections: CollectionEvents
    events: Events

    def desk(self, collection: str, **more: object) -> Desk:
        asked = Desk(
            who=ANN, collection=collection, search="", sort="added", asked=collection, only=(), view=View()
        )
        return replace(asked, **more)  # type: ignore[arg-type]  # names of fields

    def act(
        self, desk: Desk, action: str, identity: str = "", value: str | list[str] = ""
    ) -> tuple[View, Values]:
        """The last answer to an act."""
        text = json.dumps({"action": action, "id": identity, "value": value})
        return list(self.events.act(desk, text))[-1]


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Tab]:
    with rig(tmp_path / "rig", access="visitor", visitor_days=30) as made:
        startup = Startup(made.settings)
        model = ScriptedModel(lambda _prompt: {})
        parts = startup.parts = Parts(made.settings, drafter=model, verifier=model)
        vars(parts).update(store=made.store, indexer=made.indexer, library=made.library)
        startup._set(StartupState(message="Ready", ready=True))
        collections = CollectionEvents(startup)
        yield Tab(made, startup, collections, Events(startup, collections.acts))
        parts.jobs.close()
        parts.reindexing.close()


@pytest.fixture
async def wiring(tab: Tab) -> documents._Wiring:
    """The tab as Gradio has it; made within a loop, or Gradio makes one that it never closes."""
    with gr.Blocks():
        asking = ask.build(tab.startup)
        return documents._Wiring(documents.build(tab.startup), tab.startup, asking, gr.HTML())


def test_a_document_that_is_chosen_in_the_ask_tab_is_forgotten_when_it_is_deleted(tab: Tab) -> None:
    """It stayed chosen, in a box that was hidden, and every question was refused until a reload."""
    name = tab.rig.library.create(ANN, "Weirs").name
    kept, gone = tab.rig.add(name, "The Halden weir."), tab.rig.add(name, "The Orla quay.", "quay.md")
    desk = tab.desk(name, only=(kept, gone))
    view, values = tab.events.choose(desk)
    choices, chosen = values["only"]
    assert {value for _, value in choices} == {kept, gone}
    assert chosen is None, "what is chosen and still there is left alone"
    _, values = tab.act(replace(desk, view=view), "delete", gone)
    choices, chosen = values["only"]
    assert [value for _, value in choices] == [kept]
    assert chosen == [kept]


async def test_an_open_page_may_send_what_its_dropdowns_do_not_offer(wiring: documents._Wiring) -> None:
    """Gradio refused them with a message of its own: after a restart, and after a deletion."""
    asking = wiring._asking
    for dropdown in (asking.collection, wiring._tab.panel.picker):
        assert dropdown.preprocess("c-0123456789abcdef") == "c-0123456789abcdef"
        assert dropdown.get_block_name() == "dropdown"
    assert asking.only.preprocess(["gone"]) == ["gone"]


def test_what_is_sent_is_looked_at_before_it_is_asked(tab: Tab) -> None:
    name = tab.rig.library.create(ANN, "Weirs").name
    kept = tab.rig.add(name, "The Halden weir.")
    parts = tab.startup.parts
    assert scope_of(parts, ANN, name, [kept, "gone", 7]) == (name, (kept,))
    assert scope_of(parts, ANN, name, None) == (name, ())
    with pytest.raises(Exception, match="are gone; choose others"):
        scope_of(parts, ANN, name, ["gone"])
    for odd in (["a"], None, {"a": 1}, "c-0123456789abcdef"):
        with pytest.raises(Exception, match="no collection"):
            scope_of(parts, ANN, odd, None)


@pytest.mark.parametrize("use", ["ask", "choose", "load"])
def test_a_collection_that_is_only_looked_at_or_asked_does_not_end(tab: Tab, use: str) -> None:
    """Questions on the page did not count as use, and collections were deleted under their visitors."""
    library = tab.rig.library
    name = library.default(ANN) if use == "load" else library.create(ANN, "Weirs").name
    library.check_writable(ANN, name)
    tab.rig.clock.pass_(days=20)
    if use == "ask":
        scope_of(tab.startup.parts, ANN, name, [])
    elif use == "choose":
        tab.events.choose(tab.desk(name))
    else:
        tab.events.load(tab.desk("documents"))
    tab.rig.clock.pass_(days=20)
    assert library.expire() == []
    tab.rig.clock.pass_(days=20)
    assert name in library.expire()


def test_the_sentence_about_a_reindexing_stands_until_something_else_is_done(tab: Tab) -> None:
    """It stood there until the next restart, and the clock drew everything each time."""
    name, other = (tab.rig.library.create(ANN, title).name for title in ("Weirs", "Quays"))
    tab.rig.add(name, "The Halden weir.")
    desk = tab.desk(name)
    reindexing = tab.startup.parts.reindexing
    for leave in ("act", "choose"):
        view, _ = tab.act(desk, "reindex", name)
        reindexing.wait(name, WAIT_S)
        view, values = tab.events.tick(replace(desk, view=view))
        again, more = tab.events.tick(replace(desk, view=view))
        assert "card" not in more
        assert again.reindexed == "done"
        _, values = tab.events.load(desk)
        assert "Re-indexed" in values["card"], "a reload does not put it away"
        if leave == "act":
            _, values = tab.act(replace(desk, view=view), "close-chunks")
            assert "Re-indexed" not in str(values["card"])
        else:
            tab.events.choose(replace(desk, collection=other, view=view))
        assert reindexing.state(name) is None


def test_one_that_goes_on_or_was_not_told_is_not_put_away(tab: Tab) -> None:
    name = tab.rig.library.create(ANN, "Weirs").name
    tab.rig.add(name, "The Halden weir.")
    tab.startup.parts.reindexing.start(name)
    tab.startup.parts.reindexing.wait(name, WAIT_S)
    _, values = tab.events.choose(tab.desk(name))
    assert "Re-indexed" in values["card"]


def test_what_was_ticked_is_deleted_where_it_was_ticked(tab: Tab) -> None:
    """The same file has the same id in every collection: the one that was chosen meanwhile lost it."""
    ticked, chosen = (tab.rig.library.create(ANN, title).name for title in ("Weirs", "Quays"))
    document_id = tab.rig.add(ticked, "The Halden weir.")
    assert tab.rig.add(chosen, "The Halden weir.") == document_id
    tab.act(tab.desk(chosen), "delete-ticked", ticked, [document_id])
    assert tab.rig.store.find(ticked, document_id) is None
    assert tab.rig.store.find(chosen, document_id) is not None


async def test_the_form_of_a_new_collection_leaves_what_is_typed_at_once(
    tab: Tab, wiring: documents._Wiring
) -> None:
    """Its empty fields came together with the form, and overwrote the first words."""
    desk = tab.desk("documents")
    view, values = tab.act(desk, "new")
    assert values["form"] == ("new", None, None)
    _, values = tab.act(replace(desk, view=replace(view, form="edit")), "new")
    assert values["form"] == ("new", "", ""), "those of another collection are taken out"
    panel = wiring._tab.panel
    changed = dict(wiring._form("new", None, None))
    assert panel.title not in changed
    assert changed[panel.form] == {"visible": True}


async def test_an_import_that_cannot_begin_is_answered(
    tab: Tab, wiring: documents._Wiring, tmp_path: Path
) -> None:
    """An event without an answer emptied the whole tab."""
    inputs: tuple[object, ...] = ("documents", "", "added", "documents", [], View(), View())
    answers = [update async for update in wiring._import(gr.Request(), None, *inputs)]
    assert len(answers) == 1
    assert set(answers[0]) == {wiring._tab.view, wiring._tab.seen}
    tab.startup._set(StartupState(message="Starting"))
    path = tmp_path / "weirs.zip"
    path.write_bytes(b"PK")
    answers = [update async for update in wiring._import(gr.Request(), str(path), *inputs)]
    assert len(answers) == 1
    assert "still starting" in answers[0][wiring._tab.message]["value"]
    assert not path.exists()


@pytest.fixture
async def busy() -> AsyncIterator[threading.Event]:
    """All threads of the loop are at work until the event is set."""
    free = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    work = loop.run_in_executor(None, free.wait, 2 * WAIT_S)  # a test that fails ends as well
    yield free
    free.set()
    await work


async def test_imports_take_no_thread_of_the_loop(tab: Tab, busy: threading.Event, tmp_path: Path) -> None:
    """A few long imports kept every run waiting for a thread."""
    name = tab.rig.library.create(ANN, "Weirs").name
    tab.rig.add(name, "The Halden weir.")
    path = tab.rig.library.export(ANN, name, tmp_path / "weirs.zip")
    async with asyncio.timeout(WAIT_S), aclosing(tab.collections.import_(tab.desk(name), str(path))) as told:
        async for news in told:
            if isinstance(news, Outcome):
                assert "was imported: 1 document" in str(news.message)
                assert news.values["form"] == ("", "", ""), "a form that was open goes with the view"
                busy.set()


@pytest.mark.parametrize("action", ["open", "leaf-draw"])
async def test_documents_are_opened_on_no_thread_of_the_loop(
    tab: Tab, busy: threading.Event, action: str
) -> None:
    """A few pages that are slow to draw kept every run waiting for a thread."""
    document_id = tab.rig.add("sample", "The Halden weir.")
    message = f'{{"action": "{action}", "id": "document:{document_id}", "value": ""}}'
    async with asyncio.timeout(WAIT_S):
        sheet = await viewer._Events(tab.startup).act(message, "sample", gr.Request(session_hash="s"))
    assert not busy.is_set()
    assert "The Halden weir." in sheet


def test_a_press_that_gradio_tells_twice_is_one(tab: Tab) -> None:
    """The second telling of a deletion said that there is no such document, in the place of the success."""
    desk = tab.desk(tab.rig.library.default(ANN))
    told = json.dumps({"action": "dismiss-all", "id": "", "value": "", "turn": "1-2-3"})
    other = json.dumps({"action": "dismiss-all", "id": "", "value": "", "turn": "1-2-4"})
    assert len(list(tab.events.act(desk, told))) == 1
    assert list(tab.events.act(desk, told)) == []
    assert len(list(tab.events.act(desk, other))) == 1
