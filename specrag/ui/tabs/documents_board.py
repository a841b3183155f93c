"""What the Documents tab shows now: from the parts of the program to updates of its components.

The truth lives on the server (collections in the store, files on their way in the queue), so every look is a
fresh one, and a page that is loaded anew or opened twice shows the same. What was sent before is remembered
for each open page, and only what has changed is sent again; a look that a clock asks for reads the list of
documents only when something has arrived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specrag.errors import SpecragError
from specrag.ingest.jobs.reindex import ReindexState
from specrag.ingest.jobs.state import ENDED, JobState
from specrag.library.library import documents_of
from specrag.library.shelves import Shelf
from specrag.retrieval.base import VectorStore
from specrag.startup import Startup
from specrag.types import Chunk, DocumentInfo
from specrag.ui import cards, document_cards
from specrag.ui.document_cards import JobView, ReindexView
from specrag.ui.listing import SHOWN, Leaf, leaf, listed
from specrag.ui.live import header
from specrag.ui.scope import document_choices
from specrag.ui.tabs.documents_desk import Desk, Values, View

FORMATS = (
    "PDF, Word, PowerPoint, Excel, CSV, HTML, Markdown, text in any encoding, EPUB, JSON, source code, and "
    "ZIP archives of these"
)


class Board:
    """Draws the tab. Nothing of a visitor is kept here."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup

    def draw(self, desk: Desk, *, message: str | None = None) -> tuple[View, Values]:
        """Everything; `message` is what has come of what the visitor did, as HTML."""
        values: Values = {} if message is None else {"message": message}
        if not self._startup.state.ready:
            return self._unready(desk, values)
        try:
            view, more = self._drawn(desk)
        except SpecragError as error:
            away = cards.notice("error", str(error))  # the timer looks again, and replaces this
            return self._sent(desk.view, values | {"documents": away, "timer": True})
        return self._sent(view, values | more)

    def tick(self, desk: Desk) -> tuple[View, Values]:
        """What the clock asks for: the files on their way, and everything once one has arrived."""
        if not self._startup.state.ready or desk.view.ended is None:
            return self.draw(desk)
        parts, view = self._startup.parts, desk.view
        try:
            parts.library.check_readable(desk.who, desk.collection)
            jobs = parts.jobs.jobs(desk.collection)
            at_work = parts.reindexing.state(desk.collection)
        except SpecragError:
            return self.draw(desk)
        stands = at_work.state if at_work else ""
        if _ended(jobs) != view.ended or stands == "running" or stands != view.reindexed:
            return self.draw(desk)
        return self._sent(view, {"uploads": self._uploads(jobs, {}), "timer": _busy(jobs)})

    def _drawn(self, desk: Desk) -> tuple[View, Values]:
        parts = self._startup.parts
        shelves = parts.library.collections(desk.who)
        shelf = _chosen(shelves, desk.collection)
        documents = documents_of(parts.store, shelf.name)
        jobs = parts.jobs.jobs(shelf.name)
        at_work = parts.reindexing.state(shelf.name)
        view = _seen(desk.view, jobs, at_work)
        page = leaf(listed(documents, search=desk.search, sort=desk.sort), view.page)
        view = replace(view, page=page.page)
        choices = tuple((document_cards.choice_of(item), item.name) for item in shelves)
        asked = desk.asked if any(item.name == desk.asked for item in shelves) else shelf.name
        names = {item.id: item.source for item in documents}
        values: Values = {
            "picker": (choices, shelf.name),
            "asked": (choices, asked),
            "card": document_cards.shelf_card(shelf, _reindex_view(at_work)),
            "limits": self._limits(shelf),
            "upload": not shelf.read_only,
            "uploads": self._uploads(jobs, names),
            "documents": _list(page, replace(shelf, documents=len(documents)), jobs, desk, view),
            "only": self._only(desk, asked, shelf.name, documents),
            "said": _said(jobs, desk.view.ended),
            "top": header(self._startup, asked, desk.who),
            "timer": _busy(jobs) or (at_work is not None and at_work.state == "running"),
        }
        view, chunks = self._chunks(view, shelf.name, documents)
        return view, values | {"chunks": chunks}

    def _only(self, desk: Desk, asked: str, shown: str, documents: Sequence[DocumentInfo]) -> Any:
        """What the Ask tab offers to look in, which is not always the collection that is shown here.

        What is chosen there is told anew only if something of it is gone; it may have changed meanwhile.
        """
        known = documents if asked == shown else documents_of(self._startup.parts.store, asked)
        choices = tuple(document_choices(known))
        there = {item.id for item in known}
        kept = [document_id for document_id in desk.only if document_id in there]
        return Drawn(choices, (choices, kept if len(kept) < len(desk.only) else None))

    def _limits(self, shelf: Shelf) -> str:
        return document_cards.limits(self._startup.settings, FORMATS, writable=not shelf.read_only)

    def _uploads(self, jobs: Sequence[JobState], names: Mapping[str, str]) -> str:
        if any(job.state == "duplicate" for job in jobs) and not names:
            names = self._names(jobs)
        before = self._startup.parts.jobs.waiting_before
        views = [_job_view(job, names, before(job.id) if job.state == "queued" else 0) for job in jobs]
        return document_cards.uploads(sorted(views, key=_order))

    def _names(self, jobs: Sequence[JobState]) -> dict[str, str]:
        """What the documents are called that a file is a duplicate of."""
        names: dict[str, str] = {}
        store = self._startup.parts.store
        for job in jobs:
            if job.state == "duplicate" and job.document_id:
                known = store.find(job.collection, job.document_id)
                names |= {known.id: known.source} if known else {}
        return names

    def _chunks(self, view: View, collection: str, documents: Sequence[DocumentInfo]) -> tuple[View, Any]:
        known = next((item for item in documents if item.id == view.chunks_of), None)
        if known is None:
            return replace(view, chunks_of=""), ""
        shown = ("chunks", collection, known.id, known.added_at, view.chunks_page, view.chunks_turn)
        if view.sent.get("chunks") == hash(shown):
            return view, Unread(shown)
        page = chunks_of(self._startup.parts.store, collection, known, view.chunks_page)
        html = document_cards.chunks_list(
            known, page, focus=f"chunks-{view.chunks_turn}" if view.chunks_turn else ""
        )
        return replace(view, chunks_page=page.page), Drawn(shown, html)

    def _unready(self, desk: Desk, values: Values) -> tuple[View, Values]:
        starting = cards.notice("info", self._startup.state.message)
        return self._sent(desk.view, values | {"documents": starting, "timer": True})

    def _sent(self, view: View, values: Values) -> tuple[View, Values]:
        """What differs from what the page was sent before; a message is always sent."""
        told = {name: _key(value) for name, value in values.items()}
        new = {name for name, key in told.items() if view.sent.get(name) != key or name == "message"}
        shown = {name: value.drawn if isinstance(value, Drawn) else value for name, value in values.items()}
        return replace(view, sent={**view.sent, **told}), {name: shown[name] for name in new}


@dataclass(frozen=True, slots=True)
class Unread:
    """What was sent before, and therefore not made again."""

    shown: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a component shows, usually HTML, known by what it was made of."""

    shown: tuple[object, ...]
    drawn: Any


def chunks_of(store: VectorStore, collection: str, document: DocumentInfo, page: int) -> Leaf[Chunk]:
    """One page of the chunks of a document; of a hundred thousand only these fifty are read."""
    places = leaf(range(document.chunks), page)
    ids = [f"{document.id}-{position:05d}" for position in places.rows]
    found = store.lookup(collection, ids)
    if len(found) == len(ids):
        rows = tuple(found[chunk_id] for chunk_id in ids)
    else:  # their ids were given in another way
        start = (places.page - 1) * SHOWN
        rows = tuple(store.chunks(collection, document.id)[start : start + SHOWN])
    return Leaf(rows=rows, found=places.found, page=places.page, pages=places.pages)


def _chosen(shelves: Sequence[Shelf], name: str) -> Shelf:
    """The collection of this name, or the visitor's first one."""
    first = next(item for item in shelves if item.default)
    return next((item for item in shelves if item.name == name), first)


def _list(page: Leaf[DocumentInfo], shelf: Shelf, jobs: Sequence[JobState], desk: Desk, view: View) -> str:
    return document_cards.documents_list(
        page,
        total=shelf.documents,
        searched=desk.search.strip(),
        read_only=shelf.read_only,
        busy=any(job.state != "ready" for job in jobs),
        warnings={
            job.document_id: job.message
            for job in jobs
            if job.state == "ready" and job.document_id and job.message
        },
        focus=f"documents-{view.list_turn}" if view.list_turn else "",
    )


def _key(value: Any) -> int:
    return hash(value.shown if isinstance(value, Drawn | Unread) else value)


def _ended(jobs: Sequence[JobState]) -> frozenset[str]:
    return frozenset(f"{job.id} {job.state}" for job in jobs if job.state in ENDED)


def _busy(jobs: Sequence[JobState]) -> bool:
    return any(job.state not in ENDED for job in jobs)


def _seen(view: View, jobs: Sequence[JobState], at_work: ReindexState | None) -> View:
    """The view with what is looked at now."""
    if at_work is None:
        return replace(view, ended=_ended(jobs), reindexed="", told="")
    told = at_work.collection if at_work.state != "running" else ""
    return replace(view, ended=_ended(jobs), reindexed=at_work.state, told=told)


def _said(jobs: Sequence[JobState], before: frozenset[str] | None) -> str:
    """What a screen reader is told of files that have arrived since the last look."""
    if before is None:
        return ""
    new = [job for job in jobs if job.state in ENDED and f"{job.id} {job.state}" not in before]
    return document_cards.arrivals([_job_view(job, {}, 0) for job in new])


def _order(job: JobView) -> tuple[int, int]:
    """First what is at work, then what waits in its order; the rest newest first, as it comes."""
    return (0 if job.state in ("reading", "embedding") else 1 if job.state == "queued" else 2, job.before)


def _reindex_view(state: ReindexState | None) -> ReindexView | None:
    if state is None:
        return None
    return ReindexView(
        done=state.done, total=state.total, message=state.message, failed=state.state == "failed"
    )


def _job_view(job: JobState, names: Mapping[str, str], before: int) -> JobView:
    return JobView(
        id=job.id,
        name=job.name,
        state=job.state,
        done=job.done,
        total=job.total,
        pages=job.pages,
        chunks=job.chunks,
        message=job.message,
        before=before,
        retryable=job.retryable,
        encrypted=job.reason == "encrypted",
        twin=names.get(job.document_id or ""),
    )
