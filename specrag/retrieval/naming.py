"""How a collection may be called: the rule of Chroma in one sentence, and our own collections apart."""

import re

from specrag.errors import StoreError

CATALOGUE = "specrag.catalogue"
NOTES = "specrag.underway"
NEXT = "specrag.next."
"""Before the name of a collection: its vectors of another embedder, until all of them are in."""
GONE = "specrag.gone."
"""Before a word of its own: a collection on its way out."""

_RESERVED = "specrag."
_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,126}[A-Za-z0-9]")


def check_name(name: str) -> str:
    """`name`, if a collection may be called so.

    Raises:
        StoreError: with the rule.
    """
    if not _RULE.fullmatch(name) or name.startswith(_RESERVED):
        shown = re.sub(r"[^\x20-\x7e]", "?", name[:60])
        raise StoreError(
            f"“{shown}” cannot name a collection: use 3 to 128 letters a-z, digits, dots, underscores and"
            f" hyphens, with a letter or digit at both ends, and not “{_RESERVED}” at the beginning."
        )
    return name


def is_ours(name: str) -> bool:
    """Whether a collection is part of the machinery and not a user's."""
    return name.startswith(_RESERVED)
