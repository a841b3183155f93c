"""Cells of Markdown tables: numbers in few digits, and texts from outside that stay in their cell."""

from collections.abc import Iterable, Sequence

from specrag.text import printable


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None) -> str:
    """Three digits; empty for none."""
    return "" if value is None else f"{value:.3f}"


def plain(text: str) -> str:
    """Text of a file or an error that stays one cell and brings no markup of its own."""
    return "".join(f"\\{sign}" if sign in "\\|<>[]*_" else sign for sign in _short(text).replace("`", "'"))


def code(text: str) -> str:
    """The same as code, in which only the end of the code and of the cell mean anything."""
    return f"`{_short(text).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def _short(text: str) -> str:
    return printable(" ".join(text.split())[:200])
