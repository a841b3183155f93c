"""What a visitor does inside our own HTML: a hidden text box carries it to the server as a small message.

Gradio knows the events of its own components only. A `<button data-sr-action="delete" data-sr-id="...">` in a
piece of HTML is heard by one listener of `page.js`, which writes `{"action", "id", "value"}` into the box of
those who care and lets it say `input`. Each part of the page has a box of its own, or every press would wake
them all, each with a request of its own. Anybody can write anything into any box, so `parse` takes nothing
but short plain text, and every listener still has to check whether an action is one of its own, what an id
stands for and who may touch it.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import gradio as gr

from specrag.ui.markup import render

MOST_IDS: Final = 1000
"""Values of one message, which a visitor chose by hand."""
_LONGEST: Final = 200_000
_ID: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{0,200}")
_ACTION: Final = re.compile(r"[a-z][a-z-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """The boxes, by the part of the page that hears them."""

    answers: gr.Textbox
    compare: gr.Textbox
    documents: gr.Textbox
    evaluate: gr.Textbox
    fork: gr.Textbox
    traces: gr.Textbox
    viewer: gr.Textbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that a visitor did."""

    action: str
    id: str = ""
    """What it was done to, in the words of the button; nothing is known of it yet."""
    value: str = ""
    """What was typed for it, a password for one."""
    values: tuple[str, ...] = ()
    """The ids that were ticked, if the button is about several things."""
    turn: str = ""
    """Tells one press of a button from the next; empty from whoever does not say it."""


def channel() -> Channel:
    """The boxes, with the one dialog of the page that asks before something is done; outside of all tabs."""
    gr.HTML(render("dialog"), elem_id="sr-dialog-place", apply_default_css=False)
    return Channel(
        answers=_box("answers", "answer"),
        compare=_box("compare", "compare"),
        documents=_box("documents", "rest"),
        evaluate=_box("evaluate", "evaluate"),
        fork=_box("fork", "run-fork"),
        traces=_box("traces", "run", "runs"),
        viewer=_box("viewer", "open", "leaf"),
    )


def _box(name: str, *begins: str) -> gr.Textbox:
    """A box of the actions that begin so; the longest beginning has an action, `rest` what no other has."""
    return gr.Textbox(
        visible="hidden",
        elem_id=f"sr-act-{name}",
        elem_classes=[f"sr-acts-{begin}" for begin in begins],
        label="Action",
    )


def parse(text: object) -> Act | None:
    """The message in the box, or None if it is not one that our page would send."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _act(told) if isinstance(told, dict) else None


def _act(told: dict[str, Any]) -> Act | None:
    action, identity, value = told.get("action"), told.get("id", ""), told.get("value", "")
    turn = told.get("turn", "")
    values = value if isinstance(value, list) else []
    typed = "" if isinstance(value, list) else value
    if not (isinstance(action, str) and _ACTION.fullmatch(action)):
        return None
    if len(values) > MOST_IDS or not all(_is_short(text) for text in (identity, typed, turn, *values)):
        return None
    return Act(action=action, id=identity, value=typed, values=tuple(dict.fromkeys(values)), turn=turn)


def _is_short(text: object) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None
