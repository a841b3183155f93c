"""The sheet that shows a document: pure functions from a page view to HTML; markup in `templates/`.

There is one sheet on the page, a popover whose content changes. Gradio patches what is there by place, so the
sheet always holds the same elements in the same order, and what a visitor has chosen (page or text, the zoom)
stays as it is. A page comes as a `data:` address: no address of ours gives a page away to somebody else.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from specrag.ingest.base import Box, PageImage
from specrag.leaves import Piece
from specrag.types import Passage
from specrag.ui.markup import UNKNOWN, number_text, render
from specrag.ui.readout import Ref
from specrag.viewer import PageView

SHEET_ID: Final = "sr-viewer-sheet"
_IMAGES: Final = frozenset({"image/webp", "image/png", "image/jpeg"})
_UNITS: Final = (("presentation", "slide"), ("spreadsheet", "sheet"), ("excel", "sheet"), ("epub", "chapter"))
"""What a page is called, by a word in the type of its document."""
_DAY: Final = 10
_MOST_BOXES: Final = 400
"""Boxes of one kind on a page; a hostile file could have one for each letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the sheet was opened for, in the words of the button."""

    id: str
    """ "RUN:PASSAGE" or "document:ID"."""
    ref: Ref | None = None
    """The passage as the run's page numbers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """Everything that the template places."""

    key: str
    target: str = ""
    title: str = "Document"
    number: int | None = None
    hue: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    lead: str | None = None
    notices: tuple[str, ...] = ()
    said: str = ""
    part: int = 0
    parts: int = 0
    unit: str = "page"
    back_to: int | None = None
    """Part that the passage stands on, if another one is shown."""
    back_page: str = ""
    pieces: tuple[Piece, ...] = ()
    start: int = 0
    earlier: int | None = None
    later: int | None = None
    stretch: str = ""
    image: str | None = None
    alt: str = ""
    ratio: str = "0.7071"
    passage: tuple[Box, ...] = ()
    blocks: tuple[Box, ...] = ()
    """What the lines of the passage fill, one for each column."""
    evidence: tuple[Box, ...] = ()
    drawing: bool = False
    marked: bool = False


def opening() -> str:
    """The sheet before anything was opened; what waits looks the same."""
    return _rendered(_Sheet(key="0"))


def page_card(view: PageView, target: Target, *, key: str) -> str:
    """A page of a document; one that is still to be drawn asks for it. `key` differs between sheets."""
    shown = _Sheet(
        key=key,
        target=target.id,
        title=view.document.title,
        said=_said(view, target.ref),
        facts=_facts(view, target.ref),
        notices=tuple(_notices(view, target.ref)),
        part=view.part,
        parts=view.parts,
        unit=_unit(view),
        back_to=view.place.part if view.place and not view.marked else None,
        back_page=_page_name(view, view.place.part) if view.place else "",
        pieces=view.text,
        earlier=max(0, view.start - (view.end - view.start)) if view.start else None,
        later=view.end if view.end < view.characters else None,
        stretch=f"Characters {view.start + 1:,} to {view.end:,} of {view.characters:,}",
        drawing=view.drawable and view.image is None and view.image_error is None,
        start=view.start,
        marked=view.marked,
    )
    return _rendered(_with_ref(_with_image(shown, view.image), target.ref))


def lost_card(
    passage: Passage, pieces: Sequence[tuple[str, bool]], target: Target, message: str, *, key: str
) -> str:
    """A passage whose document cannot be opened: what the citation said when the question was answered."""
    shown = _Sheet(
        key=key,
        target=target.id,
        title=passage.title,
        said=f"{message} The passage is shown as it was cited.",
        facts=_passage_facts(passage),
        notices=(message, "This is the passage as it was when the question was answered:"),
        pieces=tuple(Piece(text=text, mark="evidence" if marked else "passage") for text, marked in pieces),
        marked=True,
    )
    return _rendered(_with_ref(shown, target.ref))


def failed_card(message: str, *, key: str) -> str:
    """One sentence, where nothing can be shown."""
    return _rendered(_Sheet(key=key, title="Nothing to show", said=message, notices=(message,)))


def _rendered(sheet: _Sheet) -> str:
    return render("viewer", sheet=sheet, id=SHEET_ID)


def _with_ref(sheet: _Sheet, ref: Ref | None) -> _Sheet:
    """Number, hue and header row of the passage."""
    if ref is None:
        return sheet
    hue = ref.hues[0] if ref.hues else 0
    return replace(sheet, number=ref.number, hue=hue, lead=ref.passage.lead if sheet.marked else None)


def _with_image(sheet: _Sheet, image: PageImage | None) -> _Sheet:
    if image is None or image.media_type not in _IMAGES:
        return sheet
    data = base64.b64encode(image.data).decode("ascii")
    return replace(
        sheet,
        image=f"data:{image.media_type};base64,{data}",
        alt=f"{sheet.said[:1].upper()}{sheet.said[1:]} Its words are in the view “Text”.",
        ratio=f"{max(1, image.width) / max(1, image.height):.4f}",
        passage=image.passage[:_MOST_BOXES],
        blocks=_blocks(image.passage[:_MOST_BOXES]),
        evidence=image.evidence[:_MOST_BOXES],
    )


def _blocks(lines: Sequence[Box]) -> tuple[Box, ...]:
    """Lines that stand below each other, together; a line further up begins another column."""
    blocks: list[Box] = []
    for line in lines:
        last = blocks[-1] if blocks else None
        if last is None or line.top < last.top or line.left > last.left + last.width:
            blocks.append(line)
            continue
        left, bottom = min(last.left, line.left), max(last.top + last.height, line.top + line.height)
        right = max(last.left + last.width, line.left + line.width)
        blocks[-1] = Box(left=left, top=last.top, width=right - left, height=bottom - last.top)
    return tuple(blocks)


def _unit(view: PageView) -> str:
    kind = view.document.media_type
    named = next((unit for word, unit in _UNITS if word in kind), "page")
    return named if view.page is not None or named != "page" else "part"


def _page_name(view: PageView, part: int) -> str:
    """A page as the document counts it, as far as its own number tells."""
    shift = (view.page - view.part) if view.page is not None else 1
    return f"{_unit(view)} {part + shift}"


def _said(view: PageView, ref: Ref | None) -> str:
    """What a screen reader is told when a page comes up: "Page 3 of 12, passage marked."."""
    where = "The whole document" if view.parts == 1 else f"{_page_name(view, view.part).capitalize()} of"
    where += "" if view.parts == 1 else f" {view.parts}"
    if ref is None:
        return f"{where}."
    if view.marked:
        evidence = any(piece.mark == "evidence" for piece in view.text)
        return f"{where}, passage marked{', evidence underlined' if evidence else ''}."
    if view.place is not None:
        return f"{where}; the passage is on {_page_name(view, view.place.part)}."
    return f"{where}; the passage is not found in the document."


def _notices(view: PageView, ref: Ref | None) -> list[str]:
    told = []
    if view.replaced:
        told.append("The document was replaced; this is the passage in its newer version.")
    if ref is not None and view.place is None:
        told.append("The passage is no longer found in this document; its text is still in the quick look.")
    if view.image_error:
        told.append(f"{view.image_error} The text is shown instead.")
    if not view.characters and not view.drawable:
        told.append(f"No text was found on this {_unit(view)}.")
    return told


def _facts(view: PageView, ref: Ref | None) -> tuple[tuple[str, str], ...]:
    document = view.document
    date = (document.published_at or "")[:_DAY]
    found = [
        ("file", document.source),
        (_unit(view), f"{_page_number(view)} of {view.parts:,}"),
        ("section", view.section or ""),
        ("dated", date),
    ]
    if view.parts == 1:
        del found[1]
    return (*((name, text) for name, text in found if text), *(_ranks(ref.passage) if ref else ()))


def _page_number(view: PageView) -> int:
    return view.page if view.page is not None else view.part + 1


def _passage_facts(passage: Passage) -> tuple[tuple[str, str], ...]:
    found = (
        ("file", passage.source),
        ("page", "" if passage.page is None else str(passage.page)),
        ("section", passage.section or ""),
        ("dated", (passage.published_at or "")[:_DAY]),
    )
    return (*((name, text) for name, text in found if text), *_ranks(passage))


def _ranks(passage: Passage) -> tuple[tuple[str, str], ...]:
    """How the passage was found."""
    ranks = (("rank by meaning", passage.dense_rank), ("by words", passage.bm25_rank))
    known = tuple((name, UNKNOWN if rank is None else f"{rank:,}") for name, rank in ranks)
    compared = any(rank is not None for _, rank in ranks)
    return (("similarity", number_text(passage.score)), *(known if compared else ()))
