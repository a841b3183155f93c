"""What happens when a visitor makes, changes, exports, imports or deletes a collection."""

import asyncio
import threading
import uuid
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from specrag.errors import SpecragError
from specrag.library.shelves import Shelf
from specrag.startup import Startup
from specrag.ui import acts, cards
from specrag.ui.document_cards import counted
from specrag.ui.tabs.documents_desk import Desk, Outcome, Values
from specrag.ui.tabs.exports import exported

_IMPORTS = 2
"""Imports at a time, on threads of their own: they take minutes, and runs need those of the loop."""
_STARTING = "The program is still starting; choose the file again in a moment."
_TELL_S = 0.5
"""How often an import says how far it is, and notices that it is to stop."""


class CollectionEvents:
    """The handlers. Whether a visitor may is the library's to say."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup
        self._importing = ThreadPoolExecutor(_IMPORTS, thread_name_prefix="specrag-import")
        self.acts = {
            "new": self._new,
            "edit": self._edit,
            "export": self._export,
            "delete-collection": self._delete,
        }

    def close(self, desk: Desk) -> Outcome:
        """Put the form away."""
        view = replace(desk.view, form="")
        return Outcome(desk=replace(desk, view=view), values={"form": ("", "", "")})

    def save(self, desk: Desk, title: str, description: str) -> Outcome:
        """Make the collection of the form, or change the chosen one; on an error the form stays."""
        library = self._startup.parts.library
        try:
            if desk.view.form == "new":
                shelf = library.create(desk.who, title, description)
                desk = replace(desk, collection=shelf.name)
                done = f"“{shelf.title}” was made; add files to it."
            else:
                library.rename(desk.who, desk.collection, title)
                library.describe(desk.who, desk.collection, description)
                done = "Saved."
        except SpecragError as error:
            return Outcome(desk=desk, message=cards.notice("error", str(error)))
        desk = replace(desk, view=replace(desk.view, form="", page=1, chunks_of="", ended=None))
        return Outcome(desk=desk, message=cards.notice("success", done), values={"form": ("", "", "")})

    async def import_(self, desk: Desk, file: str | None) -> AsyncGenerator[Outcome | Values]:
        """Take a collection in from a file, saying how far it is; leaving early stops it.

        There is always an answer: Gradio takes a generator without one for one that empties the page.
        """
        if file is None:
            yield {}
        elif not self._startup.state.ready:
            await asyncio.to_thread(Path(file).unlink, missing_ok=True)
            yield {"message": cards.notice("info", _STARTING), "imported": None}
        else:
            async with aclosing(self._taken_in(desk, Path(file))) as told:
                async for news in told:
                    yield news

    async def _taken_in(self, desk: Desk, path: Path) -> AsyncGenerator[Outcome | Values]:
        stop, told = threading.Event(), [(0, 0)]

        def work() -> Shelf:
            return self._startup.parts.library.import_(
                desk.who,
                path,
                progress=lambda _stage, done, total: told.append((done, total)),
                cancelled=stop.is_set,
            )

        task = asyncio.get_running_loop().run_in_executor(self._importing, work)
        try:
            while not task.done():
                yield {"message": cards.notice("info", _so_far(path.name, *told[-1])), "importing": True}
                await asyncio.wait({task}, timeout=_TELL_S)
            yield _imported(desk, task)
        finally:
            stop.set()
            task.cancel()  # one that still waits for its turn
            await asyncio.to_thread(path.unlink, missing_ok=True)

    def _new(self, desk: Desk, _act: acts.Act) -> Outcome:
        """Show the form; one that was put away is empty, and sending that would undo what is typed."""
        empty = None if not desk.view.form else ""
        view = replace(desk.view, form="new")
        return Outcome(desk=replace(desk, view=view), values={"form": ("new", empty, empty)})

    def _edit(self, desk: Desk, act: acts.Act) -> Outcome:
        library = self._startup.parts.library
        library.check_writable(desk.who, act.id)
        shelf = next(item for item in library.collections(desk.who) if item.name == act.id)
        view = replace(desk.view, form="edit")
        form = ("edit", shelf.title, shelf.description)
        return Outcome(desk=replace(desk, collection=act.id, view=view), values={"form": form})

    def _export(self, desk: Desk, act: acts.Act) -> Outcome:
        library = self._startup.parts.library
        library.check_readable(desk.who, act.id)
        shelf = next(item for item in library.collections(desk.who) if item.name == act.id)
        path = exported(library, desk.who, shelf)
        sentence = f"{path.name} holds {counted(shelf.documents, 'document')}; your browser saves it."
        return Outcome(
            desk=desk,
            message=cards.notice("success", sentence),
            values={"export": str(path), "exported": uuid.uuid4().hex},
        )

    def _delete(self, desk: Desk, act: acts.Act) -> Outcome:
        library = self._startup.parts.library
        shelf = next((item for item in library.collections(desk.who) if item.name == act.id), None)
        removed = library.delete(desk.who, act.id)
        title = shelf.title if shelf else act.id
        sentence = f"The collection “{title}” was deleted with its {counted(removed, 'document')}."
        turn = desk.view.list_turn + 1
        view = replace(desk.view, page=1, chunks_of="", form="", ended=None, list_turn=turn)
        desk = replace(desk, view=view, collection=library.default(desk.who))
        return Outcome(desk=desk, message=cards.notice("success", sentence), values={"form": ("", "", "")})


def _so_far(name: str, done: int, total: int) -> str:
    far = f": {done:,} of {total:,}" if total else ""
    return f"{name} is being imported{far}."


def _imported(desk: Desk, task: "asyncio.Future[Shelf]") -> Outcome:
    values: Values = {"importing": False, "imported": None}
    try:
        shelf = task.result()
    except SpecragError as error:
        return Outcome(desk=desk, message=cards.notice("error", str(error)), values=values)
    sentence = f"“{shelf.title}” was imported: {counted(shelf.documents, 'document')}."
    view = replace(desk.view, page=1, chunks_of="", form="", ended=None)
    desk = replace(desk, collection=shelf.name, view=view)
    values["form"] = ("", "", "")
    return Outcome(desk=desk, message=cards.notice("success", sentence), values=values)
