"""Cells of Markdown tables: numbers in few digits, and texts from outside that stay in their cell."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None) -> str:
    """Three digits; empty for none."""
    return "" if value is None else f"{value:.3f}"


def plain(text: str) -> str:
    """Text of a file or an error that stays one cell and brings no markup of its own."""
    one_line = "".join(sign for sign in " ".join(text.split())[:200] if sign.isprintable())
    return "".join(f"\\{sign}" if sign in "\\|<>[]*_" else sign for sign in one_line.replace("`", "'"))


def code(text: str) -> str:
    """The same as code, in which only the end of the code and of the cell mean anything."""
    one_line = "".join(sign for sign in " ".join(text.split())[:200] if sign.isprintable())
    return f"`{one_line.replace('`', chr(39)).replace('|', chr(92) + '|')}`"
