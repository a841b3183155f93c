"""What a report is shown as: parts of a title, words, a figure and tables, whichever report it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Estimate: TypeAlias = tuple[float, float, float]
"""A mean with the ends of its interval."""


class Cell(NamedTuple):
    """One cell of a table; `under` stands in a line of its own, less prominent."""

    text: str
    under: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose first column names the rows."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    texts: frozenset[int] = frozenset()
    """Columns that hold words and not numbers."""
    folded: bool = False
    """Whether it opens on demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section of a report."""

    title: str
    words: tuple[str, ...] = ()
    figure: "Figure | None" = None
    said: str = ""
    """The figure for whoever cannot see it."""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """What has to be known to read the tables, beneath them."""


def estimate(of: Mapping[str, Any], name: str, values: str = "metrics") -> Estimate | None:
    """A mean with its interval; None where it is not known."""
    mean = of[values].get(name)
    low, high = of["intervals"].get(name) or (None, None)
    if mean is None:
        return None
    return (mean, mean if low is None else low, mean if high is None else high)


def estimate_cell(of: Mapping[str, Any], name: str, values: str = "metrics", *, n: int | None = None) -> Cell:
    """As a table shows it, and over how many if these are not the `n` that the reader expects."""
    one = estimate(of, name, values)
    if one is None:
        return Cell("")
    expected = of["n"] if n is None else n
    count = of["counts"].get(name, expected)
    some = "" if count == expected else f", n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{count:,}"
    return Cell(f"{one[0]:.3f}", f"{one[1]:.3f} to {one[2]:.3f}{some}")


def signed_cell(one: Mapping[str, Any] | None) -> Cell:
    """A difference with its interval."""
    span = None if one is None else difference(one)
    if span is None:
        return Cell("")
    return Cell(minus(f"{span[0]:+.3f}"), minus(f"{span[1]:+.3f} to {span[2]:+.3f}"))


def difference(one: Mapping[str, Any]) -> Estimate | None:
    """A difference with its interval, if all of it is known."""
    if one["mean"] is None or one["low"] is None or one["high"] is None:
        return None
    return (one["mean"], one["low"], one["high"])


def prose(notes: str) -> str:
    """Notes that are wrapped for a terminal, as a paragraph."""
    return " ".join(notes.replace("`", "").split())


def minus(text: str) -> str:
    """A number with the sign that is as wide as a plus."""
    return text.replace("-", "\N{MINUS SIGN}")


def cells(texts: Sequence[str]) -> tuple[Cell, ...]:
    """Plain cells."""
    return tuple(map(Cell, texts))
