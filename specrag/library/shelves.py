"""How collections are named, titled and listed. Pure, but for one look into a store.

The name is what the store knows, and a person never types it: a title may be any text, in any script, and two
owners may have the same one. The name of somebody's first collection follows from who they are, so it is the
same after a restart, and no other visitor can guess it.
"""

import hashlib
import re
import unicodedata
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from specrag.errors import StoreError, UsageError
from specrag.library.expiry import ARRIVING
from specrag.library.visitors import Visitor
from specrag.retrieval.base import CollectionInfo, VectorStore
from specrag.types import DocumentInfo

SAMPLE: Final = "sample"
"""The read-only sample that comes with the program."""
OWN: Final = "documents"
"""Where uploads and `specrag ingest` go unless told otherwise."""
SAMPLE_TITLE: Final = "Sample"
OWN_TITLE: Final = "Your documents"
TITLE_LENGTH: Final = 80
DESCRIPTION_LENGTH: Final = 500

_OWNED = re.compile(r"u-[0-9a-f]{16}-documents")
_MADE = re.compile(r"c-[0-9a-f]{12}")
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
"""Invisible, but part of how Persian, Indic scripts and emoji are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """A collection as somebody sees it in a list."""

    name: str
    title: str
    description: str = ""
    documents: int = 0
    chunks: int = 0
    read_only: bool = False
    default: bool = False
    """Whether it is where their files go unless they choose another."""
    stale: int | None = None
    """Documents that are cut in another way than new ones would be; None if that is not known."""
    mismatch: bool = False
    """Whether its vectors are of another embedder, so that it cannot be asked before it is indexed anew."""
    expires_at: str | None = None
    """When it is deleted unless it is used before; None never."""


def documents_of(store: VectorStore, collection: str) -> list[DocumentInfo]:
    """The documents of a collection; none if it was never written to."""
    return store.documents(collection) if collection in store.collections() else []


def default_name(who: Visitor) -> str:
    """The name of somebody's first collection."""
    if who.owner is None:
        return OWN
    return f"u-{hashlib.sha256(who.owner.encode()).hexdigest()[:16]}-documents"


def is_somebodys(name: str) -> bool:
    """Whether a name is that of an owner's first collection."""
    return _OWNED.fullmatch(name) is not None


def new_name() -> str:
    """A name for a collection that somebody makes."""
    return f"c-{uuid.uuid4().hex[:12]}"


def comes_into_being(name: str) -> bool:
    """Whether a file may make a collection of this name by arriving in it.

    One that somebody has made is never made again once it is deleted: nobody would know whose it was.
    """
    return _MADE.fullmatch(name) is None


def clean_title(title: str) -> str:
    """A title as it is safe to show: in one line, nothing in it that hides or reorders text.

    Raises:
        UsageError: nothing is left of it, or too much.
    """
    shown = visible(title)
    if not 1 <= len(shown) <= TITLE_LENGTH:
        raise UsageError(f"The title of a collection has 1 to {TITLE_LENGTH} characters; choose another one.")
    return shown


def clean_description(description: str) -> str:
    """A description as it is safe to show.

    Raises:
        UsageError: it is too long.
    """
    shown = visible(description)
    if len(shown) > DESCRIPTION_LENGTH:
        raise UsageError(
            f"The description of a collection has at most {DESCRIPTION_LENGTH} characters; shorten it."
        )
    return shown


def visible(text: str) -> str:
    """Text in one line, without control and direction characters."""
    one_line = " ".join(text.split())
    kept = "".join(char for char in one_line if char in _JOINERS or unicodedata.category(char) not in _HIDDEN)
    return unicodedata.normalize("NFC", " ".join(kept.split())).strip(_JOINERS)


def folded(title: str) -> str:
    """What two titles that a person would take for the same have in common."""
    return unicodedata.normalize("NFKC", title).casefold().strip()


def free_title(title: str, taken: Collection[str]) -> str:
    """The title itself, or with a number behind it if it is taken, as `folded`."""
    candidates = (
        title if number == 1 else f"{title[: TITLE_LENGTH - 7]} ({number})" for number in range(1, 1_000_000)
    )
    return next(candidate for candidate in candidates if folded(candidate) not in taken)


def sees(who: Visitor, info: CollectionInfo) -> bool:
    """Whether somebody may know of a collection."""
    if info.owner.startswith(ARRIVING):
        return False
    if who.operator or info.name == SAMPLE:
        return True
    if who.owner is None:
        return not info.owner and not is_somebodys(info.name)
    # a job that outlives a collection makes it again, and does not know whose it was
    return info.owner == who.owner or (info.name == default_name(who) and not info.owner)


def belongs(who: Visitor, info: CollectionInfo) -> bool:
    """Whether a title given by `who` may mean this collection, which they see.

    The operator sees those of all visitors, and any of them may choose a title that the operator is going to
    type: so that nothing ends in the hands of a visitor, the operator calls theirs by name.
    """
    if info.name in (SAMPLE, default_name(who)):
        return True
    return info.owner == (who.owner or "") and not is_somebodys(info.name)


def unknown(name: str) -> StoreError:
    """The refusal of a collection that does not exist, and in the same words of one that is not theirs."""
    return StoreError(f"There is no collection “{visible(name)[:80]}”; choose one of the list.")


def missing(name: str) -> CollectionInfo:
    """A collection that does not exist yet."""
    return CollectionInfo(name=name, description="", fingerprint="", documents=0, title=name)
