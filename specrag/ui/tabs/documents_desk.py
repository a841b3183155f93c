"""Who looks at what in the Documents tab, and what has come of what they did: values, nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from specrag.library.visitors import Visitor

Values: TypeAlias = dict[str, Any]
"""What components show, by the names that `documents.py` gives them."""
_DIGITS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one open page shows of the tab; gradio keeps it for as long as the page is open."""

    page: int = 1
    chunks_of: str = ""
    """The document whose chunks are shown."""
    chunks_page: int = 1
    form: Literal["", "new", "edit"] = ""
    list_turn: int = 0
    """Grows when the list wants the focus of the keyboard; the next one likewise for the chunks."""
    chunks_turn: int = 0
    ended: frozenset[str] | None = None
    """Jobs of the collection that had ended at the last look; None before the first one."""
    reindexed: str = ""
    """How the re-indexing of the collection stood at the last look."""
    told: str = ""
    """The collection whose re-indexing had ended by then; what is done next puts the sentence away."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """A hash of what each component was sent last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Who looks at what."""

    who: Visitor
    collection: str
    search: str
    sort: str
    asked: str
    """The collection that is chosen in the Ask tab."""
    only: tuple[str, ...]
    """The documents of it that are chosen there."""
    view: View


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What has come of an act."""

    desk: Desk
    message: str | None = ""
    """HTML; None leaves the message that stands there."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Further updates."""


def joined(view: object, seen: object) -> View:
    """A view as it was chosen, with what was last seen of it; a page that has just come has neither."""
    chosen = view if isinstance(view, View) else View()
    known = seen if isinstance(seen, View) else View()
    return replace(chosen, ended=known.ended, reindexed=known.reindexed, told=known.told, sent=known.sent)


def number(text: str) -> int:
    """The number of a page, whatever a client may have sent."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 1
