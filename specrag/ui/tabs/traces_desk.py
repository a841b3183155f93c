"""Who looks at what in the Traces tab, and what has come of what they did: values, nothing else."""

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from specrag.library.visitors import Visitor
from specrag.tracing.search import RunFilter

Values: TypeAlias = dict[str, Any]
"""What components show, by the names of `TracesTab`."""
MOST_TICKED: Final = 1000
_LONGEST: Final = 300_000
_ID_LENGTH: Final = 200
_TURNS: Final = 1000
_DIGITS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one open page shows of the tab; gradio keeps it for as long as the page is open."""

    page: int = 1
    run_id: str = ""
    """The run that is opened, or was last."""
    pair: tuple[str, str] | None = None
    """The runs that are compared."""
    opened: bool = False
    """Whether a run stands there instead of the list."""
    deleted: int = 0
    """Grows when what was ticked has been deleted, so that the ticks go as well."""
    turn: int = 0
    """Grows when something wants the focus of the keyboard."""

    @property
    def at_list(self) -> bool:
        """Whether the list is shown."""
        return not self.opened and self.pair is None

    @property
    def focus(self) -> str:
        """A word that is new whenever the focus is wanted; empty before anything was done."""
        return f"traces-{self.turn}" if self.turn else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Who looks at what."""

    who: Visitor
    wanted: RunFilter
    ticked: tuple[str, ...]
    view: View
    texts: bool = True
    """Whether an export holds texts."""

    def seen(self, **changes: Any) -> "Desk":
        """The desk with another view."""
        return replace(self, view=replace(self.view, **changes))

    def turned(self, **changes: Any) -> "Desk":
        """The same, and what is shown wants the focus."""
        return self.seen(turn=self.view.turn + 1, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What has come of an act."""

    desk: Desk
    message: str = ""
    """HTML."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Further updates."""


class Turns:
    """The last presses of buttons, of whoever; Gradio may tell one press twice."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._counting = threading.Lock()

    def is_repeated(self, turn: str) -> bool:
        """Whether this press was told before; random words, so that none is taken twice."""
        if not turn:
            return False
        with self._counting:
            known = turn in self._known
            self._known[turn] = None
            while len(self._known) > _TURNS:
                self._known.popitem(last=False)
            return known


def ticked_of(text: object) -> tuple[str, ...]:
    """The runs that were ticked, from the hidden box, whatever a client may have written there."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return ()
    try:
        told = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    ids = told if isinstance(told, list) else []
    short = (item for item in ids[:MOST_TICKED] if isinstance(item, str) and 0 < len(item) <= _ID_LENGTH)
    return tuple(dict.fromkeys(short))


def number(text: str) -> int:
    """The number of a page, whatever a client may have sent."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 1
