"""What a model's reply holds beside what was asked for: thoughts before it, and more than anybody can use."""

import re
from typing import Final

_READ: Final = 100_000
"""Characters of a reply that are looked at; what is asked for is shorter by far."""
_SHOWN: Final = 80
_THOUGHT: Final = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


def spoken(reply: str) -> str:
    """The reply without the thoughts that some models write before it."""
    return _THOUGHT.sub("", reply[:_READ], count=1).strip()


def beginning(reply: str) -> str:
    """So much of a reply that a person can tell what went wrong, on one line."""
    one_line = " ".join(reply[:_READ].split())[:_SHOWN]
    return "".join(sign for sign in one_line if sign.isprintable())
