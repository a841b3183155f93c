"""A passage in its document, at its page: the text around it, and the page as it looks where that is known.

The text of every page is rebuilt from the document's chunks, so it is there for every format and every
document of an older version. Of a PDF whose file was kept, the page is drawn as well, by the process that
reads files: nothing of a visitor's file is decoded here. Who may see a collection is asked by the caller.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from specrag.errors import DocumentError, StoreError
from specrag.ingest.base import PageImage
from specrag.leaves import Leaves, Piece, Place, leaves_of, pieces_of, place_of, window_of
from specrag.retrieval.base import VectorStore
from specrag.types import Chunk, DocumentInfo, Page, Passage

IMAGE_WIDTH: Final = 1300
"""Pixels across a page: sharp at one and a half times the width of the sheet."""
_DRAWN: Final = frozenset({"application/pdf"})
_MOST_LEAVES: Final = 30_000_000
"""Characters of documents that are kept rebuilt."""
_MOST_IMAGES: Final = 32 * 2**20
"""Bytes of page images that are kept."""
_MOST_TRIES: Final = 3
"""Newer documents of the same name in which a lost passage is looked for."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Originals(Protocol):
    """The files as they were uploaded."""

    def path(self, collection: str, document_id: str) -> Path | None:
        """Where the file of a document is; None if it was not kept."""
        ...


class Reading(Protocol):
    """Draws pages, in a process that a hostile file may bring down."""

    def page_image(
        self,
        path: Path,
        number: int,
        *,
        password: str | None = None,
        passage: str = "",
        evidence: Sequence[str] = (),
        width: int = 1000,
    ) -> PageImage:
        """A page as an image, with the places of a passage and its evidence.

        Raises:
            DocumentError: it cannot be drawn.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """One page of a document, as far as it can be shown."""

    document: DocumentInfo
    part: int
    """Number of the page in the document, from 0."""
    parts: int
    page: int | None
    """As the document counts; None where the format has no pages."""
    section: str | None
    text: tuple[Piece, ...]
    """What stands from `start` to `end` of the page's `characters`."""
    start: int
    end: int
    characters: int
    place: Place | None
    """Where the passage stands, on whichever page; None without a passage, or if it is not found."""
    drawable: bool
    """Whether the page can be drawn."""
    image: PageImage | None = None
    image_error: str | None = None
    """Why the page could not be drawn after all, as a sentence."""
    replaced: bool = False
    """Whether the passage's own document is gone and this is a newer one of the same name."""

    @property
    def marked(self) -> bool:
        """Whether the passage stands on this page."""
        return self.place is not None and self.place.part == self.part


class Viewer:
    """Opens documents. Safe to share between threads."""

    def __init__(self, store: VectorStore, originals: Originals | None, reading: Reading | None) -> None:
        """Without `originals` or `reading` no page is drawn and the text is shown."""
        self._store = store
        self._originals = originals
        self._reading = reading
        self._leaves = _Recent[tuple[str, DocumentInfo], Leaves](
            _MOST_LEAVES, lambda leaves: leaves.characters
        )
        self._images = _Recent[Hashable, PageImage](_MOST_IMAGES, lambda image: len(image.data))

    def open(
        self,
        collection: str,
        document_id: str,
        *,
        passage: Passage | Chunk | None = None,
        evidence: Sequence[str] = (),
        part: int | None = None,
        at: int | None = None,
        draw: bool = True,
    ) -> PageView:
        """A page of a document: the passage's own, or that with the number `part`.

        Args:
            collection: where the document is; the caller has checked that it may be read.
            document_id: of a document of that collection.
            passage: is marked where it stands.
            evidence: sentences of the passage, in order, which are marked within it.
            part: page to show instead of the passage's, from 0; one that is not there is the nearest.
            at: where the text of a long page is to begin, in code points, instead of around the passage.
            draw: False leaves out an image that is still to be drawn, for an answer at once.

        Raises:
            StoreError: the document is not there, nor another one of its name that holds the passage.
        """
        document, leaves, place = self._found(collection, document_id, passage)
        parts = max(document.pages, len(leaves.pages), 1)
        wanted = part if part is not None else place.part if place else 0
        number = max(0, min(wanted, parts - 1))
        page = leaves.pages[number] if number < len(leaves.pages) else Page(text="")
        here = place if place and place.part == number else None
        window = window_of(page.text, at, here)
        view = PageView(
            document=document,
            part=number,
            parts=parts,
            page=self._number(document, number) if page.number is None else page.number,
            section=(passage.section if passage and here else None) or page.section,
            text=pieces_of(page.text, window, here, evidence),
            start=window[0],
            end=window[1],
            characters=len(page.text),
            place=place,
            drawable=self._file(collection, document) is not None,
            replaced=document.id != document_id,
        )
        return self._drawn(collection, view, passage, evidence, draw=draw) if view.drawable else view

    def _found(
        self, collection: str, document_id: str, passage: Passage | Chunk | None
    ) -> tuple[DocumentInfo, Leaves, Place | None]:
        """The document with the passage's place in it; one that was replaced may stand in the newer one."""
        document = self._store.find(collection, document_id)
        if document is not None:
            leaves = self._rebuilt(collection, document)
            return document, leaves, place_of(leaves, passage) if passage else None
        known = self._store.documents(collection) if passage else []
        newer = [other for other in known if passage and other.source == passage.source]
        for other in newer[:_MOST_TRIES]:
            leaves = self._rebuilt(collection, other)
            if passage and (place := place_of(leaves, passage)):
                return other, leaves, place
        raise StoreError("The document is no longer in its collection.")

    def _rebuilt(self, collection: str, document: DocumentInfo) -> Leaves:
        """Rebuilt again only when the document has changed: what is listed of it then changes too."""
        return self._leaves.get(
            (collection, document), lambda: leaves_of(self._store.chunks(collection, document.id))
        )

    def _file(self, collection: str, document: DocumentInfo) -> Path | None:
        """The file whose pages can be drawn."""
        if self._originals is None or self._reading is None or not _is_drawn(document):
            return None
        return self._originals.path(collection, document.id)

    def _number(self, document: DocumentInfo, part: int) -> int | None:
        """Of a page without text, which no chunk tells of."""
        return part + 1 if _is_drawn(document) else None

    def _drawn(
        self,
        collection: str,
        view: PageView,
        passage: Passage | Chunk | None,
        evidence: Sequence[str],
        *,
        draw: bool,
    ) -> PageView:
        path, reading = self._file(collection, view.document), self._reading
        if path is None or reading is None:
            return replace(view, drawable=False)
        number = view.page or view.part + 1
        told = passage.text if passage and view.marked else ""
        marked = tuple(evidence) if told else ()
        key = (collection, view.document, number, told, marked)
        if not draw:
            return replace(view, image=self._images.known(key))
        try:
            image = self._images.get(
                key,
                lambda: reading.page_image(path, number, passage=told, evidence=marked, width=IMAGE_WIDTH),
            )
        except DocumentError as error:
            return replace(view, image_error=str(error))
        return replace(view, image=image)


def _is_drawn(document: DocumentInfo) -> bool:
    """By its type; older versions of this program stored none."""
    return document.media_type in _DRAWN or (
        not document.media_type and document.source.casefold().endswith(".pdf")
    )


class _Recent(Generic[K, V]):
    """What was made last, as long as all of it weighs no more than a limit."""

    def __init__(self, most: int, weigh: Callable[[V], int]) -> None:
        self._most = most
        self._weigh = weigh
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, key: K) -> V | None:
        """The value of a key, if it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made if it is not kept; two callers at once may both make it."""
        if (kept := self.known(key)) is not None:
            return kept
        value = make()
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > 1 and sum(map(self._weigh, self._kept.values())) > self._most:
                self._kept.popitem(last=False)
        return value
