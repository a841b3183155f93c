"""The Documents tab's HTML: pure functions from values to a string, markup in `templates/`.

Everything that a file, an archive or another visitor has named is hostile and passes the autoescape of
`markup.render`. What a visitor can do stands on the buttons as `data-sr-action` and `data-sr-id`; `page.js`
tells the server, which believes none of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

from specrag.config import Settings
from specrag.library.shelves import Shelf
from specrag.types import AccessName, Chunk, DocumentInfo
from specrag.ui.listing import Leaf
from specrag.ui.markup import render

JobState: TypeAlias = Literal["queued", "reading", "embedding", "ready", "duplicate", "failed", "cancelled"]
UNDER_WAY: Final = ("queued", "reading", "embedding")
_MOST_JOBS: Final = 30
"""Files on their way that are listed one by one; an archive may bring hundreds."""

_TYPES: Final = {
    "application/pdf": "PDF",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "Excel",
    "application/epub+zip": "EPUB",
    "application/json": "JSON",
    "application/xhtml+xml": "HTML",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/csv": "CSV",
    "text/tab-separated-values": "TSV",
}
_SEEN_BY: Final[dict[AccessName, str]] = {
    "shared": "Everybody who can open this page can ask, change and delete these documents.",
    "visitor": "Only this browser can ask, change and delete these documents.",
    "login": "Only you, once logged in, can ask, change and delete these documents.",
}
_KEPT_FOR: Final[dict[AccessName, str]] = {
    "shared": "They stay until somebody deletes them.",
    "visitor": "They are deleted after {days:g} days without use.",
    "login": "They stay until you delete them.",
}
_LONGEST_TYPE: Final = 10
_MOST_SAID: Final = 3
_KILO, _MEGA = 1000, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One file on its way into the collection, or what became of it, as the page lists it."""

    id: str
    name: str
    state: JobState
    done: int = 0
    total: int = 0
    """0 while unknown: the bar then only shows that something moves."""
    pages: int = 0
    chunks: int = 0
    message: str | None = None
    before: int = 0
    """Files that wait before this one."""
    retryable: bool = False
    encrypted: bool = False
    """It failed because it needs a password, or another one than was given."""
    twin: str | None = None
    """The file in the collection that has the same content, if this one is a duplicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexView:
    """How far a collection is with its re-indexing, as the page shows it."""

    done: int
    total: int
    message: str | None = None
    """A sentence once it has ended."""
    failed: bool = False


def type_of(document: DocumentInfo) -> str:
    """What kind of file it is, in a word that people use."""
    known = _TYPES.get(document.media_type)
    suffix = PurePath(document.source).suffix.removeprefix(".")
    plain = suffix.upper() if suffix.isalnum() and len(suffix) <= _LONGEST_TYPE else ""
    return known or plain or "text"


def size_text(size: int) -> str:
    """Bytes as people say them, in units of a thousand."""
    if size >= _MEGA:
        return f"{size / _MEGA:.1f} MB"
    return f"{size / _KILO:.0f} kB" if size >= _KILO else f"{size} B"


def counted(number: int, word: str) -> str:
    """`1 page`, `2,000 pages`."""
    return f"{number:,} {word if number == 1 else f'{word}s'}"


def choice_of(shelf: Shelf) -> str:
    """A collection as a line of a list to choose from."""
    notes = [counted(shelf.documents, "document")]
    notes += ["read-only"] if shelf.read_only else []
    notes += ["wants re-indexing"] if shelf.mismatch else []
    notes += [f"kept until {shelf.expires_at[:10]}"] if shelf.expires_at else []
    return f"{shelf.title} ({', '.join(notes)})"


def shelf_card(shelf: Shelf, reindex: ReindexView | None = None) -> str:
    """The chosen collection: what it holds, who may change it, and what can be done with it."""
    return render("collections", shelf=shelf, reindex=reindex, counted=counted)


def form_heading(mode: str) -> str:
    """Above the form in which a collection gets its title."""
    return render("form", text={"new": "A new collection", "edit": "This collection"}.get(mode, ""))


def limits(settings: Settings, formats: str, *, writable: bool) -> str:
    """What can be added, how much, who sees it and how long it stays: said before anything is sent."""
    return render(
        "limits",
        settings=settings,
        formats=formats,
        writable=writable,
        ocr=settings.ocr,
        seen_by=_SEEN_BY[settings.access],
        kept_for=_KEPT_FOR[settings.access].format(days=settings.visitor_days),
    )


def arrivals(jobs: Sequence[JobView]) -> str:
    """What has come of files, for a screen reader; who looks sees it in the lists."""
    if len(jobs) > _MOST_SAID:
        ready = sum(job.state == "ready" for job in jobs)
        return render("said", sentences=[f"{ready} of {len(jobs)} files were added."])
    return render("said", sentences=[_arrival(job) for job in jobs])


def uploads(jobs: Sequence[JobView]) -> str:
    """The files on their way, and those that did not arrive; what is ready is a document and not listed."""
    shown = [job for job in jobs if job.state != "ready"]
    waiting = [job for job in shown if job.state in UNDER_WAY]
    ended = [job for job in shown if job.state not in UNDER_WAY]
    return render(
        "jobs",
        waiting=waiting[:_MOST_JOBS],
        ended=ended[:_MOST_JOBS],
        under_way=len(waiting),
        ended_all=len(ended),
        counted=counted,
    )


def documents_list(
    page: Leaf[DocumentInfo],
    *,
    total: int,
    searched: str = "",
    read_only: bool = False,
    busy: bool = False,
    warnings: Mapping[str, str] | None = None,
    focus: str = "",
) -> str:
    """The documents of a collection, one page of the list.

    `total` counts them all, also those that the search leaves out. `warnings` are sentences by document id.
    `focus` is a word that changes when the list wants the focus of the keyboard.
    """
    return render(
        "documents",
        page=page,
        total=total,
        searched=searched,
        read_only=read_only,
        busy=busy,
        warnings=warnings or {},
        focus=focus,
        counted=counted,
        type_of=type_of,
        size=size_text,
    )


def chunks_list(document: DocumentInfo, page: Leaf[Chunk], *, focus: str = "") -> str:
    """The chunks of one file, one page of them."""
    return render("chunks", document=document, page=page, focus=focus, counted=counted)


def _arrival(job: JobView) -> str:
    if job.state == "ready":
        return f"{job.name} was added: {counted(job.pages, 'page')}, {counted(job.chunks, 'chunk')}."
    return f"{job.name} was not added: {job.state}."
