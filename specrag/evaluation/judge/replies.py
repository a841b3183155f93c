"""What a model's reply holds beside what was asked for: thoughts before it, and more than anybody can use."""

import re
from typing import Final

from specrag.text import printable

_READ: Final = 100_000
"""Characters of a reply that are looked at; what is asked for is shorter by far."""
_SHOWN: Final = 80
_THOUGHT: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
"""Matched at the beginning only: looked for at every place, a hostile reply would take minutes."""
_FENCE: Final = "```"


def spoken(reply: str) -> str:
    """The reply without the thoughts that some models write before it."""
    text = reply[:_READ].strip()
    thought = _THOUGHT.match(text)
    return text[thought.end() :].strip() if thought else text


def unfenced(text: str) -> str:
    """What stands in a code block, where a text is nothing else."""
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    return text.removeprefix(_FENCE).removesuffix(_FENCE).removeprefix("json").strip()


def beginning(reply: str) -> str:
    """So much of a reply that a person can tell what went wrong, on one line."""
    return printable(" ".join(reply[:_READ].split())[:_SHOWN])
