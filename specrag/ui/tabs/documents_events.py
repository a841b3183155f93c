"""What happens when a visitor does something in the Documents tab.

Every handler asks the library first whether this visitor may, does the one thing, and draws the tab again.
An id that comes from the page is looked for among the jobs and documents of the chosen collection, so one of
another visitor's is one that does not exist.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import gradio as gr

from specrag.errors import SpecragError, StoreError
from specrag.ingest.jobs.state import ENDED, JobState
from specrag.startup import Startup
from specrag.ui import acts, cards
from specrag.ui.document_cards import counted
from specrag.ui.scope import documents_from
from specrag.ui.tabs.documents_board import Board
from specrag.ui.tabs.documents_desk import Desk, Outcome, Values, View, joined, number
from specrag.ui.who import visitor_of

_SLOW = {"export": "The file is being put together."}
"""Acts that a visitor waits for, with what is said meanwhile."""
_TURNS = 1000
_GONE = "It is no longer there; the list shows what is."


Handler: TypeAlias = Callable[[Desk, acts.Act], Outcome]


class Events:
    """The handlers; the inputs of all are those of `desk`."""

    def __init__(self, startup: Startup, others: Mapping[str, Handler]) -> None:
        """`others` are further acts by name, which are handled elsewhere."""
        self._startup = startup
        self._board = Board(startup)
        self._turns: OrderedDict[str, None] = OrderedDict()
        """The last presses of buttons, of whoever; random words, so that none is taken twice."""
        self._counting = threading.Lock()
        self._acts: dict[str, Handler] = {
            **others,
            "cancel": self._cancel,
            "cancel-all": self._cancel_all,
            "dismiss": self._dismiss,
            "dismiss-all": self._dismiss_all,
            "retry": self._retry,
            "delete": self._delete,
            "delete-ticked": self._delete_ticked,
            "page": self._page,
            "chunks": self._chunks,
            "close-chunks": self._close_chunks,
            "reindex": self._reindex,
            "cancel-reindex": self._cancel_reindex,
        }

    def desk(self, inputs: tuple[Any, ...], request: gr.Request) -> Desk:
        """What came with an event, in the order in which the tab sends it."""
        collection, search, sort, asked, only, view, seen = inputs
        return Desk(
            who=visitor_of(request, self._startup.settings),
            collection=collection if isinstance(collection, str) else "",
            search=search[:200] if isinstance(search, str) else "",
            sort=sort if isinstance(sort, str) else "",
            asked=asked if isinstance(asked, str) else "",
            only=documents_from(only),
            view=joined(view, seen),
        )

    def draw(self, desk: Desk, message: str | None = None) -> tuple[View, Values]:
        """Everything as it is now."""
        return self._board.draw(desk, message=message)

    def load(self, desk: Desk) -> tuple[View, Values]:
        """A page that has just come knows nothing, whatever it was sent in an earlier life."""
        if self._startup.state.ready:
            self._touch(desk, self._startup.parts.library.default(desk.who))
        return self._board.draw(replace(desk, view=View()))

    def tick(self, desk: Desk) -> tuple[View, Values]:
        """The clock."""
        return self._board.tick(desk)

    def choose(self, desk: Desk) -> tuple[View, Values]:
        """Another collection: the list begins at its first page."""
        self._put_away(desk)
        self._touch(desk, desk.collection)
        view = replace(desk.view, page=1, chunks_of="", form="", ended=None)
        drawn, values = self._board.draw(replace(desk, view=view), message="")
        return drawn, values | {"form": ("", "", "")}

    def search(self, desk: Desk) -> tuple[View, Values]:
        """The same list, searched or ordered in another way."""
        return self._board.draw(replace(desk, view=replace(desk.view, page=1)))

    def _touch(self, desk: Desk, name: str) -> None:
        """What is only looked at is in use as well; where that cannot be noted, the list says why."""
        if self._startup.state.ready:
            with suppress(SpecragError):
                self._startup.parts.library.touch(desk.who, name)

    def _put_away(self, desk: Desk) -> None:
        """The sentence about a re-indexing that has ended stands until something else is done."""
        if self._startup.state.ready and desk.view.told:
            self._startup.parts.reindexing.dismiss(desk.view.told)

    def upload(
        self, desk: Desk, files: list[str] | None, *, replacing: bool, password: str
    ) -> tuple[View, Values]:
        """Queue files; gradio's copies, which anybody could fetch by their address, are deleted at once."""
        self._put_away(desk)
        paths = [Path(file) for file in files or []]
        try:
            problems = [self._submit(path, desk, replacing, password) for path in paths]
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
        refused = [problem for problem in problems if problem]
        message = "".join(cards.notice("error", problem) for problem in dict.fromkeys(refused))
        taken = len(refused) < len(paths)
        view, values = self.draw(replace(desk, asked=desk.collection) if taken else desk, message)
        return view, values | {"uploaded": None} | ({"password": ""} if taken else {})

    def act(self, desk: Desk, text: str) -> Iterator[tuple[View, Values]]:
        """Something done inside our own HTML; nothing if it is not of this tab."""
        act = acts.parse(text)
        if act is None or act.action not in self._acts or self._is_repeated(act.turn):
            return
        if not self._startup.state.ready:
            yield self.draw(desk)
            return
        self._put_away(desk)
        if act.action in _SLOW:
            yield desk.view, {"message": cards.notice("info", _SLOW[act.action])}
        try:
            outcome = self._acts[act.action](desk, act)
        except SpecragError as error:
            outcome = Outcome(desk=desk, message=cards.notice("error", str(error)))
        view, values = self.draw(outcome.desk, outcome.message)
        yield view, values | dict(outcome.values)

    def _is_repeated(self, turn: str) -> bool:
        """Whether this press was told before: a deletion told twice ended in an error."""
        if not turn:
            return False
        with self._counting:
            known = turn in self._turns
            self._turns[turn] = None
            while len(self._turns) > _TURNS:
                self._turns.popitem(last=False)
            return known

    # Files on their way

    def _submit(self, path: Path, desk: Desk, replacing: bool, password: str) -> str | None:
        """Queue a file; a sentence if it is refused."""
        if not self._startup.state.ready:
            return "The program is still starting; add the file again in a moment."
        parts = self._startup.parts
        try:
            parts.library.check_writable(desk.who, desk.collection)
            parts.library.touch(desk.who, desk.collection)
            parts.jobs.submit(
                path,
                path.name,
                desk.collection,
                owner=desk.who.id,
                replace=replacing,
                password=password or None,
            )
        except SpecragError as error:
            return str(error)
        return None

    def _job(self, desk: Desk, act: acts.Act) -> JobState:
        """The job that an act is about.

        Raises:
            StoreError: the visitor may not change the collection, or there is no such job in it.
        """
        self._startup.parts.library.check_writable(desk.who, desk.collection)
        for job in self._startup.parts.jobs.jobs(desk.collection):
            if job.id == act.id:
                return job
        raise StoreError(_GONE)

    def _cancel(self, desk: Desk, act: acts.Act) -> Outcome:
        self._startup.parts.jobs.cancel(self._job(desk, act).id)
        return Outcome(desk=desk)

    def _cancel_all(self, desk: Desk, _act: acts.Act) -> Outcome:
        self._startup.parts.library.check_writable(desk.who, desk.collection)
        self._startup.parts.jobs.cancel_all(desk.collection)
        return Outcome(desk=desk)

    def _dismiss(self, desk: Desk, act: acts.Act) -> Outcome:
        self._startup.parts.jobs.dismiss(self._job(desk, act).id)
        return Outcome(desk=desk)

    def _dismiss_all(self, desk: Desk, _act: acts.Act) -> Outcome:
        parts = self._startup.parts
        parts.library.check_writable(desk.who, desk.collection)
        for job in parts.jobs.jobs(desk.collection):
            if job.state in ENDED and job.state != "ready":
                parts.jobs.dismiss(job.id)
        return Outcome(desk=desk)

    def _retry(self, desk: Desk, act: acts.Act) -> Outcome:
        self._startup.parts.jobs.retry(self._job(desk, act).id, password=act.value or None)
        return Outcome(desk=desk)

    # Documents

    def _delete(self, desk: Desk, act: acts.Act) -> Outcome:
        parts = self._startup.parts
        known = parts.store.find(desk.collection, act.id) if self._readable(desk) else None
        removed = parts.library.delete_document(desk.who, desk.collection, act.id)
        name = known.title if known else "It"
        sentence = f"“{name}” was deleted with its {counted(removed, 'chunk')}; nothing of it can be found."
        return Outcome(desk=desk, message=cards.notice("success", sentence))

    def _delete_ticked(self, desk: Desk, act: acts.Act) -> Outcome:
        """Delete what was ticked in the collection `act.id`, which need not be the chosen one any more."""
        removed, problems = [], []
        for document_id in act.values:
            try:
                removed.append(self._startup.parts.library.delete_document(desk.who, act.id, document_id))
            except SpecragError as error:
                problems.append(str(error))
        gone = f"{counted(len(removed), 'document')} with {counted(sum(removed), 'chunk')}"
        sentence = f"{gone} deleted; nothing of them can be found."
        message = cards.notice("success", sentence) if removed else ""
        message += "".join(cards.notice("error", problem) for problem in dict.fromkeys(problems))
        view = replace(desk.view, list_turn=desk.view.list_turn + 1)
        return Outcome(desk=replace(desk, view=view), message=message)

    def _readable(self, desk: Desk) -> bool:
        """Refuses a collection that this visitor may not see."""
        self._startup.parts.library.check_readable(desk.who, desk.collection)
        return True

    def _page(self, desk: Desk, act: acts.Act) -> Outcome:
        view = replace(desk.view, page=number(act.value), list_turn=desk.view.list_turn + 1)
        return Outcome(desk=replace(desk, view=view), message=None)

    def _chunks(self, desk: Desk, act: acts.Act) -> Outcome:
        view = replace(
            desk.view,
            chunks_of=act.id,
            chunks_page=number(act.value),
            chunks_turn=desk.view.chunks_turn + 1,
        )
        return Outcome(desk=replace(desk, view=view), message=None)

    def _close_chunks(self, desk: Desk, _act: acts.Act) -> Outcome:
        return Outcome(desk=replace(desk, view=replace(desk.view, chunks_of="")), message=None)

    # The collection

    def _reindex(self, desk: Desk, act: acts.Act) -> Outcome:
        self._startup.parts.library.check_writable(desk.who, act.id)
        self._startup.parts.reindexing.start(act.id)
        return Outcome(desk=desk)

    def _cancel_reindex(self, desk: Desk, act: acts.Act) -> Outcome:
        self._startup.parts.library.check_writable(desk.who, act.id)
        self._startup.parts.reindexing.cancel(act.id)
        return Outcome(desk=desk)
