"""What a browser tab remembers over a reload: its runs and the chosen colour. Pure.

It is kept in the browser's session storage, which is the tab's own, and comes to the server as JSON. Nothing
of it is believed: the ids are looked up as this visitor may see them, and the colour is one of three.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from specrag.ui.readout import Colour

MOST_RUNS: Final = 8
_LONGEST: Final = 2000
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a tab remembers."""

    runs: tuple[str, ...] = ()
    """Ids, newest first."""
    colour: Colour = "none"
    typed: bool = False
    """Whether a next question is being typed under the run of the address; `ask.js` puts it back."""


def memory_of(text: object) -> Memory:
    """The memory that a page has sent; an empty one for anything that our page would not send."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return Memory()
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return Memory()
    if not isinstance(told, dict):
        return Memory()
    runs = told.get("runs")
    ids = (
        [one for one in runs if isinstance(one, str) and _ID.fullmatch(one)] if isinstance(runs, list) else []
    )
    return Memory(
        runs=tuple(dict.fromkeys(ids))[:MOST_RUNS],
        colour=colour_of(told.get("colour")),
        typed=told.get("typed") is True,
    )


def colour_of(value: object) -> Colour:
    """A choice of the page, whatever a client may have sent."""
    return "drafter" if value == "drafter" else "verifier" if value == "verifier" else "none"


_KEPT: Final = """
  const kept = (name) => { try { return window.sessionStorage.getItem(name); } catch { return null; } };
  const keep = (name, value) => { try { window.sessionStorage.setItem(name, value); } catch { } };
  let runs = [];
  try { runs = JSON.parse(kept("sr-runs") ?? "[]"); } catch { runs = []; }
  const address = new URL(window.location).searchParams.get("run") ?? "";
  let typed = null;
  try { typed = JSON.parse(kept("sr-typed")); } catch { typed = null; }
  const memory = () => JSON.stringify({
    runs, colour: kept("sr-colour") ?? "none", typed: !!typed?.text && typed.run === address,
  });
"""
"""A page in a frame of another one may be denied its storage; then it remembers nothing."""


def with_memory(*others: str) -> str:
    """JavaScript of a listener whose last input is the memory; `others` are its inputs before that."""
    names = ", ".join(others)
    return f"({', '.join((*others, '_'))}) => {{{_KEPT}  return [{names}{', ' if names else ''}memory()];\n}}"


REMEMBER_RUN: Final = (
    "(id) => {"
    + _KEPT
    + """  const url = new URL(window.location);
  id ? url.searchParams.set("run", id) : url.searchParams.delete("run");
  window.history.replaceState(null, "", url);
  if (id) keep("sr-runs", JSON.stringify([id, ...runs.filter((one) => one !== id)].slice(0, 8)));
}"""
)
"""The run that the page shows: its address names it, and the tab remembers it."""

REMEMBER_COLOUR: Final = (
    "(id, colour) => {"
    + _KEPT
    + """  keep("sr-colour", colour);
  return [id, colour];
}"""
)
